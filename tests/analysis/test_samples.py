"""Reduction of blocks and pooling of workers."""

from __future__ import annotations

import random
from statistics import fmean, median

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_ortbench.analysis.order import percentile
from pytest_ortbench.analysis.samples import (
    pooled_percentile,
    reduce_blocks,
    starved_blocks,
    statistic_of,
    steal_ratio,
    thinned,
    thirds,
)
from pytest_ortbench.core.samples import PERCENTS
from tests.results_factory import draw_durations, make_block, make_samples

durations_lists = st.lists(st.integers(1, 10**9), min_size=1, max_size=200)


@given(durations_lists, st.integers(1, 50))
def test_thinning_keeps_order_and_at_most_keep(durations: list[int], keep: int):
    samples = reduce_blocks([make_block(durations)], keep=keep, clock_pair_ns=100)
    assert len(samples.durations_ns) <= keep
    assert len(samples.durations_ns) == min(keep, len(durations))
    left = iter(durations)
    assert all(duration in left for duration in samples.durations_ns), "not in order"
    assert samples.count == len(durations)


@given(durations_lists, st.integers(1, 20))
def test_thinning_never_touches_exact_figures(durations: list[int], keep: int):
    samples = reduce_blocks([make_block(durations)], keep=keep, clock_pair_ns=100)
    assert samples.sum_ns == sum(durations)
    assert samples.min_ns == min(durations)
    assert samples.max_ns == max(durations)
    assert samples.sum_of_squares_s2 == pytest.approx(sum((d * 1e-9) ** 2 for d in durations))
    for statistic in samples.order_statistics:
        assert statistic.value_ns == percentile(sorted(durations), statistic.percent)


@pytest.mark.parametrize("period", [2, 5, 6, 16])
def test_a_pattern_that_repeats_does_not_bias_what_is_kept(period: int):
    # 5,000 of 1,000 kept: one in five. A stride meets a period of five in one phase only.
    draw = random.Random(period)
    durations = [
        19_000 + draw.randrange(-30, 30) - (2_000 if index % period == 0 else 0)
        for index in range(5_000)
    ]
    samples = make_samples(durations, keep=1000)
    exact = statistic_of(samples, 50)
    assert exact.low_ns is not None
    assert exact.high_ns is not None
    assert exact.low_ns <= median(samples.durations_ns) <= exact.high_ns
    quick = sum(duration < 18_000 for duration in samples.durations_ns)
    assert quick / 1000 == pytest.approx(1 / period, abs=0.002)


@pytest.mark.parametrize("seed", range(5))
def test_percentiles_of_the_kept_ones_are_those_of_all(seed: int):
    durations = draw_durations(15_040, median_ns=18_970_000, spread=0.02, seed=seed)
    kept = thinned(durations, 1000)
    everything = sorted(durations)
    for percent in (1, 10, 50, 90, 99):
        bound = percentile(sorted(kept), percent)
        below = sum(duration < bound for duration in everything)
        assert below / 15_040 * 100 == pytest.approx(percent, abs=0.15)
    assert fmean(kept) == pytest.approx(fmean(durations), rel=1e-3)


