"""What copies cost: the ratio of blocks that were timed in one round."""

from __future__ import annotations

from pytest_ortbench.analysis.collector import Collector
from pytest_ortbench.analysis.paired_ratio import ratio_in_turns
from pytest_ortbench.core.outcome import CaseResult

_METRIC = "transfer_ratio"


def add_transfers(collector: Collector, result: CaseResult) -> None:
    """Add the ratio."""
    if result.transfers is None:
        collector.reject((_METRIC,), "copies were not timed (--ort-transfers)")
        return
    cost = ratio_in_turns(result.transfers)
    if isinstance(cost, str):
        collector.reject((_METRIC,), cost)
    else:
        collector.add(_METRIC, cost.value, low=cost.low, high=cost.high, samples=cost.rounds)
