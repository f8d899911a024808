"""Reading what load a case should be put under: ``server:100:20ms``."""

from __future__ import annotations

import re
from contextlib import suppress
from dataclasses import replace

from pytest_ortbench.core.case import Case
from pytest_ortbench.core.errors import UsageError, did_you_mean, nearest
from pytest_ortbench.core.units import counted, parse_amount
from pytest_ortbench.passes.load.facts import (
    SCENARIOS,
    TOKEN_LIMITS,
    TPOT,
    TTFT,
    LoadOrigin,
    LoadSpec,
)

#: How each scenario is written.
FORMS: dict[str, str] = {
    "single-stream": "single-stream or single-stream:p90",
    "multi-stream": "multi-stream or multi-stream:p99",
    "server": "e.g. server:100:20ms for 100 requests a second with a limit of 20 ms. For a "
    "language model, write e.g. server:2:ttft=2s with a limit on the time to the first token",
    "offline": "offline",
    "peak": "e.g. peak:p99:20ms with a limit of 20 ms. For a language model, write e.g. "
    "peak:ttft=2s with a limit on the time to the first token",
}
#: What a part that is a time ends with; a rate may end with ``/s``.
_LIKE_A_TIME = re.compile(r"[^/]*\d\s*[a-zµ]+", re.IGNORECASE)

#: Percentiles of MLPerf's rules.
_USUAL = {"single-stream": 90.0, "multi-stream": 99.0, "server": 99.0, "offline": 90.0}
#: Of limits of tokens, where nobody says it: requests take seconds, and p99 asks for 700 of them.
_USUAL_OF_TOKENS = 90.0
#: Limits of tokens as messages propose them.
_LIMIT_EXAMPLES = {TTFT: "2s", TPOT: "200ms"}
_LIMIT_MEANINGS = {TTFT: "the time to the first token", TPOT: "the time per output token"}
_LONGEST_S = 86400.0
#: The highest rate of requests that can be asked for.
FASTEST_PER_S = 1e6
_PERCENT = re.compile(r"[pP](\d{1,2}(?:\.\d{1,3})?)")
_NUMBER = re.compile(r"\d+\.?\d*|\.\d+")
#: Where a load is from, behind it: ``@metrics.prom:0123456789abcdef``.
_ORIGIN = re.compile(r"([A-Za-z0-9._+-]{1,60}):([0-9a-f]{16})(:rate)?")


def parse_load(text: str, *, place: str) -> LoadSpec:
    """Read one load.

    Args:
        text: As written.
        place: Where, for messages.

    Raises:
        UsageError: for an unknown scenario, a part too many or too few, and a number that can't be.
    """
    if "@" in text:
        return _with_origin(text, place)
    scenario, *every = (part.strip() for part in text.strip().split(":"))
    if scenario not in SCENARIOS:
        raise UsageError(
            f"{scenario!r} in {text!r} is not a load scenario",
            place=place,
            hint=_near_load(scenario, every),
        )
    for part, after in zip(every, (*every, "")[1:], strict=True):
        name = part.rstrip("= ")
        if name.lower() not in TOKEN_LIMITS:
            continue
        if _LIKE_A_TIME.fullmatch(after):
            raise UsageError(
                f"{text!r} has a colon between {name} and its time",
                place=place,
                hint=f"Write {name}={after}",
            )
        raise UsageError(
            f"{part!r} in {text!r} has no time",
            place=place,
            hint=f"Write the limit behind it, e.g. {name}={_LIMIT_EXAMPLES[name.lower()]}",
        )
    parts = [part for part in every if not is_of_tokens(part)]
    if len(parts) < len(every):
        limits = [part for part in every if is_of_tokens(part)]
        return _of_tokens(text, scenario, parts, limits, place)
    least, most = {"server": (2, 3), "peak": (2, 2), "offline": (0, 0)}.get(scenario, (0, 1))
    if not least <= len(parts) <= most:
        raise _wrong_count(text, parts, _lacking(scenario, parts), most, place)
    if scenario == "peak":
        return LoadSpec(
            text=text.strip(),
            scenario=scenario,
            percent=read_percentile(parts[0], text, place),
            latency_s=read_latency(parts[1], text, place),
        )
    rate_per_s = _rate(parts[0], text, place) if scenario == "server" else None
    latency_s = read_latency(parts[1], text, place) if scenario == "server" else None
    percent = (
        read_percentile(parts[-1], text, place) if len(parts) == most > 0 else _USUAL[scenario]
    )
    if scenario != "server":
        return LoadSpec(text=text.strip(), scenario=scenario, percent=percent)
    return LoadSpec(
        text=text.strip(),
        scenario=scenario,
        percent=percent,
        rate_per_s=rate_per_s,
        latency_s=latency_s,
    )


