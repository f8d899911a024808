"""Several models as one workload: so many requests of each a second, served by the same machines.

A request of the mix is one of any of its models, by their shares. A machine holds sessions of all
models, and each of its queues gets requests of all; so a request waits for those of other models,
too. Each model must keep the limit, not just all requests taken together.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from pytest_ortbench.core.errors import UsageError
from pytest_ortbench.core.quantity import Quantity
from pytest_ortbench.fleet.numbers.facts import CaseFacts, ServedRate, quantiles
from pytest_ortbench.fleet.numbers.matrix import variant_label

#: Seconds of the units that a rate may have.
_UNITS = {"s": 1.0, "min": 60.0, "h": 3600.0}

#: Beyond any rate.
_MOST = 1e12
_EXAMPLE = 'Write e.g. "det:40/s,rec:120/s"'


@dataclass(frozen=True, slots=True, kw_only=True)
class MixPart:
    """One model of a mix.

    Attributes:
        name: Of the model, with its workload behind a slash where it has several: ``det/b8``.
        rate_per_s: Requests a second.
    """

    name: str
    rate_per_s: float


def parse_mix(text: str, place: str) -> tuple[MixPart, ...]:
    """Read ``det:40/s,rec:120/s``.

    Args:
        text: As written.
        place: Where it stands, for messages.

    Raises:
        UsageError: if an entry has no name, no rate, no unit or a rate that can't be, or a name
            stands there twice.
    """
    parts: list[MixPart] = []
    _refuse_other_separators(text, place)
    for entry in text.split(","):
        name, colon, written = (word.strip() for word in entry.rpartition(":"))
        if not colon or not name:
            raise _no_part(entry.strip(), text, place)
        part = MixPart(name=name, rate_per_s=_rate(written, place, model=name))
        for other in parts:
            if other.name == name:
                both = other.rate_per_s + part.rate_per_s
                raise UsageError(
                    f"the model {name!r} is named twice",
                    place=place,
                    hint=f'Name it once, with the sum of the two rates: "{name}:{both:g}/s"',
                )
        parts.append(part)
    return tuple(parts)


def _no_part(entry: str, text: str, place: str) -> UsageError:
    """Say what an entry of a mix lacks: the model, its rate, or both."""
    if not text.strip():
        return UsageError("the mix is empty", place=place, hint=_EXAMPLE)
    if not entry:
        filled = [word for word in map(str.strip, text.split(",")) if word]
        return UsageError(
            f"an entry of {text!r} is empty",
            place=place,
            hint=f'Write "{",".join(filled)}"' if filled else _EXAMPLE,
        )
    if ":" not in entry:
        return UsageError(
            f"the model {entry!r} has no rate", place=place, hint=f'Write e.g. "{entry}:40/s"'
        )
    return UsageError(
        f"{entry!r} names no model",
        place=place,
        hint=f'Write the name of a model in front of the colon, e.g. "det{entry}"',
    )


def _refuse_other_separators(text: str, place: str) -> None:
    """Refuse models that blanks, semicolons, plus signs or ``and`` stand between."""
    mended = re.sub(
        r"(:\s*[\d.]+\s*/\s*(?:s|min|h))(?:\s*[;+&]\s*|\s+and\s+|\s+)(?=\S)", r"\1,", text
    )
    if mended != text:
        raise UsageError(
            f"the models in {text!r} are not separated by commas",
            place=place,
            hint=f'Write "{mended}"',
        )


def parse_rate(text: str, place: str) -> float:
    """Read ``500``, ``500/s``, ``30000/min`` or ``1e6/h`` as requests a second.

    Args:
        text: As written; without a unit a second is meant.
        place: Where it stands, for messages.

    Raises:
        UsageError: if it is no number, has another unit, or can't be a rate.
    """
    return _rate(text, place, unit_may_lack=True)


def _rate(written: str, place: str, *, model: str = "", unit_may_lack: bool = False) -> float:
    """Read the rate of a model, or that of all requests."""
    number, slash, unit = (word.strip() for word in written.partition("/"))
    of, before = (f"the rate of {model!r}", f"{model}:") if model else ("the rate", "")
    try:
        value = float(number)
        seconds = _UNITS[unit] if slash else _UNITS["s"] if unit_may_lack else None
    except (ValueError, KeyError):
        raise UsageError(
            f"{of} is {written!r}, not a number with /s, /min or /h",
            place=place,
            hint=f'Write e.g. "{before}40/s"',
        ) from None
    if seconds is None:
        raise UsageError(
            f"{of} is {written}, without a unit",
            place=place,
            hint=f'For requests a second, write "{before}{written}/s"',
        )
    if not 0 < value <= _MOST:
        raise UsageError(
            f"{of} is {written}, not a number above 0 and up to {_MOST:,.0f}",
            place=place,
            hint=f"If {model!r} gets no requests, leave it out"
            if model and value == 0
            else f'Write e.g. "{before}40/s"',
        )
    return value / seconds


def total_rate(mix: Sequence[MixPart]) -> float:
    """Return the requests a second of all models together."""
    return math.fsum(part.rate_per_s for part in mix)


def mix_words(mix: Sequence[MixPart]) -> str:
    """Write a mix for people: ``det 40/s + rec 120/s``."""
    return " + ".join(f"{part.name} {part.rate_per_s:g}/s" for part in mix)


def busy_shares(cases: Sequence[CaseFacts], mix: Sequence[MixPart]) -> tuple[float, ...]:
    """Return which share of the busy time each model of a mix takes."""
    times = [
        part.rate_per_s * case.batch / case.quantities["throughput"].value
        for case, part in zip(cases, mix, strict=True)
    ]
    return tuple(time / math.fsum(times) for time in times)


def as_one(
    cases: Sequence[CaseFacts], mix: Sequence[MixPart], peaks: Sequence[ServedRate] = ()
) -> CaseFacts:
    """Return the case that stands for a mix on a machine; an item of it is a request.

    Args:
        cases: One for each part, all with as many inferences at a time, and a throughput.
        mix: The parts.
        peaks: The highest rate of arrival of each part alone that was served in time; empty unless
            all have one. Together they serve what is left by the time that each takes.
    """
    shares = [part.rate_per_s / total_rate(mix) for part in mix]
    service = [case.service_s for case in cases]
    quantities = {"throughput": _throughput(cases, shares)}
    means = [case.quantities.get("latency_mean") for case in cases]
    known = [mean for mean in means if mean is not None]
    if len(known) == len(cases):
        quantities["latency_mean"] = _weighted(known, shares)
    labels = [variant_label(replace(case, processes=1)) for case in cases]
    first = cases[0]
    return replace(
        first,
        case_id=" + ".join(case.case_id for case in cases),
        model=mix_words(mix),
        batch=1,
        dims=(),
        knobs=(),
        role=first.role if len({case.role for case in cases}) == 1 else "",
        variant=labels[0]
        if len(set(labels)) == 1
        else " + ".join(f"{part.name} {label}" for part, label in zip(mix, labels, strict=True)),
        quantities=quantities,
        power=_power(cases, busy_shares(cases, mix)),
        power_reason=next((case.power_reason for case in cases if case.power_reason), ""),
        blurred_by=tuple(dict.fromkeys(flag for case in cases for flag in case.blurred_by)),
        service_s=quantiles(
            [value for points in service for value in points],
            [
                share / len(points)
                for share, points in zip(shares, service, strict=True)
                for _ in points
            ],
        )
        if all(service)
        else (),
        kinds=tuple(service) if all(service) else (),
        idle_w=None
        if any(case.idle_w is None for case in cases)
        else max(case.idle_w or 0.0 for case in cases),
        served=(_peak(peaks, shares),) if peaks else (),
        threads=max(case.threads for case in cases),
        cpus=max(case.cpus for case in cases),
        parallel=(),
    )


def _throughput(cases: Sequence[CaseFacts], shares: Sequence[float]) -> Quantity:
    """Requests a second at full load: each model takes the time of its share."""

    def together(rates: Sequence[float]) -> float:
        times = (
            share * case.batch / rate
            for share, case, rate in zip(shares, cases, rates, strict=True)
        )
        return 1 / math.fsum(times)

    return _joined([case.quantities["throughput"] for case in cases], together)


def _weighted(quantities: Sequence[Quantity], weights: Sequence[float]) -> Quantity:
    def mean(values: Sequence[float]) -> float:
        return math.fsum(value * weight for value, weight in zip(values, weights, strict=True))

    return _joined(quantities, mean)


def _joined(quantities: Sequence[Quantity], join: Callable[[Sequence[float]], float]) -> Quantity:
    """Join quantities and the ends of their intervals; one without an end is taken for certain."""
    return Quantity(
        value=join([quantity.value for quantity in quantities]),
        unit=quantities[0].unit,
        low=join(
            [quantity.value if quantity.low is None else quantity.low for quantity in quantities]
        ),
        high=join(
            [quantity.value if quantity.high is None else quantity.high for quantity in quantities]
        ),
        samples=min(quantity.samples for quantity in quantities),
    )


def _power(cases: Sequence[CaseFacts], busy: Sequence[float]) -> Quantity | None:
    """The mean over the busy time; ``None`` unless it is known of every model."""
    known = [case.power for case in cases if case.power is not None]
    return _weighted(known, busy) if len(known) == len(cases) else None


def _peak(peaks: Sequence[ServedRate], shares: Sequence[float]) -> ServedRate:
    def together(rates: Sequence[float]) -> float:
        return 1 / math.fsum(share / rate for share, rate in zip(shares, rates, strict=True))

    beyond = [peak.beyond_per_s for peak in peaks if peak.beyond_per_s is not None]
    return ServedRate(
        rate_per_s=together([peak.rate_per_s for peak in peaks]),
        beyond_per_s=together(beyond) if len(beyond) == len(peaks) else None,
        percent=min(peak.percent for peak in peaks),
        latency_s=max(peak.latency_s for peak in peaks),
        searched=True,
    )
