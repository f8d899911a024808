"""Units: SI inside, people's units only when text is read or written."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Sequence

from pytest_ortbench.core.errors import UsageError

#: Factor of every unit that a person may write, by the SI unit that it converts to.
#: Decimal prefixes are powers of 1000, ``Ki``/``Mi``/``Gi`` powers of 1024 (IEC 80000-13).
FACTORS: dict[str, dict[str, float]] = {
    "s": {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1.0, "min": 60.0},
    "bytes": {
        "B": 1.0,
        "bytes": 1.0,
        "kB": 1e3,
        "KB": 1e3,
        "MB": 1e6,
        "GB": 1e9,
        "KiB": 1024.0,
        "MiB": 1024.0**2,
        "GiB": 1024.0**3,
    },
    "1/s": {"/s": 1.0, "1/s": 1.0, "per_s": 1.0},
    "W": {"mW": 1e-3, "W": 1.0, "kW": 1e3},
    "J": {"uJ": 1e-6, "mJ": 1e-3, "J": 1.0, "kJ": 1e3},
    "ratio": {"%": 0.01, "": 1.0},
    "dB": {"dB": 1.0},
    "1": {"": 1.0},
}

#: Units of which a bare number leaves open what is meant: few think of latencies in seconds, or of
#: memory in bytes. For each the unit that most will have meant, and the one that it would be.
ASKING_FOR_A_UNIT: dict[str, tuple[str, str]] = {
    "s": ("ms", "s"),
    "bytes": ("MB", "B"),
    "J": ("mJ", "J"),
}

#: Minutes of the longer units that people write where hours are not known.
_LONGER = {"h": 60, "hr": 60, "hour": 60, "hours": 60, "d": 1440, "day": 1440, "days": 1440}

_NUMBER = re.compile(r"\s*([-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?)\s*(\S*)\s*$")


def parse_amount(text: str, unit: str, *, place: str, of: str = "this value") -> float:
    """Read ``30 ms`` or ``500MB`` as a number in the SI unit ``unit``.

    Args:
        text: What the user wrote: a number and an optional unit (without one, ``unit`` is meant).
        unit: A key of :data:`FACTORS`.
        place: Where it was written, for the message.
        of: What has the amount, for the message.

    Raises:
        UsageError: if the number or its unit can't be read.
    """
    match = _NUMBER.match(text)
    known = FACTORS[unit]
    if match is None:
        named = "number with a unit" if any(known) else "number"
        # The unit itself as it is written first, where it is written at all.
        plain = [name for name, factor in known.items() if name and factor == 1.0]
        example = f"1 {next(iter((*plain, *known)))}".rstrip()
        raise UsageError(f"{text!r} is not a {named}", place=place, hint=f"Write e.g. '{example}'")
    number, written = match.groups()
    if written and written not in known:
        fitting = sorted(filter(None, known), key=known.__getitem__)
        raise UsageError(
            f"{text!r} has the unit {written!r}, which {of} can't have",
            place=place,
            hint=_in_known_units(float(number), written)
            if "min" in known and written in _LONGER
            else _with_a_unit(number, fitting),
        )
    value = float(number) * (known[written] if written else 1.0)
    if not math.isfinite(value):
        raise UsageError(
            f"{text!r} is too large",
            place=place,
            hint="Write a smaller number",
        )
    return value


def _with_a_unit(number: str, fitting: Sequence[str]) -> str:
    if len(fitting) > 1:
        return f"Write {number} with one of the units {', '.join(fitting)}"
    return f"Write {number} {fitting[0]}" if fitting else f"Write {number} without a unit"


def _in_known_units(number: float, unit: str) -> str:
    """The same time in minutes, the longest unit that is known."""
    return f"Write {number * _LONGER[unit]:.15g}min"


def has_unit(text: str) -> bool:
    """Whether an amount that :func:`parse_amount` reads names its unit."""
    match = _NUMBER.match(text)
    return match is not None and bool(match[2])


def written_with(text: str, unit: str) -> list[str]:
    """Return a bare number with each unit that may have been meant: ``5 ms``, ``5 s``."""
    return [f"{text.strip()} {name}" for name in ASKING_FOR_A_UNIT[unit]]


def parse_duration(text: str, *, place: str, may_be_zero: bool = False) -> float:
    """Read a time above 0 that names its unit, ``50ms``, in seconds.

    A bare number would leave open whether seconds or milliseconds are meant: a target of 50 s is
    kept by everything, and nobody sees why.

    Args:
        text: What the user wrote.
        place: Where it was written, for the message.
        may_be_zero: Whether 0 is a time, too.

    Raises:
        UsageError: if there is no number, no unit, another unit than of time, or nothing above 0.
    """
    known = ", ".join(filter(None, FACTORS["s"]))
    hint = f"Write e.g. 50ms. Units are {known}"
    match = _NUMBER.match(text)
    if match is None:
        raise UsageError(f"{text!r} is not a time", place=place, hint=hint)
    number, written = match.groups()
    value = float(number) * FACTORS["s"].get(written, 1.0)
    if not (0 < value < math.inf or (may_be_zero and value == 0)):
        rule = "not a time of 0 or more" if may_be_zero else "not a time above 0"
        raise UsageError(f"{text!r} is {rule}", place=place, hint=hint)
    if not written:
        raise UsageError(
            f"{text!r} has no unit", place=place, hint=f"Write {number}ms or {number}s"
        )
    if written not in FACTORS["s"]:
        raise UsageError(
            f"{text!r} has the unit {written!r}, but only {known} are known",
            place=place,
            hint=_in_known_units(float(number), written)
            if written in _LONGER
            else f"Write {number}min or {number}ms"
            if written == "m"
            else f"Write e.g. {number}ms",
        )
    return value


#: Seconds of the units that spans of a clock are written in.
_SPANS = {"s": 1.0, "sec": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0}
_SPAN = re.compile(r"(\d+(?:\.\d+)?)\s*(sec|s|min|m|h)\s*")


def parse_span(text: str, *, place: str) -> float:
    """Read a span of a clock, ``10m`` or ``1h 30m``, in seconds; the caller reads ``none``.

    Args:
        text: What the user wrote; every number names its unit.
        place: Where it was written, for the message.

    Raises:
        UsageError: if a number or its unit can't be read.
    """
    hint = "Write minutes as 10m, seconds as 90s, hours as 1h"
    parts = _SPAN.findall(text)
    if not parts or _SPAN.sub("", text):
        match = _NUMBER.match(text)
        if match is None or not 0 < float(match[1]) < math.inf:
            raise UsageError(
                f"{text!r} is not a time above 0",
                place=place,
                hint="Write e.g. 90s, 10m or 1h, or none for no limit",
            )
        number, unit = match.groups()
        if not unit:
            hint = f"Write {number}m for minutes, or {number}s for seconds"
            raise UsageError(f"{text!r} has no unit", place=place, hint=hint)
        raise UsageError(
            f"{text!r} has the unit {unit!r}, but only h, m and s are known", place=place, hint=hint
        )
    return sum(float(number) * _SPANS[unit] for number, unit in parts)


def format_amount(value: float, unit: str, digits: int = 3) -> str:
    """Format an SI value for people, to ``digits`` significant ones: ``0.0123`` s → ``12.3 ms``."""
    if unit == "ratio":
        return f"{significant(value * 100, digits)} %"
    scales = _SCALES.get(unit)
    if scales is None:
        text = significant(value, digits)
        return text if unit == "1" else f"{text} {unit}"
    magnitude = abs(value)
    for index, (factor, name) in enumerate(scales):
        # Rounding can carry into the next unit: 999.96 µs is 1.00 ms, not 1000 µs.
        rounded = float(significant(magnitude / factor, digits))
        if rounded < 1000 or index == len(scales) - 1:
            return f"{significant(value / factor, digits)} {name}"
    raise AssertionError("unreachable: the last scale always returns")


#: No number has more digits that mean anything.
_MOST_DIGITS = 17


def digits_apart(
    value: float, bound: float, write: Callable[[float, int], str], digits: int
) -> int:
    """Return how many digits tell two numbers apart: six for 0.999989 and 0.999990.

    Args:
        value: The one.
        bound: What it is compared with.
        write: Writes a number to so many digits.
        digits: How many are enough where they differ then, or where the numbers are equal.
    """
    while value != bound and digits < _MOST_DIGITS and write(value, digits) == write(bound, digits):
        digits += 1
    return digits


def amounts_apart(value: float, bound: float, unit: str) -> tuple[str, str]:
    """Format two SI values with as many digits as tell them apart."""
    digits = digits_apart(value, bound, lambda number, count: format_amount(number, unit, count), 3)
    return format_amount(value, unit, digits), format_amount(bound, unit, digits)


def decimals_apart(value: float, bound: float, decimals: int = 1) -> str:
    """Return a number with so many decimals, or with more where it would read as its bound."""
    count = digits_apart(value, bound, lambda number, more: f"{number:.{more}f}", decimals)
    return f"{value:.{count}f}"


def percent(share: float) -> str:
    """Return a share in percent, with one decimal: ``12.5 %``."""
    return f"{100 * share:.1f} %"


def clock_words(seconds: float) -> str:
    """Format a span of a clock, to whole seconds: ``45 s``, ``2 min``, ``1 min 30 s``, ``1 h``."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    parts = [(hours, "h"), (minutes, "min"), (rest, "s")]
    return " ".join(f"{count} {unit}" for count, unit in parts if count) or "0 s"


