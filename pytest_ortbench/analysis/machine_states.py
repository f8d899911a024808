"""What rounds with a yardstick say of the state that a shared machine was in.

CPUs that are far apart: the host of a virtual machine moves its CPUs. Where a value takes long from
one to another, a model on several threads, which hand values to each other, was seen to take 1.4 to
2 times as long, and a model on one thread as long as ever.

A busy memory: others use the same memory and the same last cache. In some minutes a pass over
memory takes half as long again on average, though its fastest are as fast as ever. A model that
takes longer than such a gap never meets one, so no ratio to a short unit of work holds then.

``docs/concepts/yardstick.md`` has the counts of both.
"""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median

from pytest_ortbench.analysis.order import nearest_rank
from pytest_ortbench.core.yardstick import YardstickTurns

#: CPUs are far apart if a value takes so many times as long as where they are nearest.
FAR = 1.5

#: Memory is busy if a pass takes so many times as long as its fastest: on one thread, and on
#: several, which pass over memory at a time and slow each other down.
BUSY, BUSY_BESIDE_THREADS = 1.25, 1.4

#: Percentile of the rounds whose fastest passes are meant.
_FASTEST_PERCENT = 5.0


def nearest_handover_ns(workers: Sequence[YardstickTurns]) -> int | None:
    """Return what a value takes where the CPUs are nearest, as far as a run knows.

    Args:
        workers: Of one case.
    """
    known = [turns.best_handover_ns for turns in workers]
    known += [took for turns in workers for took in turns.handover_ns]
    return min((took for took in known if took is not None), default=None)


def are_far(turns: YardstickTurns, nearest_ns: int | None) -> list[bool]:
    """Return for each round of a worker whether CPUs were far apart; not if nobody knows.

    Args:
        turns: Of the worker.
        nearest_ns: What a value takes where they are nearest.
    """
    if nearest_ns is None or not turns.handover_ns:
        return [False] * len(turns.model_mean_ns)
    return [took is not None and took > FAR * nearest_ns for took in turns.handover_ns]


def memory_slowdown(workers: Sequence[YardstickTurns]) -> float | None:
    """Return how many times as long as its fastest a pass over memory takes.

    Args:
        workers: Of one case.

    Returns:
        The median of the workers; ``None`` if one of them did not pass over memory.
    """
    if not workers or not all(turns.memory_mean_ns for turns in workers):
        return None
    return median(median(turns.memory_mean_ns) / _fastest_ns(turns) for turns in workers)


def is_memory_busy(workers: Sequence[YardstickTurns]) -> bool:
    """Whether others used the memory of the machine while a case was measured.

    Args:
        workers: Of the case.
    """
    slowdown = memory_slowdown(workers)
    several = any(turns.yardstick is not None and turns.yardstick.threads > 1 for turns in workers)
    return slowdown is not None and slowdown > (BUSY_BESIDE_THREADS if several else BUSY)


def _fastest_ns(turns: YardstickTurns) -> int:
    """A pass in the fastest rounds of a worker."""
    ordered = sorted(turns.memory_low_ns)
    return max(1, ordered[nearest_rank(_FASTEST_PERCENT, len(ordered)) - 1])
