"""The search for the highest valid rate, against edges that are known."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_ortbench.engine.peak import RESOLUTION, search_peak


def always(_: float) -> bool:
    return True


@given(st.floats(min_value=0.05, max_value=8.0))
def test_it_brackets_the_edge_wherever_it_lies(edge: float) -> None:
    tested: list[float] = []

    def is_valid(rate: float) -> bool:
        tested.append(rate)
        return rate <= 100 * edge

    found = search_peak(is_valid, 70.0, affordable=always)
    assert found.complete
    assert found.valid_per_s is not None
    assert found.invalid_per_s is not None
    assert found.valid_per_s <= 100 * edge < found.invalid_per_s
    assert found.invalid_per_s <= found.valid_per_s * (1 + RESOLUTION)
    assert len(tested) == len(set(tested)) + 1 <= 16


def test_near_the_capacity_it_takes_few_tests() -> None:
    tested: list[float] = []

    def is_valid(rate: float) -> bool:
        tested.append(rate)
        return rate <= 80.5

    found = search_peak(is_valid, 70.0, affordable=always)
    first = math.sqrt(70 * 91)
    second = math.sqrt(first * 91)
    third = math.sqrt(first * second)
    # 70 and 91 are the bracket, which is halved by its ratio until 5 % are left.
    assert tested == pytest.approx([70.0, 91.0, first, second, third, third])
    assert (found.valid_per_s, found.invalid_per_s) == pytest.approx((first, third))


@given(st.integers(min_value=0, max_value=6))
def test_one_stall_costs_time_and_not_the_answer(stalled: int) -> None:
    tested: list[float] = []

    def is_valid(rate: float) -> bool:
        tested.append(rate)
        return rate <= 85.0 and len(tested) != stalled + 1

    found = search_peak(is_valid, 70.0, affordable=always)
    assert found.complete
    assert found.valid_per_s is not None
    assert found.invalid_per_s is not None
    assert found.valid_per_s <= 85.0 < found.invalid_per_s <= found.valid_per_s * (1 + RESOLUTION)


def test_nothing_is_valid() -> None:
    tested: list[float] = []

    def is_valid(rate: float) -> bool:
        tested.append(rate)
        return False

    found = search_peak(is_valid, 70.0, affordable=lambda rate: rate > 1.0)
    assert (found.valid_per_s, found.complete) == (None, False)
    assert found.invalid_per_s == min(tested)
    assert min(tested) > 1.0
    assert tested == sorted(tested, reverse=True)


def test_it_stops_where_there_is_no_time_for_another_test() -> None:
    left = 3

    def affordable(rate: float) -> bool:
        nonlocal left
        left -= 1
        return left >= 0

    found = search_peak(lambda rate: rate <= 80.0, 50.0, affordable=affordable)
    assert (found.valid_per_s, found.invalid_per_s) == pytest.approx((65.0, 84.5))
    assert not found.complete