def common_scale(values: Iterable[float], unit: str) -> tuple[float, str]:
    """Choose one people's unit for values that are read side by side.

    It is the unit of their median, or the next larger one where numbers of four digits and more
    would be common otherwise: 0.9 ms and 1.1 ms share a unit, so that eyes can compare them.

    Args:
        values: In the SI unit ``unit``.
        unit: A key of :data:`FACTORS`.

    Returns:
        How many SI units one of it is, and its name: ``(0.001, "ms")``.
    """
    scales = _SCALES.get(unit)
    if scales is None:
        return (0.01, "%") if unit == "ratio" else (1.0, "" if unit == "1" else unit)
    magnitudes = sorted(abs(value) for value in values if value) or [1.0]
    median = magnitudes[len(magnitudes) // 2]
    index = max((i for i, (factor, _) in enumerate(scales) if factor <= median), default=0)
    if magnitudes[-1] >= 3000 * scales[index][0] and index + 1 < len(scales):
        index += 1
    return scales[index]


_SCALES: dict[str, tuple[tuple[float, str], ...]] = {
    "s": ((1e-9, "ns"), (1e-6, "µs"), (1e-3, "ms"), (1.0, "s")),
    "bytes": ((1.0, "B"), (1e3, "kB"), (1e6, "MB"), (1e9, "GB")),
    "1/s": ((1.0, "/s"), (1e3, "k/s"), (1e6, "M/s")),
    "W": ((1e-3, "mW"), (1.0, "W")),
    "J": ((1e-6, "µJ"), (1e-3, "mJ"), (1.0, "J")),
}


def significant(value: float, digits: int = 3) -> str:
    """Write a number to so many significant digits, without an exponent: ``0.0120``, ``1240``."""
    if value == 0:
        return "0"
    exponent = math.floor(math.log10(abs(value)))
    decimals = digits - 1 - exponent
    rounded = round(value, decimals)
    if rounded and math.floor(math.log10(abs(rounded))) > exponent:
        decimals -= 1
    return f"{rounded:.{max(decimals, 0)}f}"


def counted(number: int, noun: str, ending: str = "s") -> str:
    """Return a number and what is counted: ``1 case``, ``3 cases``, ``3 launches``."""
    return f"{number} {noun}{ending if number != 1 else ''}"
