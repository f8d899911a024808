"""Reading what load a case should be put under: ``server:100:20ms``."""

from __future__ import annotations

import re

from pytest_ortbench.core.errors import UsageError, did_you_mean
from pytest_ortbench.core.units import parse_amount
from pytest_ortbench.passes.load.facts import SCENARIOS, LoadSpec

#: How each scenario is written.
FORMS: dict[str, str] = {
    "single-stream": "single-stream or single-stream:p90",
    "multi-stream": "multi-stream or multi-stream:p99",
    "server": "server:RATE:LATENCY or server:RATE:LATENCY:p99, e.g. server:100:20ms",
    "offline": "offline",
    "peak": "peak:pNN:LATENCY, e.g. peak:p99:20ms",
}

#: Percentiles of MLPerf's rules.
_USUAL = {"single-stream": 90.0, "multi-stream": 99.0, "server": 99.0, "offline": 90.0}
_LONGEST_S = 86400.0
_FASTEST_PER_S = 1e6


def parse_load(text: str, *, place: str) -> LoadSpec:
    """Read one load.

    Args:
        text: As written.
        place: Where, for messages.

    Raises:
        UsageError: for an unknown scenario, a part too many or too few, and a number that can't be.
    """
    scenario, *parts = (part.strip() for part in text.strip().split(":"))
    if scenario not in SCENARIOS:
        raise UsageError(
            f"{scenario!r} in {text!r} is no load scenario",
            place=place,
            hint=did_you_mean(scenario, SCENARIOS),
        )
    least, most = {"server": (2, 3), "peak": (2, 2), "offline": (0, 0)}.get(scenario, (0, 1))
    if not least <= len(parts) <= most:
        few = "few" if len(parts) < least else "many"
        raise UsageError(
            f"{text!r} has too {few} parts", place=place, hint=f"Write {FORMS[scenario]}"
        )
    if scenario == "peak":
        return LoadSpec(
            text=text.strip(),
            scenario=scenario,
            percent=_percent(parts[0], text, place),
            latency_s=_latency(parts[1], text, place),
        )
    percent = _percent(parts[-1], text, place) if len(parts) == most > 0 else _USUAL[scenario]
    if scenario != "server":
        return LoadSpec(text=text.strip(), scenario=scenario, percent=percent)
    return LoadSpec(
        text=text.strip(),
        scenario=scenario,
        percent=percent,
        rate_per_s=_rate(parts[0], text, place),
        latency_s=_latency(parts[1], text, place),
    )


def _percent(part: str, text: str, place: str) -> float:
    match = re.fullmatch(r"[pP](\d{1,2}(?:\.\d{1,3})?)", part)
    value = float(match[1]) if match else 0.0
    if not 50.0 <= value < 100.0:
        raise UsageError(
            f"{part!r} in {text!r} is no percentile",
            place=place,
            hint="Write one from p50 to below p100, e.g. p99",
        )
    return value


def _latency(part: str, text: str, place: str) -> float:
    if part[-1:].isdigit():
        raise UsageError(
            f"the latency {part!r} in {text!r} has no unit", place=place, hint="Write e.g. 20ms"
        )
    value = parse_amount(part, "s", place=place)
    if not 0.0 < value <= _LONGEST_S:
        raise UsageError(
            f"the latency {part!r} in {text!r} is out of range",
            place=place,
            hint="Write a time above 0, e.g. 20ms",
        )
    return value


def _rate(part: str, text: str, place: str) -> float:
    value = parse_amount(part, "1/s", place=place)
    if not 0.0 < value <= _FASTEST_PER_S:
        raise UsageError(
            f"the rate {part!r} in {text!r} is out of range",
            place=place,
            hint="Write requests a second above 0, at most 1000000, e.g. 100",
        )
    return value
