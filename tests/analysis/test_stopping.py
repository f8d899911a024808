"""Sizes of blocks and the end of measuring, by driving the rule with made-up workers."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_ortbench.analysis.stopping import BLOCK_NS, MAX_ITERATIONS, StopRule, median_is_known
from pytest_ortbench.core.case import Sampling
from pytest_ortbench.core.outcome import Block
from tests.results_factory import make_block

MS = 1_000_000


def drive(
    rule: StopRule, duration_ns: Callable[[int], int], *, left_s: float | None = None
) -> list[Block]:
    """Run blocks of a worker whose n-th inference takes ``duration_ns(n)``."""
    blocks: list[Block] = []
    counter = itertools.count()
    while True:
        spent_s = sum(block.wall_ns for block in blocks) * 1e-9
        left = None if left_s is None else left_s - spent_s
        iterations = rule.next_block(blocks, left_s=left)
        if iterations is None:
            return blocks
        assert 1 <= iterations <= MAX_ITERATIONS
        assert len(blocks) < 2000, "never stops"
        blocks.append(make_block([duration_ns(next(counter)) for _ in range(iterations)]))


def total(blocks: list[Block]) -> int:
    return sum(len(block.durations_ns) for block in blocks)


def noisy(level_ns: int, noise: float, seed: int = 0) -> Callable[[int], int]:
    draw = random.Random(seed)
    return lambda _: round(level_ns * (1 + noise * draw.random()))


def test_noise_beyond_the_target_uses_the_budget_in_even_blocks():
    rule = StopRule.for_worker(Sampling(target=0.0001), typical_ns=3 * MS)
    blocks = drive(rule, noisy(3 * MS, 0.3))
    assert rule.reason == "budget"
    spent_ns = sum(block.wall_ns for block in blocks)
    assert spent_ns == pytest.approx(5e9 / 3, rel=0.01)
    assert len(blocks) == 7
    assert min(block.wall_ns for block in blocks) > 0.8 * BLOCK_NS


def test_a_known_median_stops_early_with_enough_for_p99():
    rule = StopRule.for_worker(Sampling(), typical_ns=3 * MS)
    blocks = drive(rule, noisy(3 * MS, 0.002))
    assert rule.reason == "target"
    assert 3 * total(blocks) >= 368
    assert sum(block.wall_ns for block in blocks) < 1e9


def test_slow_waves_keep_the_target_from_being_reached():
    # Every sample of a wave agrees, so that the interval of the samples alone is soon narrow.
    rule = StopRule.for_worker(Sampling(), typical_ns=MS)
    drive(rule, lambda n: MS if n // 100 % 2 else round(1.1 * MS))
    assert rule.reason == "budget"


def test_slow_inferences_give_a_minimum_past_the_budget():
    rule = StopRule.for_worker(Sampling(time_s=1.0), typical_ns=400 * MS)
    blocks = drive(rule, lambda _: 400 * MS)
    assert total(blocks) == 3
    assert rule.reason == "budget"


def test_one_worker_owes_all_six_samples_of_a_median():
    rule = StopRule.for_worker(Sampling(time_s=1.0, workers=1), typical_ns=1000 * MS)
    assert total(drive(rule, lambda _: 1000 * MS)) == 6


def test_a_limit_on_p99_extends_the_budget():
    rule = StopRule.for_worker(Sampling(min_samples=368), typical_ns=100 * MS)
    blocks = drive(rule, lambda _: 100 * MS)
    assert 123 <= total(blocks) <= 126
    assert rule.reason == "budget"


def test_the_deadline_ends_it_with_what_there_is():
    rule = StopRule.for_worker(Sampling(min_samples=368), typical_ns=100 * MS)
    blocks = drive(rule, lambda _: 100 * MS, left_s=4.0)
    assert rule.reason == "timeout"
    assert 30 <= total(blocks) < 40


def test_even_without_time_one_inference_is_tried():
    rule = StopRule.for_worker(Sampling(), typical_ns=10**12)
    assert rule.next_block([], left_s=0.0) == 1


def test_unknown_cost_starts_with_one_inference():
    assert StopRule.for_worker(Sampling()).next_block([]) == 1


def test_blocks_of_tiny_inferences_are_capped():
    rule = StopRule.for_worker(Sampling(target=0.0), typical_ns=1000)
    assert rule.next_block([]) == MAX_ITERATIONS


def test_median_of_a_short_stretch_is_not_known():
    assert not median_is_known([make_block([MS] * 200)], 0.01)
    assert median_is_known([make_block([MS] * 400)], 0.01)


@settings(max_examples=50)
@given(
    st.integers(50_000, 2_000_000_000),
    st.floats(1, 20),
    st.integers(1, 5),
    st.floats(0, 0.2),
    st.sampled_from([0, 36, 368]),
)
def test_it_always_ends_with_what_it_owes(
    each_ns: int, time_s: float, workers: int, noise: float, min_samples: int
):
    sampling = Sampling(time_s=time_s / 10, workers=workers, min_samples=min_samples)
    rule = StopRule.for_worker(sampling, typical_ns=each_ns)
    blocks = drive(rule, noisy(each_ns, noise))
    assert rule.reason in ("target", "budget")
    assert workers * total(blocks) >= max(6, min_samples)
    # Never much past the budget, except for what is owed.
    spent_ns = sum(block.wall_ns for block in blocks)
    allowed_ns = max(sampling.time_s * 1e9 / workers, rule.needed * each_ns * (1 + noise))
    assert spent_ns <= 1.3 * allowed_ns + BLOCK_NS + 2 * each_ns


def test_a_known_median_waits_for_the_time_that_something_else_needs():
    level = Sampling(time_s=15.0, workers=3)
    early = drive(StopRule.for_worker(level), lambda _: MS)
    late = drive(StopRule.for_worker(level, least_ns=2000 * MS), lambda _: MS)
    never_so_long = drive(StopRule.for_worker(level, least_ns=1e12), lambda _: MS)
    assert total(early) < 1000 < 2000 <= total(late) < 2300
    assert total(never_so_long) == pytest.approx(5000, rel=0.05)
