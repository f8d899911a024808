"""The latency of a model as a multiple of a yardstick's, which a shared machine slows down alike.

A worker gives one ratio, that of the lows: the 5th percentiles of the fastest inference and of the
fastest unit of each block, since few whole blocks meet nothing in a slow state of a machine. Rounds
in which the CPUs were far apart (:mod:`pytest_ortbench.analysis.machine_states`) are left out.
``docs/concepts/yardstick.md`` has what it is worth.

A unit of the yardstick is a product and a pass over memory. A slow state of a machine slows passes
down more than products, and each model has its own share of both. So a ratio is to a product and so
many passes: as many as :data:`USUAL_WEIGHTS` says, or as many as the runs of a case
show (:func:`memory_weight`).

Two ratios compare only where the same yardstick took turns with the same model on as many CPUs: see
:func:`mismatch`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import compress, pairwise
from statistics import fmean, median

from pytest_ortbench.analysis.between_processes import (
    BETWEEN_RATIOS,
    OfProcess,
    over_processes,
)
from pytest_ortbench.analysis.machine_states import FAR, are_far, nearest_handover_ns
from pytest_ortbench.analysis.order import nearest_rank
from pytest_ortbench.analysis.samples import between_runs
from pytest_ortbench.core.flags import FLAGS
from pytest_ortbench.core.outcome import CaseResult
from pytest_ortbench.core.yardstick import ABSENCES, Yardstick, YardstickTurns

#: Flags that say that a side did not get the CPUs that it would use, so that no ratio holds.
STARVING_FLAGS = ("CPU-SHARE", "THREADS>CPUS", "THROTTLED")

#: Flags of times that say nothing against their ratio to a yardstick; and flags that otherwise only
#: note something, with which ratios were seen to be off.
_OF_TIMES_ALONE = ("FAR-CPUS",)
_OF_RATIOS = ("MEMORY-BUSY", "BIMODAL", "DRIFT", "SPREAD")

#: The percentile of a side's blocks that is its floor, and the fewest rounds that have one.
_FLOOR_PERCENT = 5.0
_FEWEST_ROUNDS = 12

#: How many passes over memory may stand beside one product.
WEIGHTS = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.8, 1.0, 1.25, 1.5, 2.0, 2.5, 3.0, 4.0)

#: How many there are where no other runs say it: of models of less than :data:`LONG_NS` and of
#: those on several threads, and of long ones on one thread.
USUAL_WEIGHTS = (0.5, 1.0)
LONG_NS = 2_000_000

#: Runs of one case that say how many passes it takes, at least, and by how much less they must
#: differ for it than with the usual number: the mean square of neighbours, as a share.
FEWEST_RUNS, LESS = 6, 0.8

#: What a ratio is made of. Older runs of a self-test have others.
LOWS = "lows"

#: By how much a pass over memory may differ between two runs that compare. Where a machine's memory
#: or its last cache is slower by more, models are by what their data happen to need of it.
_SAME_MEMORY = 0.15

#: By how much the CPUs that a side kept busy may differ between two runs that compare.
_SAME_CPUS = 0.10


@dataclass(frozen=True, slots=True, kw_only=True)
class RelativeLatency:
    """What the blocks of a case say of its latency, whatever the machine did meanwhile.

    Attributes:
        yardstick: What took turns with the model.
        estimator: What a ratio is made of: :data:`LOWS`.
        ratios: Inference ÷ a product and so many passes over memory, one a worker.
        weight: How many passes these are; ``None`` where a unit of the yardstick has one part.
        by_weight: The ratios for each of :data:`WEIGHTS`; empty where there is no weight.
        value: The median of them.
        low: Lower end of its 95 % interval over fresh processes.
        high: Upper end.
        best_s: What a product and so many passes take in quiet minutes of the machine; ``None`` if
            not known.
        model_cpus: CPUs that the model kept busy, the median of the workers; ``None`` if unknown.
        yardstick_cpus: Likewise of the yardstick.
        handover_s: What a value took from one CPU to another and back, the median of the rounds
            that count; ``None`` if unknown.
        memory_s: What a pass over memory took, the median of the workers' medians, which tells
            states of a machine apart; ``None`` where a unit of the yardstick has one part.
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
    memory_s: float | None = None
    weight: float | None = None
    by_weight: tuple[tuple[float, ...], ...] = ()


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
            ``handover``, ``memory``.
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
    weight = _usual_weight(workers)
    own = [OfProcess.alone(_ratio(turns, weight)) for turns in workers]
    samples = [measurement.samples for measurement in result.measurements]
    low, high = over_processes(own, between_runs=between_runs(samples, BETWEEN_RATIOS))
    best = [
        turns.best_ns * _share_of_unit(turns, weight)
        for turns in workers
        if turns.best_ns is not None
    ]
    return RelativeLatency(
        yardstick=yardstick,
        estimator=LOWS,
        ratios=tuple(ratio.value for ratio in own),
        value=median(ratio.value for ratio in own),
        low=low,
        high=high,
        best_s=min(best) * 1e-9 if best else None,
        model_cpus=model_cpus,
        yardstick_cpus=_middle([turns.yardstick_cpus for turns in workers]),
        handover_s=_handover_s(workers),
        memory_s=_memory_s(workers),
        weight=weight,
        by_weight=ratios_by_weight(workers),
    )


