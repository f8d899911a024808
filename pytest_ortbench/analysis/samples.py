"""From timed blocks to the samples of a worker, and from workers to pooled percentiles."""

from __future__ import annotations

import math
import random
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, pairwise
from statistics import median
from typing import TYPE_CHECKING, TypeVar

from pytest_ortbench.analysis.between_processes import BETWEEN_RUNS, OfProcess, over_processes
from pytest_ortbench.analysis.order import (
    interval_ranks,
    nearest_rank,
    order_statistic,
)
from pytest_ortbench.core.case import Case
from pytest_ortbench.core.generation import GeneratedRequest
from pytest_ortbench.core.outcome import Block, OrderStatistic, Samples
from pytest_ortbench.core.samples import PERCENTS

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

#: A block is starved when the process got less than this share of the CPU time per wall time that
#: it got in its best block.
STARVED_SHARE = 0.9

#: Shorter blocks are not judged: CPU time and wall time are not read at the same instant.
JUDGED_BLOCK_NS = 10_000_000

#: The check that the warm-up was over cuts the samples into three thirds of up to this many
#: segments each; with fewer samples a third than ``MIN_THIRD`` nothing can be said.
SEGMENTS_A_THIRD = 10
MIN_THIRD = 4

_Duration = TypeVar("_Duration", int, float)


def reduce_blocks(blocks: Sequence[Block], *, keep: int, clock_pair_ns: int) -> Samples:
    """Reduce the timed blocks of one worker to what is stored.

    Args:
        blocks: In the order of measuring, at least one inference altogether.
        keep: The most durations to keep; 0 keeps all. See :func:`thinned` for which.
        clock_pair_ns: Cost of a pair of clock readings.

    Returns:
        Samples whose count, sum, extremes and order statistics are exact over all durations.

    Raises:
        ValueError: if there is no duration at all.
    """
    import numpy as np  # only where something was measured

    durations = np.concatenate(
        [np.array(block.durations_ns, dtype=np.int64) for block in blocks]
        or [np.empty(0, np.int64)]
    )
    if not len(durations):
        raise ValueError("these blocks hold no timed inference")
    ordered = np.sort(durations)
    stride = 1 if keep == 0 else math.ceil(len(durations) / keep)
    seconds = durations * 1e-9
    throttled = [block.throttled_ns for block in blocks if block.throttled_ns is not None]
    return Samples(
        count=len(durations),
        sum_ns=int(durations.sum()),
        sum_of_squares_s2=float(np.sum(seconds * seconds)),
        min_ns=int(ordered[0]),
        max_ns=int(ordered[-1]),
        durations_ns=tuple(durations[_thinned(durations, keep)].tolist()),
        stride=stride,
        order_statistics=tuple(order_statistic(ordered, percent) for percent in PERCENTS),
        thirds_ns=thirds(durations),
        wall_ns=sum(block.wall_ns for block in blocks),
        cpu_ns=sum(block.cpu_ns for block in blocks),
        blocks=len(blocks),
        starved_blocks=starved_blocks(blocks),
        steal_ratio=steal_ratio(blocks),
        throttled_ns=sum(throttled) if throttled else None,
        clock_pair_ns=clock_pair_ns,
        requests=_kept_requests(blocks, keep),
    )


def thinned(durations: Sequence[_Duration], keep: int) -> Sequence[_Duration]:
    """Keep ``keep`` durations, in order, that are distributed as all of them are.

    One is drawn from each of ``keep`` equal groups of neighbours *in ascending order* (stratified
    sampling). So every percentile of the kept ones is within one group of the exact one, and their
    mean is right on average. A stride over time would be neither: it meets a pattern that repeats
    (a collector that runs every eighth inference) always or never, and even without one its median
    scatters by more than the interval of the exact median is wide.

    Args:
        durations: In the order of measuring, in any unit.
        keep: The most to keep, at least 1.

    Returns:
        The same ones for the same durations; all of them where there are no more than ``keep``.
    """
    if len(durations) <= keep:
        return durations
    import numpy as np

    return [durations[index] for index in _thinned(np.asarray(durations), keep)]