def _near_load(scenario: str, parts: list[str]) -> str:
    """Return the load that may be meant where the scenario is not known."""
    near = nearest(scenario, SCENARIOS)
    if _NUMBER.fullmatch(scenario) and parts:
        load = ":".join(("server", scenario, *parts))
        with suppress(UsageError):
            parse_load(load, place="")
            return f"Did you mean {load!r}?"
    if not near:
        return did_you_mean(scenario, SCENARIOS)
    load = ":".join((near, *parts))
    try:
        parse_load(load, place="")
    except UsageError as error:
        return f"Did you mean {near!r}? {error.hint}"
    return f"Did you mean {load!r}?"


def _lacking(scenario: str, parts: list[str]) -> str:
    """Return what a load has too few parts for; empty where it has enough of them."""
    first = {"server": "rate", "peak": "percentile"}.get(scenario, "")
    if not first or len(parts) > 1:
        return ""
    if not parts:
        return f"{first} and no latency limit"
    return "latency limit" if _has_first(parts) else first


def _has_first(parts: list[str]) -> bool:
    """Whether a rate or a percentile stands first, rather than a latency limit."""
    return bool(parts) and (
        bool(_PERCENT.fullmatch(parts[0])) or not _LIKE_A_TIME.fullmatch(parts[0])
    )


def _wrong_count(text: str, parts: list[str], lacking: str, most: int, place: str) -> UsageError:
    """Return the error of a load with too few parts, or with too many."""
    scenario = _scenario(text)
    besides = " besides limits on tokens" if is_of_tokens(text) else ""
    many = counted(len(parts), "value")
    has = f"{text!r} has {many} behind {scenario}{besides} ({', '.join(parts)})"
    return UsageError(
        f"{text!r} has no {lacking}"
        if lacking
        else f"{has}, but {f'at most {most} can stand there' if most else 'takes none'}",
        place=place,
        hint=_completed(text, parts) if lacking and ":" in text else f"Write {FORMS[scenario]}",
    )


def _completed(text: str, plain: list[str]) -> str:
    """Return how a load is written with the part that it lacks.

    Args:
        text: As written.
        plain: Its parts without limits on tokens.
    """
    scenario, *parts = (part.strip() for part in text.split(":"))
    if _has_first(plain):
        load = ":".join((scenario, *parts))
        tokens = f"{TTFT}={_LIMIT_EXAMPLES[TTFT]}"
        return f"Write e.g. {load}:20ms. For a language model, write e.g. {load}:{tokens}"
    first = "p99" if scenario == "peak" else "2" if is_of_tokens(text) else "100"
    return f"Write e.g. {':'.join((scenario, first, *parts))}"


def _scenario(text: str) -> str:
    return text.partition(":")[0].strip()


def with_percent(spec: LoadSpec, percent: float) -> str:
    """Return how the same load is written for another percentile."""
    scenario, *parts = spec.text.partition("@")[0].split(":")
    others = [part for part in parts if not _PERCENT.fullmatch(part.strip())]
    where = 0 if scenario == "peak" else len(others)
    return ":".join((scenario, *others[:where], f"p{percent:g}", *others[where:]))


def origin_text(origin: LoadOrigin) -> str:
    """Return what the text of a load says of its file, for :func:`parse_load` to read."""
    return f"@{origin.file}:{origin.digest}{'' if origin.gives_limit else ':rate'}"


def about_origin(spec: LoadSpec) -> str:
    """Say which file a load was made of, and what of it; empty where the user wrote it."""
    origin = spec.origin
    if origin is None:
        return ""
    what = "rate and limit are" if origin.gives_limit else "the rate is"
    return f"{what} what {origin.file} reports (SHA-256 {origin.digest}…)"


