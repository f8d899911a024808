"""From the blocks of a launch to its two contrasts; the launch is the only unit of inference."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from pytest_ortbench.analysis.order import MAD_SCALE
from pytest_ortbench.core.gate import PairedLaunch
from pytest_ortbench.core.outcome import Block

#: A block is short, so that both sides of a round meet the same state of the machine. Seen: 12 ms
#: instead of 60 ms, same work, raised the share of 5 % effects found from 60 to 94 %.
BLOCK_S = 0.012

#: Timed seconds of a launch and side, and between how many rounds that gives. Seen: of inferences
#: of 30 to 130 ms on two threads and a busy machine, three times the 10 rounds that 0.6 s gave
#: brought the gates of equal sides without a verdict from 16 to 4 %. Seen: launches
#: of 40 rounds of 12 ms scatter like those of 50 (robust standard deviations of 80 of equal sides:
#: floor 1.00 and 0.98 % instead of 0.99 and 0.98 %, typical 0.89 and 0.77 % instead of 0.87 and
#: 0.72 %) and take a tenth less time.
LAUNCH_S = 1.5
FEWEST_ROUNDS = 10
MOST_ROUNDS = 40

#: Inferences of each of several callers in a block, at least. Towards its end some of them find
#: nothing left to do, and what still runs there meets fewer others than it does in between.
CALLS_OF_EACH = 3

#: With inferences this slow a launch has few rounds of one each, and launches decide.
SLOW_S = 1.0
SLOW_ROUNDS = 5

#: By how much more a median scatters than a mean, for a normal distribution.
_MEDIAN_LOSS = 1.2533

#: A single round has no second fastest block.
_FEWEST_FOR_ERRORS = 2


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
    """

    floor: float
    typical: float


def block_size(typical_s: float, callers: int = 1) -> int:
    """Return the inferences in a block of either side, from what the slower one takes."""
    calls = max(1 if callers == 1 else CALLS_OF_EACH, round(BLOCK_S / typical_s))
    return callers * calls


def round_count(typical_s: float, callers: int = 1) -> int:
    """Return the number of rounds of a launch."""
    if typical_s > SLOW_S:
        return SLOW_ROUNDS
    wanted = round(LAUNCH_S / (block_size(typical_s, callers) / callers * typical_s))
    return max(FEWEST_ROUNDS, min(MOST_ROUNDS, wanted))


def reduce_rounds(
    rounds: Sequence[Round],
    *,
    seed: int = 0,
    warm_up_runs: int = 0,
) -> PairedLaunch:
    """Keep of each block what the statistics and the flags stand on.

    Raises:
        ValueError: if there is no round, or a block is empty or holds a duration of zero.
    """
    if not rounds:
        raise ValueError("a launch without rounds has no contrast")
    baseline = [pair.baseline for pair in rounds]
    contender = [pair.contender for pair in rounds]
    both = [*baseline, *contender]
    if not all(block.durations_ns for block in both):
        raise ValueError("a block without inferences has no contrast")
    if min(min(block.durations_ns) for block in both) <= 0:
        raise ValueError("a duration of zero has no logarithm")
    throttled = [block.throttled_ns for block in both if block.throttled_ns is not None]
    return PairedLaunch(
        seed=seed,
        iterations=len(baseline[0].durations_ns),
        warm_up_runs=warm_up_runs,
        baseline_min_ns=tuple(min(block.durations_ns) for block in baseline),
        contender_min_ns=tuple(min(block.durations_ns) for block in contender),
        baseline_median_ns=tuple(float(median(block.durations_ns)) for block in baseline),
        contender_median_ns=tuple(float(median(block.durations_ns)) for block in contender),
        baseline_core_ratio=tuple(map(_core_ratio, baseline)),
        contender_core_ratio=tuple(map(_core_ratio, contender)),
        steal_ratio=_steal_ratio(both),
        throttled_ns=sum(throttled) if throttled else None,
    )


def contrasts_of(launch: PairedLaunch) -> Contrasts:
    """Return both contrasts of one launch."""
    return Contrasts(
        floor=math.log(min(launch.contender_min_ns) / min(launch.baseline_min_ns)),
        typical=median(round_contrasts(launch)),
    )


def round_contrasts(launch: PairedLaunch) -> list[float]:
    """Return ``ln(median B ÷ median A)`` of each round, in order."""
    return [
        math.log(contender / baseline)
        for baseline, contender in zip(
            launch.baseline_median_ns, launch.contender_median_ns, strict=True
        )
    ]


@dataclass(frozen=True, slots=True, kw_only=True)
class Errors:
    """How well a launch knows its own contrasts, from what happened inside it.

    Swapping the sides, or making one of them slower by a factor, changes neither: so a statistic
    may be chosen by them, and its test stays exact.

    Attributes:
        floor: From the fastest to the second fastest block, of both sides together.
        typical: Standard error of the median over rounds.
    """

    floor: float
    typical: float


def errors_of(launch: PairedLaunch) -> Errors:
    """Return the errors of both contrasts of one launch; infinite with a single round."""
    if len(launch.baseline_min_ns) < _FEWEST_FOR_ERRORS:
        return Errors(floor=math.inf, typical=math.inf)
    gaps = (_gap(launch.baseline_min_ns), _gap(launch.contender_min_ns))
    contrasts = round_contrasts(launch)
    middle = median(contrasts)
    scatter = median(abs(contrast - middle) for contrast in contrasts)
    return Errors(
        floor=sum(gaps),
        typical=_MEDIAN_LOSS * MAD_SCALE * scatter / math.sqrt(len(contrasts)),
    )


def _gap(fastest_ns: Sequence[int]) -> float:
    least, second = sorted(fastest_ns)[:2]
    return math.log(second / least)


def _core_ratio(block: Block) -> float:
    return round(block.cpu_ns / block.wall_ns, 4) if block.wall_ns else 0.0


def _steal_ratio(blocks: Sequence[Block]) -> float | None:
    """Over all blocks together: one lasts about a clock tick."""
    read = [
        (block.steal_ticks, block.total_ticks)
        for block in blocks
        if block.steal_ticks is not None and block.total_ticks is not None
    ]
    total = sum(ticks for _, ticks in read)
    return sum(steal for steal, _ in read) / total if total else None
