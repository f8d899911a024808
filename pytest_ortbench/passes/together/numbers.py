"""How much slower a model is beside others: the ratio of blocks that were timed in one round."""

from __future__ import annotations

from pytest_ortbench.analysis.collector import Collector
from pytest_ortbench.analysis.paired_ratio import ratio_in_turns
from pytest_ortbench.core.outcome import CaseResult
from pytest_ortbench.passes.together.facts import WAYS


def add_interference(collector: Collector, result: CaseResult) -> None:
    """Add the ratio of each way."""
    if not result.together:
        why = "it was asked to run beside no other model (--ort-together)"
        collector.reject([f"interference_{way}" for way in WAYS], why)
        return
    for together in result.together:
        name, found = f"interference_{together.way}", ratio_in_turns(together)
        if isinstance(found, str):
            collector.reject((name,), found)
        else:
            collector.add(name, found.value, low=found.low, high=found.high, samples=found.rounds)
