"""Exact one-sample signed-rank statistics: estimate, bounds and p-value of a shift.

F. Wilcoxon, Biometrics Bulletin 1 (1945) 80–83; J. L. Hodges and E. L. Lehmann, Annals of
Mathematical Statistics 34 (1963) 598–611; M. Hollander, D. A. Wolfe and E. Chicken, *Nonparametric
Statistical Methods*, 3rd ed., 3.1–3.3. The only assumption is that contrasts are independent and
symmetric about the shift, which holds for two equal sides whatever the noise.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from itertools import accumulate, takewhile
from statistics import median


def walsh_averages(contrasts: Sequence[float]) -> tuple[float, ...]:
    """Return all ``(x_i + x_j) / 2`` with ``i <= j``, ascending; n (n + 1) / 2 of them."""
    return _averages(tuple(contrasts))


# One look asks for estimate, both bounds and the p-value of the same launches.
@lru_cache(maxsize=16)
def _averages(contrasts: tuple[float, ...]) -> tuple[float, ...]:
    return tuple(
        sorted(
            (contrast + other) / 2
            for index, contrast in enumerate(contrasts)
            for other in contrasts[: index + 1]
        )
    )


def hodges_lehmann(contrasts: Sequence[float]) -> float:
    """Return the median of the Walsh averages: the estimate that goes with the bounds below."""
    return median(walsh_averages(contrasts))


@lru_cache(maxsize=64)
def null_counts(launches: int) -> tuple[int, ...]:
    """Return how many of the ``2 ** n`` sign patterns give each value of the signed-rank sum W."""
    counts = [1]
    for rank in range(1, launches + 1):
        longer = counts + [0] * rank
        for value, count in enumerate(counts):
            longer[value + rank] += count
        counts = longer
    return tuple(counts)


def tail_probability(launches: int, at_most: int) -> float:
    """Return ``P(W <= at_most)`` without a shift."""
    if at_most < 0:
        return 0.0
    return sum(null_counts(launches)[: at_most + 1]) * 0.5**launches


@lru_cache(maxsize=256)
def _bound_index(launches: int, alpha: float) -> int:
    """The largest ``k`` with ``P(W <= k − 1) <= alpha``; 0 if there is none."""
    if not 0 < alpha < 0.5:
        raise ValueError(f"a one-sided error lies between 0 and 0.5, not at {alpha}")
    cumulated = accumulate(null_counts(launches))
    return sum(1 for _ in takewhile(lambda count: count <= alpha * 2.0**launches, cumulated))


def lower_bound(contrasts: Sequence[float], alpha: float) -> float:
    """Return the lower confidence bound of the shift with one-sided error ``alpha``.

    Returns:
        The ``k``-th smallest Walsh average; minus infinity with too few launches for ``alpha``.
    """
    index = _bound_index(len(contrasts), alpha)
    return walsh_averages(contrasts)[index - 1] if index else -math.inf


def upper_bound(contrasts: Sequence[float], alpha: float) -> float:
    """Upper confidence bound of the shift with one-sided error ``alpha``; infinity if too few."""
    index = _bound_index(len(contrasts), alpha)
    return walsh_averages(contrasts)[-index] if index else math.inf


def p_value(contrasts: Sequence[float]) -> float:
    """Return the one-sided p-value of "no positive shift", the dual of :func:`lower_bound`.

    ``lower_bound(x, alpha) > 0`` exactly when ``p_value(x) <= alpha``. Contrasts of zero and ties
    count against a shift, so it is never too small.
    """
    averages = walsh_averages(contrasts)
    not_above = sum(average <= 0 for average in averages)
    return tail_probability(len(contrasts), not_above)


def smallest_p(launches: int) -> float:
    """Return the smallest p-value that so many launches can give: ``2 ** −n``."""
    return 0.5**launches
