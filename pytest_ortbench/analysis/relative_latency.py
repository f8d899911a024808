"""The latency of a model as a multiple of a yardstick's, which a shared machine slows down alike.

A worker gives one ratio. On one CPU it is that of the floors, the 5th percentiles of the blocks of
either side: one minute or another, both sides have blocks that nothing disturbed. A model on
several CPUs has few of those, so there it is that of the fastest inference and the fastest unit of
each block, likewise. Rounds in which the CPUs were far apart
(:mod:`pytest_ortbench.analysis.far_cpus`) are left out. ``docs/concepts/yardstick.md`` has what
both are worth.

Two ratios compare only where the same yardstick took turns with the same model on as many CPUs: see
:func:`mismatch`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import compress
from statistics import median

from pytest_ortbench.analysis.between_processes import (
    BETWEEN_RATIOS,
    OfProcess,
    over_processes,
)
from pytest_ortbench.analysis.far_cpus import FAR, are_far, nearest_handover_ns
from pytest_ortbench.analysis.order import nearest_rank
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
        estimator: ``floors`` or ``lows``: what a ratio is made of.
        ratios: Inference ÷ unit of work of the yardstick, one a worker.
        value: The median of them.
        low: Lower end of its 95 % interval over fresh processes.
        high: Upper end.
        best_s: What a unit of work takes in quiet minutes of the machine; ``None`` if not known.
        model_cpus: CPUs that the model kept busy, the median of the workers; ``None`` if unknown.
        yardstick_cpus: Likewise of the yardstick.
        handover_s: What a value took from one CPU to another and back, the median of the rounds
            that count; ``None`` if unknown.
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
    handover_s: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class NoRelativeLatency:
    """Why the blocks of a case say nothing of its latency.

    Attributes:
        cause: Name of the flag that says that CPUs were lacking; ``absence``: a worker had no
            yardstick; ``yardsticks``: not the same one in all workers; ``rounds``: too few;
            ``FAR-CPUS``: too few while the CPUs were near each other.
        reason: The same as a sentence.
    """

    cause: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Mismatch:
    """The first fact for which two relative latencies do not compare.

    Attributes:
        field: Its name: ``yardstick``, ``estimator``, ``model_cpus``, ``yardstick_cpus``,
            ``handover``.
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
    near = _near(workers)
    for cause, kept, when in (
        ("rounds", workers, ""),
        ("FAR-CPUS", near, " while the CPUs were near each other"),
    ):
        fewest = min(len(turns.model_mean_ns) for turns in kept)
        if fewest < _FEWEST_ROUNDS:
            reason = f"{fewest} rounds with the yardstick{when}, {_FEWEST_ROUNDS} are needed"
            return NoRelativeLatency(cause=cause, reason=reason)
    workers = near
    model_cpus = _middle([turns.model_cpus for turns in workers])
    estimator = _estimator(yardstick, model_cpus)
    estimate = _floors if estimator == "floors" else _lows
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
        handover_s=_handover_s(workers),
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
    ways = [way for way in (before.handover_s, after.handover_s) if way is not None]
    if len(ways) == 2 and max(ways) > FAR * min(ways):
        old_text, new_text = (f"{1e9 * way:.0f} ns" for way in ways)
        return Mismatch(field="handover", before=old_text, after=new_text)
    return None


def _near(workers: Sequence[YardstickTurns]) -> list[YardstickTurns]:
    """The same workers with the rounds in which the CPUs were near each other."""
    nearest_ns = nearest_handover_ns(workers)
    return [_only(turns, [not far for far in are_far(turns, nearest_ns)]) for turns in workers]


def _only(turns: YardstickTurns, kept: Sequence[bool]) -> YardstickTurns:
    return replace(
        turns,
        model_mean_ns=tuple(compress(turns.model_mean_ns, kept)),
        model_low_ns=tuple(compress(turns.model_low_ns, kept)),
        yardstick_mean_ns=tuple(compress(turns.yardstick_mean_ns, kept)),
        yardstick_low_ns=tuple(compress(turns.yardstick_low_ns, kept)),
        handover_ns=tuple(compress(turns.handover_ns, kept)),
    )


def _handover_s(workers: Sequence[YardstickTurns]) -> float | None:
    known = [took for turns in workers for took in turns.handover_ns if took is not None]
    return median(known) * 1e-9 if known else None


def _absence(turns: YardstickTurns | None) -> str:
    """Say why a worker has no yardstick."""
    if turns is None:
        return "measured without a yardstick"
    more = f" ({turns.detail})" if turns.detail else ""
    return f"no yardstick: {ABSENCES[turns.absence]}{more}"


def _estimator(yardstick: Yardstick, model_cpus: float | None) -> str:
    alone = yardstick.threads == 1 and model_cpus is not None and model_cpus <= _ONE_CPU
    return "floors" if alone else "lows"


def _floors(turns: YardstickTurns) -> OfProcess:
    """The ratio of both floors. How far off it is within a worker is not known."""
    return OfProcess.alone(_floor(turns.model_mean_ns) / _floor(turns.yardstick_mean_ns))


def _floor(means_ns: Sequence[int]) -> int:
    return sorted(means_ns)[nearest_rank(_FLOOR_PERCENT, len(means_ns)) - 1]


def _lows(turns: YardstickTurns) -> OfProcess:
    """Likewise of the fastest inference and the fastest unit of each block."""
    return OfProcess.alone(_floor(turns.model_low_ns) / _floor(turns.yardstick_low_ns))


def _middle(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return median(known) if known and len(known) == len(values) else None


def _cpus(value: float | None) -> str:
    return "unknown" if value is None else f"{value:.2f}"
