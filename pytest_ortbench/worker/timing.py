"""The timed loops: nothing stands between the two clock readings but one inference."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from time import perf_counter_ns
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from onnxruntime import IOBinding


def time_runs(
    run: Callable[[None, Mapping[str, object]], object],
    feeds: Mapping[str, object],
    iterations: int,
) -> list[int]:
    """Time single calls of ``session.run`` with host arrays in and out.

    The call is the public one with all outputs, as an application makes it; freeing the outputs
    is part of it. The loop's own cost lies outside the readings.

    Returns:
        Nanoseconds of each call, in order.
    """
    clock = perf_counter_ns
    durations = [0] * iterations
    for index in range(iterations):
        started = clock()
        run(None, feeds)
        durations[index] = clock() - started
    return durations


def time_bound_runs(
    run: Callable[[IOBinding], object],
    binding: IOBinding,
    synchronise: Callable[[], object],
    iterations: int,
) -> list[int]:
    """Time single calls of ``session.run_with_iobinding``, until the outputs are there.

    Returns:
        Nanoseconds of each call, in order.
    """
    clock = perf_counter_ns
    durations = [0] * iterations
    for index in range(iterations):
        started = clock()
        run(binding)
        synchronise()
        durations[index] = clock() - started
    return durations


def clock_pair_ns(pairs: int = 2001) -> int:
    """Return what a pair of clock readings costs: the median of many, in nanoseconds."""
    clock = perf_counter_ns
    costs = [0] * pairs
    for index in range(pairs):
        started = clock()
        costs[index] = clock() - started
    return int(median(costs))


def median(values: Sequence[float]) -> float:
    """Return the middle value, or the mean of the two; statistics costs 10 ms to import."""
    ordered = sorted(values)
    middle = len(ordered) // 2
    if len(ordered) % 2:
        return ordered[middle]
    return (ordered[middle - 1] + ordered[middle]) / 2
