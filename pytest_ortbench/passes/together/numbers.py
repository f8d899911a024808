"""How much slower a model is beside others: the ratio of blocks that were timed in one round."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import median

from pytest_ortbench.analysis.between_processes import OfProcess, over_processes
from pytest_ortbench.analysis.collector import Collector
from pytest_ortbench.analysis.order import interval_ranks
from pytest_ortbench.core.outcome import CaseResult
from pytest_ortbench.passes.together.declaration import PASS
from pytest_ortbench.passes.together.facts import Together, TogetherLaunch


@dataclass(frozen=True, slots=True, kw_only=True)
class Interference:
    """What running beside others costs in one way.

    Attributes:
        ratio: Latency beside the others ÷ alone, the median of the launches.
        low: Lower end of its 95 % interval over fresh processes.
        high: Upper end.
        alone_s: Median latency alone, in the same rounds.
        beside_s: Median latency beside the others.
        rounds: Rounds of all launches.
    """

    ratio: float
    low: float
    high: float
    alone_s: float
    beside_s: float
    rounds: int


def interference(together: Together) -> Interference | str:
    """Return what one way costs, or why that is not known."""
    if together.reason:
        return together.reason
    own = [_of_launch(launch) for launch in together.launches]
    low, high = over_processes(own)
    alone, beside = (
        median(value for launch in together.launches for value in getattr(launch, name)) * 1e-9
        for name in ("alone_ns", "beside_ns")
    )
    return Interference(
        ratio=median(launch.value for launch in own),
        low=low,
        high=high,
        alone_s=alone,
        beside_s=beside,
        rounds=sum(len(launch.alone_ns) for launch in together.launches),
    )


def _of_launch(launch: TogetherLaunch) -> OfProcess:
    """The median of the ratios of its rounds, with its interval by order statistics."""
    ratios = sorted(
        beside / alone for beside, alone in zip(launch.beside_ns, launch.alone_ns, strict=True)
    )
    first, last = interval_ranks(50, len(ratios)) or (1, len(ratios))
    return OfProcess(ratios[first - 1], median(ratios), ratios[last - 1])


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
            collector.add(name, found.ratio, low=found.low, high=found.high, samples=found.rounds)
