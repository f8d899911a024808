"""From the blocks of a launch to its two contrasts; the launch is the only unit of inference."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from pytest_ortbench.core.outcome import Block

#: A block is short, so that both sides of a round meet the same state of the machine. Seen: 12 ms
#: instead of 60 ms, same work, raised the share of 5 % effects found from 60 to 94 %.
BLOCK_S = 0.012

#: Timed seconds of a launch and side, and between how many rounds that gives.
LAUNCH_S = 0.6
FEWEST_ROUNDS = 10
MOST_ROUNDS = 50

#: With inferences this slow a launch has few rounds of one each, and launches decide.
SLOW_S = 1.0
SLOW_ROUNDS = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Round:
    """One block of each side, in whatever order; both with the same number of inferences."""

    baseline: Block
    contender: Block


@dataclass(frozen=True, slots=True, kw_only=True)
class Contrasts:
    """Logarithms of contender ÷ baseline for one launch.

    Attributes:
        floor: ``ln(min B ÷ min A)`` over all blocks: what the work costs when nothing disturbs.
        typical: Median over rounds of ``ln(median B ÷ median A)``.
        rounds: Rounds that counted.
    """

    floor: float
    typical: float
    rounds: int


def block_size(typical_s: float) -> int:
    """Inferences in a block, from what the baseline takes; the same for both sides."""
    return max(1, round(BLOCK_S / typical_s))


def round_count(typical_s: float) -> int:
    """Rounds of a launch."""
    if typical_s > SLOW_S:
        return SLOW_ROUNDS
    wanted = round(LAUNCH_S / (block_size(typical_s) * typical_s))
    return max(FEWEST_ROUNDS, min(MOST_ROUNDS, wanted))


def launch_contrasts(rounds: Sequence[Round]) -> Contrasts:
    """Both contrasts of one launch.

    Raises:
        ValueError: if there is no round, or a block is empty or holds a duration of zero.
    """
    if not rounds:
        raise ValueError("a launch without rounds has no contrast")
    durations = [
        duration
        for pair in rounds
        for block in (pair.baseline, pair.contender)
        for duration in block.durations_ns
    ]
    if not all(pair.baseline.durations_ns and pair.contender.durations_ns for pair in rounds):
        raise ValueError("a block without inferences has no contrast")
    if min(durations) <= 0:
        raise ValueError("a duration of zero has no logarithm")
    floors = [
        min(min(block.durations_ns) for block in side)
        for side in (
            [pair.baseline for pair in rounds],
            [pair.contender for pair in rounds],
        )
    ]
    return Contrasts(
        floor=math.log(floors[1] / floors[0]),
        typical=median(
            math.log(median(pair.contender.durations_ns) / median(pair.baseline.durations_ns))
            for pair in rounds
        ),
        rounds=len(rounds),
    )
