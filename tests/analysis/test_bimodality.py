"""Two groups of durations, against shapes that only look like two."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_ortbench.analysis.samples import two_groups

ONE_GROUP: dict[str, Callable[[random.Random], float]] = {
    "normal": lambda draw: draw.gauss(100, 5),
    "wide normal": lambda draw: max(1, draw.gauss(100, 25)),
    "uniform": lambda draw: draw.uniform(50, 150),
    "exponential": lambda draw: 10 + draw.expovariate(0.05),
    "lognormal": lambda draw: 100 * draw.lognormvariate(0, 0.5),
    "normal with a tail of a tenth": lambda draw: (
        draw.gauss(300, 30) if draw.random() < 0.1 else draw.gauss(100, 3)
    ),
    "two groups 2 % apart": lambda draw: draw.choice((100, 102)) + draw.gauss(0, 0.1),
}


@pytest.mark.parametrize("shape", ONE_GROUP)
def test_one_group_is_one(shape: str):
    draw = random.Random(3)
    durations = [round(1000 * max(0.001, ONE_GROUP[shape](draw))) for _ in range(1000)]
    assert two_groups(durations) is None


@pytest.mark.parametrize("share", [0.25, 0.5, 0.75])
def test_two_groups_are_found_with_their_shares(share: float):
    draw = random.Random(5)
    durations = [
        round(1000 * (draw.gauss(150, 3) if draw.random() < share else draw.gauss(100, 3)))
        for _ in range(1000)
    ]
    groups = two_groups(durations)
    assert groups is not None
    assert groups.lower_s == pytest.approx(100e-6, rel=0.01)
    assert groups.upper_s == pytest.approx(150e-6, rel=0.01)
    assert groups.upper_share == pytest.approx(share, abs=0.04)


def test_the_share_is_one_of_all_durations():
    # 700 of 1 ms and 300 of 2.01 to 5 ms: of these the slowest 50 only have no say in the cut.
    slow = [2_000_000 + 10_000 * index for index in range(1, 301)]
    groups = two_groups([1_000_000] * 700 + slow)
    assert groups is not None
    assert groups.upper_share == pytest.approx(0.3)
    assert groups.lower_s == pytest.approx(1e-3)
    # The median of all 300, not of the 250 faster ones (3.255 ms).
    assert groups.upper_s == pytest.approx(3.505e-3)


def test_few_samples_are_never_two_groups():
    assert two_groups([100, 200] * 19) is None
    assert two_groups([100, 200] * 40) is not None


@given(st.lists(st.integers(0, 10**12), max_size=200))
def test_anything_is_judged_without_an_error(durations: list[int]):
    groups = two_groups(durations)
    assert groups is None or (groups.lower_s < groups.upper_s and 0 < groups.upper_share < 1)