def _kept_requests(blocks: Sequence[Block], keep: int) -> tuple[GeneratedRequest, ...]:
    """Return the requests of all blocks, or some of them, with ``keep`` tokens at most."""
    requests = [request for block in blocks for request in block.requests]
    tokens = sum(len(request.steps_ns) for request in requests)
    if keep == 0 or tokens <= keep:
        return tuple(requests)
    count = max(1, len(requests) * keep // tokens)
    return tuple(requests[index * len(requests) // count] for index in range(count))


def _thinned(durations: npt.NDArray[np.number], keep: int) -> npt.NDArray[np.intp]:
    """Indices of what :func:`thinned` keeps, ascending; ``keep`` of 0 keeps all."""
    import numpy as np

    if keep == 0 or len(durations) <= keep:
        return np.arange(len(durations))
    ranked = np.argsort(durations, kind="stable")
    draw = random.Random(0)
    bounds = [len(durations) * index // keep for index in range(keep + 1)]
    return np.sort(ranked[[draw.randrange(low, high) for low, high in pairwise(bounds)]])


def thirds(durations: Sequence[int] | npt.NDArray[np.int64]) -> tuple[int, int, int] | None:
    """Medians of the first and the last third, and how far segments scatter within a third.

    The scatter is a median absolute deviation of *segment medians around the median of their own
    third*. Around the median of everything it could never be exceeded threefold: a step or a
    trend widens it by as much as it moves the thirds apart. Of single durations it would be
    blind to a shared machine's noise, which comes in stretches much longer than an inference.

    Returns:
        First median, last median and scatter in nanoseconds; ``None`` with too few samples.
    """
    import numpy as np

    size = len(durations) // 3
    if size < MIN_THIRD:
        return None
    middles: list[float] = []
    deviations: list[float] = []
    for third in (durations[:size], durations[size:-size], durations[-size:]):
        middle = float(np.median(third))
        middles.append(middle)
        segments = min(SEGMENTS_A_THIRD, len(third))
        bounds = [len(third) * index // segments for index in range(segments + 1)]
        deviations += [
            abs(float(np.median(third[start:stop])) - middle) for start, stop in pairwise(bounds)
        ]
    return round(middles[0]), round(middles[2]), round(median(deviations))


def starved_blocks(blocks: Sequence[Block]) -> int:
    """Return the blocks in which the process got under 90 % of its CPU time.

    Measured against the best block. A process that never used most of a core is not judged here:
    it waits for a device rather than for a CPU, or was starved throughout.
    """
    shares = [block.cpu_ns / block.wall_ns for block in blocks if block.wall_ns >= JUDGED_BLOCK_NS]
    best = max(shares, default=0.0)
    if best < STARVED_SHARE:
        return 0
    return sum(share < STARVED_SHARE * best for share in shares)


def steal_ratio(blocks: Sequence[Block]) -> float | None:
    """Share of all CPUs' time that the hypervisor took, ``None`` where it can't be read."""
    read = [
        (block.steal_ticks, block.total_ticks)
        for block in blocks
        if block.steal_ticks is not None and block.total_ticks is not None
    ]
    total = sum(ticks for _, ticks in read)
    if total <= 0:
        return None
    return sum(steal for steal, _ in read) / total


def elapsed_ns(case: Case, samples: Samples) -> int:
    """Return the time that passed while one worker's samples were taken.

    Inferences of several callers run side by side, so that their durations don't add up to it.
    """
    if case.callers > 1 and samples.wall_ns:
        return samples.wall_ns
    return samples.sum_ns


def statistic_of(samples: Samples, percent: float) -> OrderStatistic:
    """Return the exact percentile of one worker, as stored or from what is stored.

    Every worker of ours stores all of :data:`~pytest_ortbench.core.samples.PERCENTS`.
    """
    for statistic in samples.order_statistics:
        if statistic.percent == percent:
            return statistic
    return order_statistic(sorted(samples.durations_ns), percent)


def pooled_percentile(workers: Sequence[Samples], percent: float) -> OrderStatistic:
    """Return a percentile over the samples of all workers together, with its interval.

    Where every worker kept all its durations, this is the exact nearest-rank percentile of all.
    Otherwise each worker's kept durations are weighted so that its own exact percentiles come out
    exactly: between two of them lies a known number of samples, shared among the kept ones there.
    What thinning leaves uncertain is then only the shape between neighbouring percentiles of a
    worker; the result always lies between the smallest and the largest of the workers' own exact
    values, and equals them where they agree.

    The interval is the order-statistic interval of the pooled count, or the one over the workers'
    own percentiles as far as that reaches beyond it: samples of one process are not independent
    (see :mod:`pytest_ortbench.analysis.between_processes`). It is of the percentile that processes
    have in the middle; where they differ, that of all their samples together lies above it.

    Args:
        workers: Samples of at least one worker.
        percent: A percentile that the workers kept.
    """
    return pooled_percentiles(workers, (percent,))[0]


def pooled_percentiles(
    workers: Sequence[Samples], percents: Sequence[float]
) -> list[OrderStatistic]:
    """Several percentiles as :func:`pooled_percentile` gives them; samples are sorted once."""
    pool = _Pool.of(workers)
    return [_pooled(pool, workers, percent) for percent in percents]


def median_latency(workers: Sequence[Samples]) -> OrderStatistic:
    """Return the median of the workers' medians, with the interval over fresh processes.

    It is made of the workers' own intervals and of how their medians differ (see
    :mod:`pytest_ortbench.analysis.between_processes`). Where a worker has too few samples for an
    interval, the one over all samples takes the place of all of theirs.
    """
    statistics = [statistic_of(samples, 50) for samples in workers]
    value = round(median([statistic.value_ns for statistic in statistics]))
    own = [
        OfProcess(statistic.low_ns, statistic.value_ns, statistic.high_ns)
        for statistic in statistics
        if statistic.low_ns is not None and statistic.high_ns is not None
    ]
    if len(own) < len(workers):
        return replace(pooled_percentile(workers, 50), value_ns=value)
    return _statistic(50, value, over_processes(own, between_runs=between_runs(workers)))


def between_runs(workers: Sequence[Samples], on_shared: float = BETWEEN_RUNS) -> float:
    """Return by how much runs differ beside their processes: not at all on a machine of one's own.

    Args:
        workers: Samples of each worker.
        on_shared: What it is on a shared machine.
    """
    return on_shared if any(samples.on_shared_machine for samples in workers) else 0.0


def _pooled(pool: _Pool, workers: Sequence[Samples], percent: float) -> OrderStatistic:
    value = pool.at_rank(nearest_rank(percent, pool.count))
    ranks = interval_ranks(percent, pool.count)
    if ranks is None:
        return OrderStatistic(percent=percent, value_ns=value)
    ends = [value, *map(pool.at_rank, ranks)]
    own = [OfProcess.alone(statistic_of(samples, percent).value_ns) for samples in workers]
    also = (min(ends), max(ends))
    return _statistic(percent, value, over_processes(own, also, between_runs=between_runs(workers)))


def _statistic(percent: float, value_ns: int, ends: tuple[float, float]) -> OrderStatistic:
    """Whole nanoseconds, the ends rounded outwards."""
    return OrderStatistic(
        percent=percent,
        value_ns=value_ns,
        low_ns=math.floor(ends[0]),
        high_ns=math.ceil(ends[1]),
    )


@dataclass(frozen=True, slots=True)
class _Pool:
    """Durations in ascending order with the running number of samples that they stand for."""

    values: tuple[int, ...]
    cumulated: tuple[float, ...]
    count: int

    @classmethod
    def of(cls, workers: Sequence[Samples]) -> _Pool:
        weighted = [pair for samples in workers for pair in _weighted(samples)]
        weighted.sort()
        return cls(
            values=tuple(value for value, _ in weighted),
            cumulated=tuple(accumulate(weight for _, weight in weighted)),
            count=sum(samples.count for samples in workers),
        )

    def at_rank(self, rank: int) -> int:
        # Half a millionth absorbs the rounding of fractional weights.
        index = bisect_left(self.cumulated, rank - 5e-7)
        return self.values[min(index, len(self.values) - 1)]


def _weighted(samples: Samples) -> list[tuple[int, float]]:
    """Durations of one worker, each with the number of samples that it stands for."""
    if samples.stride == 1:
        return [(duration, 1.0) for duration in samples.durations_ns]
    kept = sorted(samples.durations_ns)
    knots = [(1, samples.min_ns)]
    knots += [
        (nearest_rank(statistic.percent, samples.count), statistic.value_ns)
        for statistic in sorted(samples.order_statistics, key=lambda entry: entry.percent)
    ]
    knots.append((samples.count, samples.max_ns))
    pairs: list[tuple[int, float]] = [(samples.min_ns, 1.0)]
    for (rank, value), (next_rank, next_value) in pairwise(knots):
        stands_for = next_rank - rank
        if stands_for <= 0:
            continue
        # The upper knot is itself one sample; those between it and the knot below share the rest.
        inside = kept[bisect_right(kept, value) : bisect_left(kept, next_value)]
        pairs += [(duration, (stands_for - 1) / len(inside)) for duration in inside]
        pairs.append((next_value, 1.0 if inside else float(stands_for)))
    return pairs


#: Below this many samples two groups can't be told from chance.
MIN_SAMPLES = 40

#: Each group must hold this share of the samples; fewer is a tail.
MIN_SHARE = 0.15

#: The groups' medians must differ by this share, else nobody need care.
MIN_DISTANCE = 0.05

#: Distance of the groups' means over their deviation (Ashman, Bird and Zepf, Astronomical Journal
#: 108 (1994) 2348). A normal distribution cut at its best place gives 2.7, a uniform one 3.5, an
#: exponential one about 3; two normal groups four deviations apart give 4.2.
MIN_SEPARATION = 4.0


@dataclass(frozen=True, slots=True, kw_only=True)
class TwoGroups:
    """Medians in seconds of the lower and the upper group, and the upper one's share of all."""

    lower_s: float
    upper_s: float
    upper_share: float


def two_groups(durations_ns: Sequence[int]) -> TwoGroups | None:
    """Cut durations into two groups if they are that clearly.

    Logarithms are cut where the variance inside the groups is least (N. Otsu, IEEE Transactions
    on Systems, Man and Cybernetics 9 (1979) 62–66); the slowest twentieth has no say in where,
    since a few outliers would take the cut for themselves. It belongs to the upper group.
    """
    everything = sorted(durations_ns)
    ordered = everything[: math.ceil(len(durations_ns) * 0.95)]
    count = len(ordered)
    if count < MIN_SAMPLES or ordered[0] <= 0:
        return None
    # Around their middle, so that squares of tiny differences keep their digits.
    centre = math.log(ordered[count // 2])
    values = [math.log(duration) - centre for duration in ordered]
    sums = list(accumulate(values))
    squares = list(accumulate(value * value for value in values))
    first, last = math.ceil(count * MIN_SHARE), math.floor(count * (1 - MIN_SHARE))
    cut = max(
        range(first, last + 1),
        key=lambda size: (
            sums[size - 1] ** 2 / size + (sums[-1] - sums[size - 1]) ** 2 / (count - size)
        ),
    )
    lower, upper = ordered[:cut], ordered[cut:]
    if median(upper) < median(lower) * (1 + MIN_DISTANCE):
        return None
    lower_mean = sums[cut - 1] / cut
    upper_mean = (sums[-1] - sums[cut - 1]) / (count - cut)
    lower_variance = max(0.0, squares[cut - 1] / cut - lower_mean**2)
    upper_variance = max(0.0, (squares[-1] - squares[cut - 1]) / (count - cut) - upper_mean**2)
    deviation = math.sqrt((lower_variance + upper_variance) / 2)
    if upper_mean - lower_mean < MIN_SEPARATION * deviation:
        return None
    return TwoGroups(
        lower_s=median(lower) * 1e-9,
        upper_s=median(everything[cut:]) * 1e-9,
        upper_share=1 - cut / len(everything),
    )