def _with_origin(text: str, place: str) -> LoadSpec:
    """Read a load that was made of a file: ``server:12:9ms:p99@m.prom:0123456789abcdef``."""
    load, _, origin = text.strip().partition("@")
    match = _ORIGIN.fullmatch(origin)
    spec = parse_load(load, place=place)
    if match is None or spec.scenario != "server" or spec.is_of_tokens:
        raise UsageError(
            f"{text!r} has an @, which is no part of a load",
            place=place,
            hint="Leave out the @ and what follows",
        )
    file, digest, rate_alone = match.groups()
    return replace(
        spec,
        text=text.strip(),
        origin=LoadOrigin(file=file, digest=digest, gives_limit=not rate_alone),
    )


def why_unfit(spec: LoadSpec, case: Case) -> str:
    """Return why a load can't be had of a case; empty if it can."""
    if not spec.is_of_tokens:
        return ""
    if case.generation is None:
        return (
            "ttft and tpot are limits for requests to a language model, but single inferences are "
            "timed here"
        )
    if case.generation.new_tokens < 2:
        return "a request writes one token, but the time per output token starts with the second"
    if case.batch > 1:
        return f"limits on tokens are for requests of one sequence, not of {case.batch}"
    return ""


def fitting_loads(case: Case) -> tuple[str, ...]:
    """Return the loads that a case was asked for, without those of tokens that it can't have."""
    has_tokens = case.generation is not None and case.batch == 1
    return tuple(text for text in case.sampling.loads if has_tokens or not is_of_tokens(text))


def is_of_tokens(text: str) -> bool:
    """Return whether a load is written with limits of tokens, however well."""
    return "=" in text


def _of_tokens(
    text: str, scenario: str, parts: list[str], limits: list[str], place: str
) -> LoadSpec:
    """Read a load whose bounds are those of tokens: ``server:2:ttft=2s:tpot=200ms``."""
    least = {"server": 1, "peak": 0}.get(scenario)
    if least is None:
        raise UsageError(
            f"the scenario {scenario} takes no limit on tokens, but {text!r} has one",
            place=place,
            hint=f"To keep the scenario, write {':'.join((scenario, *parts))}. To test this limit "
            f"at e.g. 2 requests a second, write {':'.join(('server:2', *limits))}",
        )
    beside = next((part for part in parts[least:] if _LIKE_A_TIME.fullmatch(part)), "")
    if beside:
        raise UsageError(
            f"{text!r} has both the latency limit {beside!r} and {' and '.join(limits)}, but a "
            "load has either a latency limit or limits on tokens",
            place=place,
            hint=f"Leave {beside} out, or leave {' and '.join(limits)} out",
        )
    if not least <= len(parts) <= least + 1:
        raise _wrong_count(text, parts, "" if parts else "rate", least + 1, place)
    bounds: dict[str, float] = {}
    for limit in limits:
        name, _, amount = (part.strip() for part in limit.partition("="))
        if name.lower() not in TOKEN_LIMITS:
            raise UsageError(
                f"{limit!r} in {text!r} is not a limit",
                place=place,
                hint=_other_limit(limit, limits, amount),
            )
        if name.lower() in bounds:
            raise UsageError(
                f"{name.lower()} is given twice in {text!r}",
                place=place,
                hint="Keep one of "
                + " and ".join(x for x in limits if x.lower().startswith(f"{name.lower()}=")),
            )
        bounds[name.lower()] = read_latency(amount, text, place)
    return LoadSpec(
        text=text.strip(),
        scenario=scenario,
        percent=read_percentile(parts[least], text, place) if parts[least:] else _USUAL_OF_TOKENS,
        rate_per_s=_rate(parts[0], text, place) if least else None,
        first_token_s=bounds.get(TTFT),
        token_time_s=bounds.get(TPOT),
    )


def _other_limit(limit: str, limits: list[str], amount: str) -> str:
    """Return what to write in place of a limit that is none; what is written is not proposed."""
    time = amount if _LIKE_A_TIME.fullmatch(amount) else ""
    written = {other.partition("=")[0].strip().lower() for other in limits}
    free = [
        f"{name}={time or _LIMIT_EXAMPLES[name]} for {what}"
        for name, what in _LIMIT_MEANINGS.items()
        if name not in written
    ]
    if len(limits) > 1:
        return f"Leave {limit} out" + (f", or write {free[0]}" if free else "")
    alone = f". For the latency of an inference, write {time} alone" if time else ""
    return f"Write {', or '.join(free)}{alone}"


