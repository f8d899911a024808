"""Percentiles and order-statistic intervals."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_ortbench.analysis.order import (
    TAIL,
    interval_ranks,
    nearest_rank,
    order_statistic,
    percentile,
    proportion_interval,
    samples_needed,
)
from pytest_ortbench.core.samples import PERCENTS

samples_lists = st.lists(st.integers(1, 10**12), min_size=1, max_size=300).map(sorted)


@pytest.mark.parametrize(
    ("percent", "needed"), [(50, 6), (90, 36), (95, 72), (99, 368), (99.9, 3688)]
)
def test_percentiles_need_the_samples_of_an_equal_tailed_interval(percent: float, needed: int):
    assert samples_needed(percent) == needed
    assert interval_ranks(percent, needed - 1) is None
    assert interval_ranks(percent, needed) is not None


@pytest.mark.parametrize("percent", PERCENTS)
@pytest.mark.parametrize("count", [6, 7, 36, 100, 368, 1000, 5000, 200_000])
def test_interval_ranks_are_the_narrowest_with_both_tails_within_bounds(percent: float, count: int):
    from scipy.stats import binom

    ranks = interval_ranks(percent, count)
    if ranks is None:
        assert count < samples_needed(percent)
        return
    low, high = ranks
    share = percent / 100
    assert binom.cdf(low - 1, count, share) <= TAIL < binom.cdf(low, count, share)
    assert binom.sf(high - 1, count, share) <= TAIL < binom.sf(high - 2, count, share)


def test_interval_ranks_agree_with_published_values():
    assert interval_ranks(50, 1000) == (469, 532)
    assert interval_ranks(90, 1000) == (881, 919)
    assert interval_ranks(99, 1000) == (983, 997)
    assert interval_ranks(99, 10_000) == (9880, 9920)


def test_rank_is_exact_where_floating_point_is_not():
    assert nearest_rank(99.9, 1000) == 999
    assert nearest_rank(50, 1) == 1
    assert nearest_rank(90, 36) == 33


def test_percentile_is_a_sample():
    assert percentile([1, 2, 3, 4], 50) == 2
    assert percentile(range(1, 101), 99) == 99


@given(samples_lists)
def test_percentiles_are_monotone_and_inside_their_intervals(ordered: list[int]):
    statistics = [order_statistic(ordered, percent) for percent in PERCENTS]
    values = [statistic.value_ns for statistic in statistics]
    assert values == sorted(values)
    assert ordered[0] <= values[0]
    assert values[-1] <= ordered[-1]
    for statistic in statistics:
        if statistic.low_ns is None or statistic.high_ns is None:
            assert len(ordered) < samples_needed(statistic.percent)
        else:
            assert statistic.low_ns <= statistic.value_ns <= statistic.high_ns


def test_median_interval_covers_as_often_as_promised():
    draw = random.Random(7)
    covered = 0
    for _ in range(1000):
        statistic = order_statistic(sorted(draw.getrandbits(40) for _ in range(41)), 50)
        assert statistic.low_ns is not None
        assert statistic.high_ns is not None
        covered += statistic.low_ns <= 2**39 <= statistic.high_ns
    # At n = 41 the interval covers 97.2 %; five binomial deviations below that are 94.6 %.
    assert covered >= 946


@given(st.integers(1, 400).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
def test_proportion_interval_matches_scipy(pair: tuple[int, int]):
    from scipy.stats import binomtest

    successes, trials = pair
    low, high = proportion_interval(successes, trials)
    exact = binomtest(successes, trials).proportion_ci(0.95, method="exact")
    assert low == pytest.approx(exact.low, abs=1e-9)
    assert high == pytest.approx(exact.high, abs=1e-9)


def test_proportion_interval_of_many_trials():
    low, high = proportion_interval(1_000_000, 1_000_000)
    assert high == 1.0
    assert low == pytest.approx(1 - 3.6888e-6, abs=1e-9)