def ratios_by_weight(workers: Sequence[YardstickTurns]) -> tuple[tuple[float, ...], ...]:
    """Return the ratios of workers for each of :data:`WEIGHTS`; none where units have one part."""
    if _usual_weight(workers) is None:
        return ()
    near = _near(workers)
    return tuple(tuple(_ratio(turns, weight) for turns in near) for weight in WEIGHTS)


def memory_weight(runs: Sequence[RelativeLatency]) -> float | None:
    """Return how many passes over memory make runs of one case differ least.

    It is the usual number of the first run where others are hardly better, or where there are too
    few runs. Neighbours are compared, so that one step in the code of the model counts once.

    Args:
        runs: Of one case, in the order of time, that compare with each other.
    """
    usual = runs[0].weight
    if usual is None or len(runs) < FEWEST_RUNS or not all(run.by_weight for run in runs):
        return usual
    apart = {
        weight: fmean(
            math.log(median(later.by_weight[index]) / median(earlier.by_weight[index])) ** 2
            for earlier, later in pairwise(runs)
        )
        for index, weight in enumerate(WEIGHTS)
    }
    best = min(WEIGHTS, key=apart.__getitem__)
    return best if apart[best] < LESS * apart[usual] else usual


def weighed(run: RelativeLatency, weight: float | None) -> RelativeLatency:
    """Return a ratio as one to a product and so many passes over memory.

    Its interval keeps its relative width.
    """
    if weight is None or weight == run.weight or not run.by_weight:
        return run
    ratios = run.by_weight[WEIGHTS.index(weight)]
    factor = median(ratios) / run.value
    return replace(
        run,
        weight=weight,
        ratios=ratios,
        value=median(ratios),
        low=factor * run.low,
        high=factor * run.high,
        best_s=None if run.best_s is None else run.best_s / factor,
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
    passes = [took for took in (before.memory_s, after.memory_s) if took is not None]
    if len(passes) == 2 and max(passes) > (1 + _SAME_MEMORY) * min(passes):
        old_text, new_text = (f"{1e6 * took:.0f} µs" for took in passes)
        return Mismatch(field="memory", before=old_text, after=new_text)
    return None


def blurs_ratios(flags: Iterable[str]) -> tuple[str, ...]:
    """Return those of some flags' names for which there is no verdict on a ratio."""
    return tuple(
        name
        for name in dict.fromkeys(flags)
        if name in FLAGS
        and name not in _OF_TIMES_ALONE
        and (name in _OF_RATIOS or FLAGS[name].severity in ("bars", "blurs"))
    )


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
        memory_mean_ns=tuple(compress(turns.memory_mean_ns, kept)),
        memory_low_ns=tuple(compress(turns.memory_low_ns, kept)),
        handover_ns=tuple(compress(turns.handover_ns, kept)),
    )


def _handover_s(workers: Sequence[YardstickTurns]) -> float | None:
    known = [took for turns in workers for took in turns.handover_ns if took is not None]
    return median(known) * 1e-9 if known else None


def _memory_s(workers: Sequence[YardstickTurns]) -> float | None:
    if not all(turns.memory_mean_ns for turns in workers):
        return None
    return median(median(turns.memory_mean_ns) for turns in workers) * 1e-9


def _absence(turns: YardstickTurns | None) -> str:
    """Say why a worker has no yardstick."""
    if turns is None:
        return "measured without a yardstick"
    more = f" ({turns.detail})" if turns.detail else ""
    return f"no yardstick: {ABSENCES[turns.absence]}{more}"


def _usual_weight(workers: Sequence[YardstickTurns]) -> float | None:
    """How many passes stand beside a product by themselves; ``None`` where units have one part."""
    if not all(turns.memory_mean_ns for turns in workers):
        return None
    several = any(turns.yardstick is not None and turns.yardstick.threads > 1 for turns in workers)
    typical_ns = median(took for turns in workers for took in turns.model_mean_ns)
    return USUAL_WEIGHTS[typical_ns >= LONG_NS and not several]


def _ratio(turns: YardstickTurns, weight: float | None) -> float:
    """The ratio of a worker. How far off it is within the worker is not known."""
    units = _weighed(turns.yardstick_low_ns, turns.memory_low_ns, weight)
    return _floor(turns.model_low_ns) / _floor(units)


def _weighed(
    units_ns: Sequence[int], memory_ns: Sequence[int], weight: float | None
) -> Sequence[float]:
    """Units with so many passes over memory in place of one."""
    if weight is None:
        return units_ns
    return [unit + (weight - 1) * part for unit, part in zip(units_ns, memory_ns, strict=True)]


def _share_of_unit(turns: YardstickTurns, weight: float | None) -> float:
    """What a product and so many passes take, of a unit."""
    units = _weighed(turns.yardstick_mean_ns, turns.memory_mean_ns, weight)
    return median(units) / median(turns.yardstick_mean_ns)


def _floor(values_ns: Sequence[float]) -> float:
    return sorted(values_ns)[nearest_rank(_FLOOR_PERCENT, len(values_ns)) - 1]


def _middle(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return median(known) if known and len(known) == len(values) else None


def _cpus(value: float | None) -> str:
    return "unknown" if value is None else f"{value:.2f}"
