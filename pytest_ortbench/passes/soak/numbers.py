"""Whether memory grows for ever, told from a soak; nothing else allows that verdict."""

from __future__ import annotations

from pytest_ortbench.analysis.collector import Collector
from pytest_ortbench.analysis.memory_growth import LEAST_READINGS, Growth, add_growth, growth_of
from pytest_ortbench.core.outcome import CaseResult
from pytest_ortbench.passes.soak.facts import Soak

_GROWTH, _LEAKS = "memory_growth", "leaks"

#: How often each shape of a soak over several comes at least: once before anything counts, and
#: twice in what does.
ROUNDS = 3


def growth(soak: Soak) -> Growth | str:
    """Return the growth of a soak, or why nothing can be said."""
    if soak.reason:
        return soak.reason
    enough = len(soak.at) >= LEAST_READINGS
    if enough and soak.shapes > 1 and soak.inferences < ROUNDS * soak.shapes:
        return (
            f"{soak.inferences} inferences over {soak.shapes} shapes, but each shape must come "
            f"{ROUNDS} times: use a longer --ort-soak"
        )
    # An arena grows until it has seen the largest shape.
    seen = sum(done < soak.shapes for done in soak.at) if soak.shapes > 1 else 0
    return growth_of(
        soak.at, soak.resident_bytes, seconds=soak.seconds, longer="a longer --ort-soak", seen=seen
    )


def add_growth_of_case(collector: Collector, result: CaseResult) -> None:
    """Add the growth in a soak, and the verdict on it."""
    if result.soak is None:
        collector.reject((_GROWTH, _LEAKS), "no soak was requested (--ort-soak)")
        return
    found, count = growth(result.soak), result.soak.inferences
    add_growth(collector, found, count, growth=_GROWTH, leaks=_LEAKS)