def test_what_is_kept_of_a_drift_covers_the_time():
    kept = thinned(range(10_000), 1000)
    assert [sum(place // 1000 == tenth for place in kept) for tenth in range(10)] == [100] * 10


def test_keep_zero_keeps_all():
    durations = draw_durations(5000)
    samples = make_samples(durations, keep=0)
    assert samples.durations_ns == durations
    assert samples.stride == 1


def test_blocks_without_inference_are_refused():
    with pytest.raises(ValueError, match="no timed inference"):
        reduce_blocks([], keep=10, clock_pair_ns=0)


def test_sums_over_blocks():
    blocks = [
        make_block([100, 200], steal_ticks=1, total_ticks=50, throttled_ns=5),
        make_block([300], steal_ticks=3, total_ticks=50, throttled_ns=7),
    ]
    samples = reduce_blocks(blocks, keep=0, clock_pair_ns=42)
    assert samples.blocks == 2
    assert samples.wall_ns == 900
    assert samples.steal_ratio == 0.04
    assert samples.throttled_ns == 12
    assert samples.clock_pair_ns == 42


def test_unreadable_counters_stay_unknown():
    block = make_block([100], steal_ticks=None, total_ticks=None, throttled_ns=None)
    samples = reduce_blocks([block], keep=0, clock_pair_ns=0)
    assert samples.steal_ratio is None
    assert samples.throttled_ns is None
    assert steal_ratio([make_block([1], steal_ticks=0, total_ticks=0)]) is None


def test_starved_blocks_are_judged_against_the_best():
    shares = [2.0, 1.95, 1.7, 1.0]
    assert starved_blocks([make_block([10**8], cpu_share=share) for share in shares]) == 2


def test_a_process_that_waits_for_a_device_is_not_starved():
    assert starved_blocks([make_block([10**8], cpu_share=share) for share in (0.3, 0.1)]) == 0


def test_blocks_too_short_for_the_cpu_clock_are_not_judged():
    blocks = [make_block([10**8]), make_block([10**8]), make_block([10**5], cpu_share=5.0)]
    assert starved_blocks(blocks) == 0


def test_thirds_of_a_step_show_it_and_its_scatter_does_not_hide_it():
    first, last, scatter = thirds([100] * 30 + [150] * 30) or (0, 0, 0)
    assert (first, last) == (100, 150)
    assert 3 * scatter < last - first


def test_thirds_of_a_trend_show_it():
    first, last, scatter = thirds(list(range(1000, 1300))) or (0, 0, 0)
    assert last - first == 200
    assert 3 * scatter < 100


def test_thirds_of_few_samples_say_nothing():
    assert thirds([1] * 11) is None
    assert thirds([1] * 12) == (1, 1, 0)


@given(st.lists(durations_lists, min_size=1, max_size=4))
def test_complete_workers_are_pooled_exactly(workers: list[list[int]]):
    pooled = [make_samples(durations, keep=0) for durations in workers]
    together = sorted(duration for durations in workers for duration in durations)
    for percent in PERCENTS:
        assert pooled_percentile(pooled, percent).value_ns == percentile(together, percent)


@given(st.lists(durations_lists, min_size=1, max_size=4), st.integers(1, 30))
def test_pooled_percentile_lies_among_the_workers_own(workers: list[list[int]], keep: int):
    pooled = [make_samples(durations, keep=keep) for durations in workers]
    for percent in PERCENTS:
        own = [statistic_of(samples, percent).value_ns for samples in pooled]
        statistic = pooled_percentile(pooled, percent)
        assert min(own) <= statistic.value_ns <= max(own)
        if statistic.low_ns is not None and statistic.high_ns is not None:
            assert statistic.low_ns <= statistic.value_ns <= statistic.high_ns


@given(durations_lists, st.integers(1, 20))
def test_one_thinned_worker_gives_its_exact_percentiles(durations: list[int], keep: int):
    samples = make_samples(durations, keep=keep)
    for percent in PERCENTS:
        exact = statistic_of(samples, percent).value_ns
        assert pooled_percentile([samples], percent).value_ns == exact


def test_pooling_thinned_workers_that_differ_is_close_to_exact():
    workers = [draw_durations(30_000, median_ns=3_000_000 + 50_000 * w, seed=w) for w in range(3)]
    together = sorted(duration for durations in workers for duration in durations)
    thinned = [make_samples(durations, keep=1000) for durations in workers]
    for percent in (50, 90, 95, 99):
        value = pooled_percentile(thinned, percent).value_ns
        rank = sum(duration <= value for duration in together) / len(together)
        assert rank * 100 == pytest.approx(percent, abs=1.0 if percent < 99 else 0.2)


def test_pooled_interval_holds_every_worker_that_can_say():
    draw = random.Random(1)
    workers = [[base + draw.randrange(10) for _ in range(50)] for base in (1000, 2000, 3000)]
    statistic = pooled_percentile([make_samples(durations) for durations in workers], 90)
    own = [percentile(sorted(durations), 90) for durations in workers]
    assert statistic.low_ns is not None
    assert statistic.high_ns is not None
    assert statistic.low_ns <= min(own)
    assert statistic.high_ns >= max(own)


def test_pooled_percentile_of_too_few_has_no_interval():
    statistic = pooled_percentile([make_samples([5, 6, 7])], 90)
    assert (statistic.value_ns, statistic.low_ns, statistic.high_ns) == (7, None, None)
