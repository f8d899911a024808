"""Durations: as timed in blocks, and as kept of one worker. Nanoseconds of a monotonic clock."""

from __future__ import annotations

from dataclasses import dataclass

from pytest_ortbench.core.generation import GeneratedRequest

#: Percentiles that are kept of every worker.
PERCENTS: tuple[float, ...] = (50, 90, 95, 99, 99.9)


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """Some timed inferences in a row, as the worker hands them over.

    Attributes:
        durations_ns: One entry an inference, in order.
        wall_ns: Wall time of the whole block, the loop's own cost included.
        cpu_ns: CPU time of the process meanwhile, all threads.
        steal_ticks: Clock ticks that the hypervisor took on all CPUs meanwhile; ``None`` if
            unreadable.
        total_ticks: Clock ticks of all CPUs meanwhile; ``None`` if unreadable.
        throttled_ns: Time for which the cgroup was throttled meanwhile; ``None`` if unreadable.
        requests: What each took, where requests were timed: then a duration is that of one.
    """

    durations_ns: tuple[int, ...]
    wall_ns: int
    cpu_ns: int
    steal_ticks: int | None = None
    total_ticks: int | None = None
    throttled_ns: int | None = None
    requests: tuple[GeneratedRequest, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class WarmUp:
    """The discarded runs before the measuring.

    Attributes:
        durations_ns: Their durations in order, without the first inference (thinned to 500).
        count: How many there were.
        total_ns: Time they took.
        steady: Whether the rule found that no trend was left.
        rule: What ended it, for people: ``no trend over 20, windows of 10 agree within 3 %``.
        cpu_ns: CPU time that the process used meanwhile, all threads; ``None`` if nobody looked.
    """

    durations_ns: tuple[int, ...]
    count: int
    total_ns: int
    steady: bool
    rule: str
    cpu_ns: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class OrderStatistic:
    """One percentile, taken exactly from all samples, with its distribution-free interval.

    Attributes:
        percent: 50, 90, 95, 99 or 99.9.
        value_ns: The sample at rank ``ceil(percent/100 · n)`` (nearest rank).
        low_ns: Lower end of the equal-tailed 95 % interval by order statistics; ``None`` where n
            is too small for one.
        high_ns: Upper end, likewise.
    """

    percent: float
    value_ns: int
    low_ns: int | None = None
    high_ns: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Samples:
    """Steady-state durations of one worker, warm-up excluded.

    Attributes:
        count: How many were measured.
        sum_ns: Their sum.
        sum_of_squares_s2: Sum of their squares in s², for the deviation.
        min_ns: Smallest.
        max_ns: Largest.
        durations_ns: In order; a sample stratified by value when there were too many.
        stride: How many ``durations_ns`` holds one of, rounded up; 1 if it holds all.
        order_statistics: Exact percentiles of all ``count`` samples.
        thirds_ns: Medians of the first and of the last third, and the scatter inside a third
            (median absolute deviation of segment medians around the median of their own third),
            for the check that the warm-up was over; ``None`` with fewer than 12 samples.
        wall_ns: Wall time of the timed blocks, the loop's own cost included.
        cpu_ns: CPU time that the process used in them, all threads.
        blocks: Number of timed blocks.
        starved_blocks: Blocks in which the process got under 90 % of the CPU time per wall time
            that it got in its best block.
        steal_ratio: Share of CPU time that the hypervisor took meanwhile; ``None`` if unreadable.
        throttled_ns: Time for which the cgroup was throttled meanwhile; ``None`` if unreadable.
        clock_pair_ns: Cost of a pair of clock readings.
        requests: What each request took, where requests were timed; spread evenly over all where
            they have more tokens than are kept.
        on_shared_machine: Whether they were taken on the CPUs of a virtual machine, or on a share
            of CPUs, whose speed changes from minute to minute and no counter tells.
    """

    count: int
    sum_ns: int
    sum_of_squares_s2: float
    min_ns: int
    max_ns: int
    durations_ns: tuple[int, ...]
    stride: int = 1
    order_statistics: tuple[OrderStatistic, ...] = ()
    thirds_ns: tuple[int, int, int] | None = None
    wall_ns: int = 0
    cpu_ns: int = 0
    blocks: int = 0
    starved_blocks: int = 0
    steal_ratio: float | None = None
    throttled_ns: int | None = None
    clock_pair_ns: int = 0
    requests: tuple[GeneratedRequest, ...] = ()
    on_shared_machine: bool = False
