"""Ratios of two things that were timed in turns, with the interval of their median.

On a machine that others use, most of what a short block takes is luck. So rounds are put into
groups, and of each group the fastest block of either side counts: the one that nothing disturbed.
"""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median

from pytest_ortbench.analysis.order import interval_ranks
from pytest_ortbench.core.certificate import Amount

#: Groups of rounds; their ratios have an interval from six on.
GROUPS = 11


def ratio_of(ours: Sequence[int], others: Sequence[int], name: str = "ratio") -> Amount | None:
    """Return the median of the ratios of the fastest blocks of groups, with its 95 % interval.

    Args:
        ours: What is divided, one entry a round.
        others: What it is divided by, likewise.
        name: What the ratio is called.

    Returns:
        ``None`` where nothing was timed.
    """
    pairs = [pair for pair in zip(ours, others, strict=False) if min(pair) > 0]
    count = min(GROUPS, len(pairs))
    groups = [pairs[number::count] for number in range(count)]
    ratios = sorted(
        min(one for one, _ in group) / min(other for _, other in group) for group in groups
    )
    if not ratios:
        return None
    ranks = interval_ranks(50, len(ratios))
    low, high = (None, None) if ranks is None else (ratios[ranks[0] - 1], ratios[ranks[1] - 1])
    return Amount(name=name, value=median(ratios), low=low, high=high)


def lies_within(amount: Amount, low: float, high: float) -> bool | None:
    """Return whether a number lies between two ends; ``None`` where its interval leaves it open."""
    if amount.low is None or amount.high is None:
        return None
    if low <= amount.low and amount.high <= high:
        return True
    if amount.high < low or amount.low > high:
        return False
    return None


def fastest(nanoseconds: Sequence[int], name: str) -> Amount:
    """Return the least of some durations as a number of a line."""
    return Amount(name=name, value=min(nanoseconds, default=0) * 1e-9, unit="s")
