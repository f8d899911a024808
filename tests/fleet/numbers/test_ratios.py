from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_ortbench.core.quantity import Quantity
from pytest_ortbench.fleet.numbers.ratios import Ratio, apart, geometric_mean, interval, ratio


def seconds(low: float | None, value: float, high: float | None) -> Quantity:
    return Quantity(value=value, unit="s", low=low, high=high)


def test_a_ratio_is_contender_by_baseline_with_the_farthest_ends() -> None:
    found = ratio(seconds(1.9, 2.0, 2.2), seconds(3.8, 4.0, 4.4))
    assert found is not None
    assert (found.value, found.low, found.high) == (
        0.5,
        pytest.approx(1.9 / 4.4),
        pytest.approx(2.2 / 3.8),
    )


def test_without_an_interval_on_one_side_there_is_none() -> None:
    assert ratio(seconds(None, 2.0, None), seconds(3.8, 4.0, 4.4)) == Ratio(value=0.5)


def test_nothing_is_a_multiple_of_zero() -> None:
    assert ratio(seconds(1, 2, 3), seconds(0, 0, 0)) is None


def test_twice_and_half_cancel() -> None:
    found = geometric_mean([Ratio(value=2, low=1, high=4), Ratio(value=0.5, low=0.25, high=1)])
    assert found == Ratio(value=1.0, low=0.5, high=2.0)
    assert geometric_mean([]) is None


@given(st.lists(st.floats(0.01, 100), min_size=1, max_size=20))
def test_the_mean_of_inverses_is_the_inverse_of_the_mean(values: list[float]) -> None:
    there = geometric_mean([Ratio(value=value) for value in values])
    back = geometric_mean([Ratio(value=1 / value) for value in values])
    assert there is not None
    assert back is not None
    assert math.isclose(there.value, 1 / back.value, rel_tol=1e-9)
    assert min(values) * (1 - 1e-9) <= there.value <= max(values) * (1 + 1e-9)


def test_a_blurring_flag_widens_the_interval_by_five_per_cent_each_way() -> None:
    assert interval(seconds(1.0, 1.5, 2.0), blurred=True) == pytest.approx((0.95, 2.1))
    assert interval(seconds(1.0, 1.5, 2.0), blurred=False) == (1.0, 2.0)


@pytest.mark.parametrize(
    ("one", "other", "margin", "expected"),
    [
        ((1.0, 2.0), (2.0, 3.0), 0.0, False),  # they touch
        ((1.0, 1.9), (2.0, 3.0), 0.0, True),
        ((0.99, 1.01), (1.02, 1.04), 0.05, False),  # apart, but within the margin
        ((0.99, 1.01), (1.07, 1.09), 0.05, True),
        ((1.07, 1.09), (0.99, 1.01), 0.05, True),
    ],
)
def test_apart(
    one: tuple[float, float], other: tuple[float, float], margin: float, expected: bool
) -> None:
    assert apart(one, other, margin=margin) is expected
