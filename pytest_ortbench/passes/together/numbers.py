"""How much slower a model is beside others: the ratio of blocks that were timed in one round."""

from __future__ import annotations

from pytest_ortbench.analysis.collector import Collector
from pytest_ortbench.analysis.paired_ratio import PairedRatio, over_launches
from pytest_ortbench.core.outcome import CaseResult
from pytest_ortbench.passes.together.declaration import PASS
from pytest_ortbench.passes.together.facts import Together


def interference(together: Together) -> PairedRatio | str:
    """Return the latency beside the others ÷ alone in one way, or why that is not known."""
    if together.reason:
        return together.reason
    return over_launches([(launch.beside_ns, launch.alone_ns) for launch in together.launches])


def add_interference(collector: Collector, result: CaseResult) -> None:
    """Add the ratio of each way."""
    if not result.together:
        why = "it was asked to run beside no other model (--ort-together)"
        collector.reject(PASS.metric_names, why)
        return
    for together in result.together:
        name, found = f"interference_{together.way}", interference(together)
        if isinstance(found, str):
            collector.reject((name,), found)
        else:
            collector.add(name, found.value, low=found.low, high=found.high, samples=found.rounds)
