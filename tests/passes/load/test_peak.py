"""The search for the highest valid rate, against edges that are known."""

from __future__ import annotations

import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_ortbench.passes.load.numbers.peak import RESOLUTION, search_peak


def always(_: float) -> bool:
    return True


@given(st.floats(min_value=0.05, max_value=8.0))
def test_it_brackets_the_edge_wherever_it_lies(edge: float) -> None:
    tested: list[float] = []

    def is_valid(rate: float) -> bool:
        tested.append(rate)
        return rate <= 100 * edge

    found = search_peak(is_valid, 70.0, capacity_per_s=100.0, affordable=always)
    assert found.complete
    assert found.valid_per_s is not None
    assert found.invalid_per_s is not None
    assert found.valid_per_s <= 100 * edge < found.invalid_per_s
    assert found.invalid_per_s <= found.valid_per_s * (1 + RESOLUTION)
    # Twice at whatever it should be able to do and can't, and where the search ends.
    for rate in set(tested):
        doubted = rate > 100 * edge and (rate < 100 or rate == found.invalid_per_s)
        assert tested.count(rate) == 1 + doubted
    assert len(tested) <= 24


def test_near_the_capacity_it_takes_few_tests() -> None:
    tested: list[float] = []

    def is_valid(rate: float) -> bool:
        tested.append(rate)
        return rate <= 80.5

    found = search_peak(is_valid, 70.0, capacity_per_s=100.0, affordable=always)
    first = math.sqrt(70 * 91)
    second = math.sqrt(first * 91)
    third = math.sqrt(first * second)
    # 70 and 91 are the bracket, which is halved by its ratio until 5 % are left.
    assert tested == pytest.approx([70.0, 91.0, 91.0, first, second, second, third, third])
    assert (found.valid_per_s, found.invalid_per_s) == pytest.approx((first, third))


@given(st.integers(min_value=0, max_value=6))
def test_one_stall_costs_time_and_not_the_answer(stalled: int) -> None:
    tested: list[float] = []

    def is_valid(rate: float) -> bool:
        tested.append(rate)
        return rate <= 85.0 and len(tested) != stalled + 1

    found = search_peak(is_valid, 70.0, capacity_per_s=100.0, affordable=always)
    assert found.complete
    assert found.valid_per_s is not None
    assert found.invalid_per_s is not None
    assert found.valid_per_s <= 85.0 < found.invalid_per_s <= found.valid_per_s * (1 + RESOLUTION)


@given(
    st.floats(min_value=0.2, max_value=0.99),
    st.lists(st.integers(min_value=0, max_value=12), unique=True, max_size=5),
)
def test_stalls_do_not_pull_the_answer_down(edge: float, stalled: list[int]) -> None:
    """A machine that stalls now and then, but not in two tests running, gives the same answer."""
    apart = {number for number in stalled if number - 1 not in stalled}
    tested: list[float] = []

    def is_valid(rate: float) -> bool:
        tested.append(rate)
        return rate <= 100 * edge and len(tested) - 1 not in apart

    found = search_peak(is_valid, 70.0, capacity_per_s=100.0, affordable=always)
    assert found.complete, tested
    assert found.valid_per_s is not None
    assert found.invalid_per_s is not None
    assert found.valid_per_s <= 100 * edge < found.invalid_per_s
    assert found.invalid_per_s <= found.valid_per_s * (1 + RESOLUTION)


def test_a_machine_that_stalls_in_a_third_of_the_tests_is_seldom_taken_for_a_slow_one() -> None:
    """One test alone would end a search below six tenths of the truth in most of these."""
    short = 0
    for seed in range(200):
        draw = random.Random(seed)
        found = search_peak(
            lambda rate, draw=draw: rate <= 85.0 and draw.random() > 1 / 3,
            70.0,
            capacity_per_s=100.0,
            affordable=always,
        )
        short += found.valid_per_s is None or found.valid_per_s < 0.85 * 85.0
    assert short <= 60


def test_nothing_is_valid() -> None:
    tested: list[float] = []

    def is_valid(rate: float) -> bool:
        tested.append(rate)
        return False

    found = search_peak(is_valid, 70.0, capacity_per_s=100.0, affordable=lambda rate: rate > 1.0)
    assert (found.valid_per_s, found.complete) == (None, False)
    assert found.invalid_per_s == min(tested)
    assert min(tested) > 1.0
    assert tested == sorted(tested, reverse=True)
    # A single one says nothing where it stands alone, the last included.
    assert all(tested.count(rate) == 2 for rate in tested)


def test_it_stops_where_there_is_no_time_for_another_test() -> None:
    left = 3

    def affordable(rate: float) -> bool:
        nonlocal left
        left -= 1
        return left >= 0

    found = search_peak(lambda rate: rate <= 80.0, 50.0, capacity_per_s=60.0, affordable=affordable)
    assert (found.valid_per_s, found.invalid_per_s) == pytest.approx((65.0, 84.5))
    assert not found.complete
