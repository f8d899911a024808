"""The latency of a model as a multiple of a yardstick's, which a shared machine slows down alike.

A worker gives one ratio. On one CPU it is that of the floors, the 5th percentiles of the blocks of
either side: one minute or another, both sides have blocks that nothing disturbed. A model on
several CPUs has few of those, so there it is the median of the ratios of blocks that were timed
in one round. ``docs/concepts/yardstick.md`` has what both are worth.

Two ratios compare only where the same yardstick took turns with the same model on as many CPUs: see
:func:`mismatch`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from pytest_ortbench.analysis.between_processes import (
    BETWEEN_RATIOS,
    OfProcess,
    over_processes,
)
from pytest_ortbench.analysis.order import nearest_rank
from pytest_ortbench.analysis.paired_ratio import paired_ratio
from pytest_ortbench.analysis.samples import between_runs
from pytest_ortbench.core.outcome import CaseResult
from pytest_ortbench.core.yardstick import ABSENCES, Yardstick, YardstickTurns

#: Flags that say that a side did not get the CPUs that it would use, so that no ratio holds.
STARVING_FLAGS = ("CPU-SHARE", "THREADS>CPUS", "THROTTLED")

#: The percentile of a side's blocks that is its floor, and the fewest rounds that have one.
_FLOOR_PERCENT = 5.0
_FEWEST_ROUNDS = 12

#: A model that keeps no more CPUs busy than this runs on one, all else taken together.
_ONE_CPU = 1.2

#: By how much the CPUs that a side kept busy may differ between two runs that compare.
_SAME_CPUS = 0.10


@dataclass(frozen=True, slots=True, kw_only=True)
class RelativeLatency:
    """What the blocks of a case say of its latency, whatever the machine did meanwhile.

    Attributes:
        yardstick: What took turns with the model.
        estimator: ``floors`` or ``blocks``: what a ratio is made of.
        ratios: Inference ÷ unit of work of the yardstick, one a worker.
        value: The median of them.
        low: Lower end of its 95 % interval over fresh processes.
        high: Upper end.
        best_s: What a unit of work takes in quiet minutes of the machine; ``None`` if not known.
        model_cpus: CPUs that the model kept busy, the median of the workers; ``None`` if unknown.
        yardstick_cpus: Likewise of the yardstick.
    """

    yardstick: Yardstick
    estimator: str
    ratios: tuple[float, ...]
    value: float
    low: float
    high: float
    best_s: float | None
    model_cpus: float | None
    yardstick_cpus: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class NoRelativeLatency:
    """Why the blocks of a case say nothing of its latency.

    Attributes:
        cause: Name of the flag that says that CPUs were lacking; ``absence``: a worker had no
            yardstick; ``yardsticks``: not the same one in all workers; ``rounds``: too few.
        reason: The same as a sentence.
    """

    cause: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Mismatch:
    """The first fact for which two relative latencies do not compare.

    Attributes:
        field: Its name: ``yardstick``, ``estimator``, ``model_cpus``, ``yardstick_cpus``.
        before: What the earlier one has.
        after: What the later one has.
    """

    field: str
    before: str
    after: str


def relative_latency(result: CaseResult) -> RelativeLatency | NoRelativeLatency:
    """Return the latency of a case against its yardstick, or why there is none."""
    for flag in result.flags:
        if flag.name in STARVING_FLAGS:
            reason = f"{flag.name}: the model or the yardstick lacked CPUs, so no ratio holds"
            return NoRelativeLatency(cause=flag.name, reason=reason)
    workers: list[YardstickTurns] = []
    for measurement in result.measurements:
        turns = measurement.yardstick
        if turns is None or turns.yardstick is None:
            return NoRelativeLatency(cause="absence", reason=_absence(turns))
        workers.append(turns)
    yardsticks = {turns.yardstick for turns in workers if turns.yardstick is not None}
    if len(yardsticks) != 1:
        reason = "the workers took turns with different yardsticks" if workers else "no worker"
        return NoRelativeLatency(cause="yardsticks", reason=reason)
    (yardstick,) = yardsticks
    fewest = min(len(turns.model_mean_ns) for turns in workers)
    if fewest < _FEWEST_ROUNDS:
        reason = f"{fewest} rounds with the yardstick, at least {_FEWEST_ROUNDS} are needed"
        return NoRelativeLatency(cause="rounds", reason=reason)
    model_cpus = _middle([turns.model_cpus for turns in workers])
    estimator = _estimator(yardstick, model_cpus)
    estimate = _floors if estimator == "floors" else _blocks
    own = [estimate(turns) for turns in workers]
    samples = [measurement.samples for measurement in result.measurements]
    low, high = over_processes(own, between_runs=between_runs(samples, BETWEEN_RATIOS))
    best = [turns.best_ns for turns in workers if turns.best_ns is not None]
    return RelativeLatency(
        yardstick=yardstick,
        estimator=estimator,
        ratios=tuple(ratio.value for ratio in own),
        value=median(ratio.value for ratio in own),
        low=low,
        high=high,
        best_s=min(best) * 1e-9 if best else None,
        model_cpus=model_cpus,
        yardstick_cpus=_middle([turns.yardstick_cpus for turns in workers]),
    )


def mismatch(before: RelativeLatency, after: RelativeLatency) -> Mismatch | None:
    """Return why two relative latencies of one case do not compare; ``None`` if they do.

    The machines, the workloads and the threads that were asked for are for the caller to compare.
    """
    if before.yardstick != after.yardstick:
        return Mismatch(
            field="yardstick",
            before=before.yardstick.identity,
            after=after.yardstick.identity,
        )
    if before.estimator != after.estimator:
        return Mismatch(field="estimator", before=before.estimator, after=after.estimator)
    for field in ("model_cpus", "yardstick_cpus"):
        old, new = getattr(before, field), getattr(after, field)
        if (old is None) != (new is None) or (
            old is not None and max(old, new) > (1 + _SAME_CPUS) * min(old, new)
        ):
            return Mismatch(field=field, before=_cpus(old), after=_cpus(new))
    return None


def _absence(turns: YardstickTurns | None) -> str:
    """Say why a worker has no yardstick."""
    if turns is None:
        return "measured without a yardstick"
    more = f" ({turns.detail})" if turns.detail else ""
    return f"no yardstick: {ABSENCES[turns.absence]}{more}"


def _estimator(yardstick: Yardstick, model_cpus: float | None) -> str:
    alone = yardstick.threads == 1 and model_cpus is not None and model_cpus <= _ONE_CPU
    return "floors" if alone else "blocks"


def _floors(turns: YardstickTurns) -> OfProcess:
    """The ratio of both floors. How far off it is within a worker is not known."""
    return OfProcess.alone(_floor(turns.model_mean_ns) / _floor(turns.yardstick_mean_ns))


def _floor(means_ns: Sequence[int]) -> int:
    return sorted(means_ns)[nearest_rank(_FLOOR_PERCENT, len(means_ns)) - 1]


def _blocks(turns: YardstickTurns) -> OfProcess:
    """The ratio of the blocks that were timed in one round."""
    return paired_ratio(turns.model_mean_ns, turns.yardstick_mean_ns)


def _middle(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return median(known) if known and len(known) == len(values) else None


def _cpus(value: float | None) -> str:
    return "unknown" if value is None else f"{value:.2f}"
