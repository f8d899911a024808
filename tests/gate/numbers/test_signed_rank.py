"""Exact signed-rank statistics against brute force."""

from __future__ import annotations

import itertools
import math
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_ortbench.gate.numbers.signed_rank import (
    hodges_lehmann,
    lower_bound,
    null_counts,
    p_value,
    smallest_p,
    tail_probability,
    upper_bound,
    walsh_averages,
)

contrasts = st.lists(st.floats(-1, 1, allow_nan=False), min_size=1, max_size=12)


def brute_force_p(values: list[float]) -> float:
    """P(W+ >= observed) over all sign patterns, for values without ties or zeros."""
    order = sorted(range(len(values)), key=lambda index: abs(values[index]))
    rank = {index: position + 1 for position, index in enumerate(order)}
    observed = sum(rank[index] for index, value in enumerate(values) if value > 0)
    sums = [
        sum(
            position
            for position, sign in zip(range(1, len(values) + 1), signs, strict=True)
            if sign
        )
        for signs in itertools.product((False, True), repeat=len(values))
    ]
    return sum(value >= observed for value in sums) / len(sums)


@pytest.mark.parametrize("launches", range(1, 11))
def test_null_distribution_is_that_of_all_sign_patterns(launches: int):
    counted = [0] * (launches * (launches + 1) // 2 + 1)
    for signs in itertools.product((0, 1), repeat=launches):
        counted[sum(rank * sign for rank, sign in enumerate(signs, start=1))] += 1
    assert null_counts(launches) == tuple(counted)


@pytest.mark.parametrize("launches", range(2, 11))
def test_p_value_is_that_of_all_sign_patterns(launches: int):
    draw = random.Random(launches)
    for _ in range(5):
        values = [draw.gauss(0.3, 1) for _ in range(launches)]
        assert p_value(values) == pytest.approx(brute_force_p(values))


@pytest.mark.parametrize("launches", range(5, 11))
@pytest.mark.parametrize("alpha", [0.05, 0.01, 0.004])
def test_lower_bound_is_where_the_test_of_a_shift_turns(launches: int, alpha: float):
    draw = random.Random(launches)
    values = [draw.gauss(0.3, 1) for _ in range(launches)]
    bound = lower_bound(values, alpha)
    if math.isinf(bound):
        assert smallest_p(launches) > alpha
        return
    shifts = (bound - 1e-9, bound + 1e-9)
    below, above = (brute_force_p([value - shift for value in values]) for shift in shifts)
    assert below <= alpha < above


def test_published_critical_values():
    # Hollander, Wolfe and Chicken, table A.4: n = 8, P(W+ >= 35) = .008; n = 20, P(W+ >= 150).
    assert tail_probability(8, 1) == pytest.approx(2 / 256)
    assert tail_probability(8, 0) == smallest_p(8) == 0.00390625
    assert tail_probability(20, 60) == pytest.approx(0.0487, abs=5e-5)


def test_tails_beyond_the_range():
    assert tail_probability(8, -1) == 0.0
    assert tail_probability(3, 6) == 1.0


@pytest.mark.parametrize("alpha", [0.0, 0.5, 1.0, -0.1])
def test_an_error_that_is_none_is_refused(alpha: float):
    with pytest.raises(ValueError, match="one-sided error"):
        lower_bound([1.0, 2.0], alpha)


def test_eight_launches_are_the_fewest_for_the_first_look():
    ones = [1.0 + index / 100 for index in range(8)]
    assert lower_bound(ones, 0.004) == min(ones)
    assert lower_bound(ones[:7], 0.004) == -math.inf
    assert upper_bound(ones[:7], 0.004) == math.inf


@given(contrasts)
def test_estimate_lies_between_bounds_which_widen_as_alpha_falls(values: list[float]):
    lows = [lower_bound(values, alpha) for alpha in (0.3, 0.05, 0.01, 0.004)]
    highs = [upper_bound(values, alpha) for alpha in (0.3, 0.05, 0.01, 0.004)]
    assert lows == sorted(lows, reverse=True)
    assert highs == sorted(highs)
    assert lows[0] <= hodges_lehmann(values) <= highs[0]


@given(contrasts, st.sampled_from([0.05, 0.01, 0.004, 0.003]))
def test_bound_and_p_value_say_the_same(values: list[float], alpha: float):
    assert (lower_bound(values, alpha) > 0) == (p_value(values) <= alpha)


@given(contrasts)
def test_mirrored_contrasts_mirror_the_bounds(values: list[float]):
    mirrored = [-value for value in values]
    assert hodges_lehmann(mirrored) == pytest.approx(-hodges_lehmann(values))
    assert lower_bound(mirrored, 0.05) == -upper_bound(values, 0.05)


@given(contrasts, st.randoms())
def test_order_of_launches_does_not_matter(values: list[float], draw: random.Random):
    shuffled = draw.sample(values, len(values))
    assert walsh_averages(shuffled) == pytest.approx(walsh_averages(values))
    assert p_value(shuffled) == p_value(values)


@settings(max_examples=20)
@given(st.integers(8, 20))
def test_agrees_with_scipy(launches: int):
    from scipy.stats import wilcoxon

    draw = random.Random(launches)
    values = [draw.gauss(0.2, 1) for _ in range(launches)]
    theirs = wilcoxon(values, alternative="greater", method="exact").pvalue
    assert p_value(values) == pytest.approx(theirs)
