"""Rounds in which the CPUs of a machine were far apart: a value took long from one to another.

The host of a virtual machine moves its CPUs. Where they are far apart, a model on several threads,
which hand values to each other, was seen to take 1.4 to 2 times as long, and a model on one thread
as long as ever. ``docs/concepts/yardstick.md`` has the counts.
"""

from __future__ import annotations

from collections.abc import Sequence

from pytest_ortbench.core.yardstick import YardstickTurns

#: CPUs are far apart if a value takes so many times as long as where they are nearest.
FAR = 1.5


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
