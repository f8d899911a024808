"""What a service lost under a steady load, and whether its memory keeps growing."""

from __future__ import annotations

from pytest_ortbench.analysis.collector import Collector
from pytest_ortbench.analysis.memory_growth import Growth, add_growth, growth_of
from pytest_ortbench.analysis.order import proportion_interval
from pytest_ortbench.core.outcome import CaseResult
from pytest_ortbench.passes.endurance.declaration import PASS
from pytest_ortbench.passes.endurance.facts import Endurance


def add_endurance(collector: Collector, result: CaseResult) -> None:
    """Add the numbers of the endurance of a service."""
    found = result.endurance
    if found is None:
        reason = "endurance was not requested (--ort-endurance)"
        collector.reject(PASS.metric_names, reason)
        return
    exchanges = found.exchanges
    if exchanges is None or not exchanges.sent:
        collector.reject(PASS.metric_names, found.reason or "no request was sent")
        return
    low, high = proportion_interval(exchanges.failures, exchanges.sent)
    share = exchanges.failures / exchanges.sent
    collector.add("endurance_lost", share, low=low, high=high, samples=exchanges.sent)
    collector.add("endurance_away", exchanges.away_s, samples=exchanges.sent)
    add_growth(
        collector,
        memory_growth(found),
        exchanges.sent,
        growth="endurance_growth",
        leaks="endurance_leaks",
    )


def memory_growth(found: Endurance) -> Growth | str:
    """Return how the memory of the service grew, or why nothing can be said."""
    if found.memory_note or found.reason:
        return found.memory_note or found.reason
    return growth_of(
        found.at, found.resident_bytes, seconds=found.seconds, longer="a longer --ort-endurance"
    )
