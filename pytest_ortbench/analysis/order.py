"""Percentiles and their intervals from the order of the samples alone, without a distribution.

For independent samples the number that lies below the true ``p`` quantile is binomial, whatever
the distribution; so two ranks bracket the quantile with a known probability (H. A. David and
H. N. Nagaraja, *Order Statistics*, 3rd ed., 7.1). Consecutive inferences are not quite
independent: within one worker the interval is optimistic, which is why a case's interval runs
over several workers (see :mod:`pytest_ortbench.analysis.between_processes`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING

from pytest_ortbench.core.outcome import OrderStatistic

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

#: Probability that may lie beyond each end of an equal-tailed 95 % interval.
TAIL = 0.025

#: Its normal deviate.
DEVIATE = 1.959964

#: Scale of a median absolute deviation to a standard deviation, for a normal distribution.
MAD_SCALE = 1.4826


@lru_cache(maxsize=4096)
def nearest_rank(percent: float, count: int) -> int:
    """Return the rank (from 1) of the nearest-rank percentile: ``ceil(percent / 100 · count)``.

    Computed with fractions: in floating point 99.9 % of 1,000 would be rank 1,000.
    """
    return max(1, math.ceil(Fraction(str(percent)) * count / 100))


def percentile(ordered: Sequence[int] | npt.NDArray[np.int64], percent: float) -> int:
    """The nearest-rank percentile of samples in ascending order; always one of the samples."""
    return int(ordered[nearest_rank(percent, len(ordered)) - 1])


@lru_cache(maxsize=64)
def samples_needed(percent: float) -> int:
    """Return the fewest samples with an equal-tailed 95 % interval: 6, 36, 72, 368 for p50 … p99.

    All samples must lie above the quantile with a probability of at most 2.5 %, and all below it
    likewise: ``max(q, 1 − q) ** n <= 0.025``. (A two-sided interval that may use one tail only
    would need 6, 29, 59, 299, but then its upper end covers less than it seems.)
    """
    share = float(Fraction(str(percent)) / 100)
    return math.ceil(math.log(TAIL) / math.log(max(share, 1 - share)))


@lru_cache(maxsize=4096)
def interval_ranks(percent: float, count: int) -> tuple[int, int] | None:
    """Return the ranks (from 1) that bracket the quantile with 95 %, ``None`` with too few samples.

    The largest ``l`` with ``P(B <= l − 1) <= 2.5 %`` and the smallest ``u`` with
    ``P(B >= u) <= 2.5 %`` for ``B`` binomial with ``count`` trials.
    """
    if count < samples_needed(percent):
        return None
    share = float(Fraction(str(percent)) / 100)
    return _low_rank(count, share), count + 1 - _low_rank(count, 1 - share)


def _low_rank(count: int, share: float) -> int:
    """The largest ``l`` with ``P(Binomial(count, share) <= l − 1) <= TAIL``.

    Adds up probabilities from ten deviations below the mean, where less than 1e-20 is left out.
    """
    deviation = math.sqrt(count * share * (1 - share))
    successes = max(0, math.floor(count * share - 10 * deviation - 10))
    probability = binomial_probability(successes, count, share)
    total = 0.0
    while True:
        total += probability
        if total > TAIL:
            return successes
        probability *= (count - successes) / (successes + 1) * share / (1 - share)
        successes += 1


def binomial_probability(successes: int, trials: int, share: float) -> float:
    """Return ``P(Binomial(trials, share) = successes)`` for ``0 < share < 1``."""
    return math.exp(
        math.lgamma(trials + 1)
        - math.lgamma(successes + 1)
        - math.lgamma(trials - successes + 1)
        + successes * math.log(share)
        + (trials - successes) * math.log1p(-share)
    )


def order_statistic(
    ordered: Sequence[int] | npt.NDArray[np.int64], percent: float
) -> OrderStatistic:
    """Return one percentile of samples in ascending order, with its interval where there is one.

    Args:
        ordered: At least one sample, ascending, in nanoseconds.
        percent: Which percentile.
    """
    ranks = interval_ranks(percent, len(ordered))
    return OrderStatistic(
        percent=percent,
        value_ns=percentile(ordered, percent),
        low_ns=None if ranks is None else int(ordered[ranks[0] - 1]),
        high_ns=None if ranks is None else int(ordered[ranks[1] - 1]),
    )


@lru_cache(maxsize=1024)
def proportion_interval(successes: int, trials: int, tail: float = TAIL) -> tuple[float, float]:
    """Return the exact (Clopper–Pearson) interval of a proportion, with ``tail`` beyond each end.

    C. J. Clopper and E. S. Pearson, Biometrika 26 (1934) 404–413.
    """
    low = 0.0 if successes == 0 else _proportion_bound(successes, trials, tail)
    high = 1.0
    if successes < trials:
        high = 1.0 - _proportion_bound(trials - successes, trials, tail)
    return low, high


def _proportion_bound(successes: int, trials: int, tail: float) -> float:
    """The share at which ``successes`` or more would happen with probability ``tail``."""
    low, high = 0.0, successes / trials
    # 60 halvings are below the spacing of doubles. Above ``high`` the probability exceeds a half
    # or so, hence the sum always starts beyond the mean, where its terms fall quickly.
    for _ in range(60):
        middle = (low + high) / 2
        if middle in (low, high):
            break
        if _upper_tail(successes, trials, middle) < tail:
            low = middle
        else:
            high = middle
    return low


def _upper_tail(successes: int, trials: int, share: float) -> float:
    """``P(Binomial(trials, share) >= successes)``, for ``successes`` above the mean."""
    probability = binomial_probability(successes, trials, share)
    total = 0.0
    while successes <= trials and probability > total * 1e-17:
        total += probability
        probability *= (trials - successes) / (successes + 1) * share / (1 - share)
        successes += 1
    return total
