"""The timed loops: nothing stands between the two clock readings but one inference."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Mapping, Sequence
from time import perf_counter_ns
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from onnxruntime import IOBinding


def time_runs(
    run: Callable[[None, Mapping[str, object]], object],
    feeds: Mapping[str, object],
    durations: array[int],
) -> None:
    """Time single calls of ``session.run`` with host arrays in and out.

    The call is the public one with all outputs, as an application makes it; freeing the outputs
    is part of it. The loop's own cost lies outside the readings.

    Args:
        run: The session's method.
        feeds: Its inputs.
        durations: Filled with the nanoseconds of one call each, in order. It is made by the
            caller, so that it is not counted as memory of the runs.
    """
    clock = perf_counter_ns
    for index in range(len(durations)):
        started = clock()
        run(None, feeds)
        durations[index] = clock() - started


def time_bound_runs(
    run: Callable[[IOBinding], object],
    binding: IOBinding,
    synchronise: Callable[[], object],
    durations: array[int],
) -> None:
    """Time single calls of ``session.run_with_iobinding``, until the outputs are there.

    Args:
        run: The session's method.
        binding: Inputs and outputs.
        synchronise: Waits for the outputs.
        durations: As in :func:`time_runs`.
    """
    clock = perf_counter_ns
    for index in range(len(durations)):
        started = clock()
        run(binding)
        synchronise()
        durations[index] = clock() - started


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