def read_percentile(part: str, text: str, place: str) -> float:
    """Read a percentile.

    Args:
        part: The percentile.
        text: The load that it is a part of, as it was written.
        place: Where, for messages.

    Raises:
        UsageError: for anything else.
    """
    match = _PERCENT.fullmatch(part)
    value = float(match[1]) if match else 0.0
    if not 50.0 <= value < 100.0:
        raise UsageError(
            f"the percentile {part!r} in {text!r} is out of range"
            if match or (part[:1] in ("p", "P") and _NUMBER.fullmatch(part[1:]))
            else f"{part!r} in {text!r} is not a percentile",
            place=place,
            hint=f"Write p{part}"
            if _PERCENT.fullmatch(f"p{part}") and float(part) >= 50.0
            else _other_than_percentile(part, text) or "Write one from p50 to below p100, e.g. p99",
        )
    return value


def _other_than_percentile(part: str, text: str) -> str:
    """Return what to write where something else than a percentile stands; empty if it is near."""
    scenario, *parts = (other.strip() for other in text.split(":"))
    if part[:1] in ("p", "P") or not (scenario == "peak" or _LIKE_A_TIME.fullmatch(part)):
        return ""
    others = parts.copy()
    if part in others:
        others.remove(part)
    if scenario == "server":
        load = ":".join((scenario, *others))
        return f"Write {load}, or with a percentile {load}:p99"
    if scenario == "peak" and is_of_tokens(text):
        limits = ":".join(others)
        return f"Write peak:{limits}, or with a percentile peak:p{_USUAL_OF_TOKENS:g}:{limits}"
    if scenario == "peak" and others and _PERCENT.fullmatch(others[0]):
        return f"Write the percentile first: {':'.join((scenario, *others, part))}"
    if scenario == "peak" and others and _LIKE_A_TIME.fullmatch(others[0]):
        return f"Write e.g. {':'.join((scenario, 'p99', *others))}"
    form = FORMS.get(scenario, "")
    return form and f"Write {form}"


def read_latency(part: str, text: str, place: str) -> float:
    """Read a limit of times, in seconds.

    Args:
        part: The limit.
        text: The load that it is a part of, as it was written.
        place: Where, for messages.

    Raises:
        UsageError: for anything else.
    """
    others = [other.strip() for other in text.split(":")]
    if _PERCENT.fullmatch(part) and part in others:
        others.remove(part)
        limit = "" if any(map(_LIKE_A_TIME.fullmatch, others)) else "20ms"
        raise UsageError(
            f"{text!r} has the percentile {part!r} in place of a latency limit",
            place=place,
            hint="Write the percentile behind the latency limit, e.g. "
            f"{':'.join(filter(None, (*others, limit, part)))}",
        )
    if _NUMBER.fullmatch(part):
        raise UsageError(
            f"the latency {part!r} in {text!r} has no unit",
            place=place,
            hint=f"For seconds, write {part}s. For milliseconds, write {part}ms",
        )
    try:
        value = parse_amount(part, "s", place=place)
    except UsageError:
        raise UsageError(
            f"the latency {part!r} in {text!r} is not a time",
            place=place,
            hint="Write a number with one of the units us, ms, s and min, e.g. 20ms",
        ) from None
    if not 0.0 < value <= _LONGEST_S:
        raise UsageError(
            f"the latency {part!r} in {text!r} is out of range",
            place=place,
            hint="Write a time above 0 and up to a day, e.g. 20ms",
        )
    return value


def _rate(part: str, text: str, place: str) -> float:
    try:
        value = parse_amount(part, "1/s", place=place)
    except UsageError:
        raise UsageError(
            f"the rate {part!r} in {text!r} is not a number",
            place=place,
            hint=_with_rate(part, text),
        ) from None
    if not 0.0 < value <= FASTEST_PER_S:
        raise UsageError(
            f"the rate {part!r} in {text!r} is out of range",
            place=place,
            hint="Write a number of requests a second above 0 and up to 1000000, e.g. 100",
        )
    return value


def _with_rate(part: str, text: str) -> str:
    """Return what to write in place of a value that is not a rate, such as a latency limit."""
    scenario, *parts = (other.strip() for other in text.split(":"))
    try:
        parse_amount(part, "s", place="")
    except UsageError:
        return "Write how many requests arrive a second, e.g. 100"
    others = [other for other in parts if other != part]
    if others and _NUMBER.fullmatch(others[0]):
        load = ":".join((scenario, others[0], part, *others[1:]))
        return f"Write the rate before the latency limit: {load}"
    load = ":".join((scenario, "100", part, *others))
    return f"Put the rate (requests per second) before the latency limit, e.g. {load}"
