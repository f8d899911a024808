"""Rounds of two blocks in turns, in an order that is drawn, for the time of one worker."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Sequence
from statistics import median
from typing import TypeVar

from pytest_ortbench.analysis.stopping import MAX_ITERATIONS
from pytest_ortbench.core.case import Case
from pytest_ortbench.core.outcome import WarmUp

#: Rounds: as few as have an interval of the median, and no more than these.
FEWEST_ROUNDS, MOST_ROUNDS = 8, 40

#: Runs at the end of a warm-up that say how long one inference takes.
_LAST_OF_WARM_UP = 9

One = TypeVar("One")
Other = TypeVar("Other")


def in_turns(
    case: Case, seed: int, one: Callable[[], One], other: Callable[[], Other]
) -> list[tuple[One, Other]]:
    """Time two blocks in turns, for the case's share of time of one worker.

    Args:
        case: Says how long.
        seed: Decides the order within each round.
        one: Times a block.
        other: Times a block of the other kind.
    """
    order = random.Random(seed)
    until = time.monotonic() + case.sampling.time_s / max(1, case.sampling.workers)
    rounds: list[tuple[One, Other]] = []
    while len(rounds) < FEWEST_ROUNDS or (len(rounds) < MOST_ROUNDS and time.monotonic() < until):
        if order.random() < 0.5:
            first = one()
            rounds.append((first, other()))
        else:
            second = other()
            rounds.append((one(), second))
    return rounds


def iterations_for(warmed: WarmUp, target_ns: int) -> int:
    """Return how many inferences last about so long.

    Args:
        warmed: The warm-up that was before.
        target_ns: How long they are to last.
    """
    last = warmed.durations_ns[-_LAST_OF_WARM_UP:]
    return min(MAX_ITERATIONS, max(1, target_ns // (median_ns(last) if last else target_ns)))


def median_ns(durations_ns: Sequence[int]) -> int:
    """Return the median of durations, 1 at least."""
    return max(1, round(median(durations_ns)))
