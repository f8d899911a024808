"""Contrasts of a launch, and how its rounds are cut."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_ortbench.gate.numbers.contrasts import (
    Round,
    block_size,
    contrasts_of,
    errors_of,
    reduce_rounds,
    round_count,
)
from tests.results_factory import make_block


def pair(baseline: list[int], contender: list[int]) -> Round:
    return Round(baseline=make_block(baseline), contender=make_block(contender))


def test_floor_is_over_all_blocks_and_typical_over_rounds():
    launch = reduce_rounds(
        [
            pair([100, 110, 120], [220, 210, 230]),
            pair([300, 310, 320], [310, 330, 320]),
            pair([105, 115, 125], [230, 240, 250]),
        ]
    )
    contrasts = contrasts_of(launch)
    assert contrasts.floor == pytest.approx(math.log(210 / 100))
    assert contrasts.typical == pytest.approx(math.log(220 / 110))


def test_swapped_sides_give_the_negative():
    rounds = [pair([100, 130], [140, 150]), pair([90, 95], [120, 100])]
    swapped = [Round(baseline=one.contender, contender=one.baseline) for one in rounds]
    there, back = (contrasts_of(reduce_rounds(side)) for side in (rounds, swapped))
    assert back.floor == pytest.approx(-there.floor)
    assert back.typical == pytest.approx(-there.typical)


def test_equal_sides_have_no_contrast():
    contrasts = contrasts_of(reduce_rounds([pair([100, 120], [100, 120])] * 4))
    assert (contrasts.floor, contrasts.typical) == (0.0, 0.0)


def test_errors_are_the_gap_of_the_fastest_blocks_and_the_error_of_a_median():
    launch = reduce_rounds(
        [
            pair([100], [220]),
            pair([104], [210]),
            pair([150], [300]),
            pair([200], [440]),
        ]
    )
    errors = errors_of(launch)
    assert errors.floor == pytest.approx(math.log(104 / 100) + math.log(220 / 210))
    ratios = [math.log(2.2), math.log(210 / 104), math.log(2.0), math.log(2.2)]
    middle = (math.log(2.2) + math.log(210 / 104)) / 2
    scatter = sorted(abs(ratio - middle) for ratio in ratios)
    mad = (scatter[1] + scatter[2]) / 2
    assert errors.typical == pytest.approx(1.2533 * 1.4826 * mad / 2)


def test_one_round_tells_no_error():
    errors = errors_of(reduce_rounds([pair([100], [100])]))
    assert (errors.floor, errors.typical) == (math.inf, math.inf)


@given(
    st.lists(st.tuples(st.integers(100, 10**6), st.integers(100, 10**6)), min_size=2, max_size=9),
    st.integers(2, 5),
)
def test_errors_know_neither_the_side_nor_the_difference(times, factor):
    plain = errors_of(reduce_rounds([pair([a], [b]) for a, b in times]))
    swapped = errors_of(reduce_rounds([pair([b], [a]) for a, b in times]))
    slower = errors_of(reduce_rounds([pair([a], [factor * b]) for a, b in times]))
    for other in (swapped, slower):
        assert other.floor == pytest.approx(plain.floor, abs=1e-9)
        assert other.typical == pytest.approx(plain.typical, abs=1e-9)


@pytest.mark.parametrize(
    ("rounds", "message"),
    [([], "without rounds"), ([pair([100], [])], "without inferences"), ([pair([0], [1])], "zero")],
)
def test_launches_without_a_contrast_are_refused(rounds: list[Round], message: str):
    with pytest.raises(ValueError, match=message):
        contrasts_of(reduce_rounds(rounds))


@pytest.mark.parametrize(
    ("typical_s", "iterations", "rounds"),
    [(0.0001, 120, 40), (0.003, 4, 40), (0.012, 1, 40), (0.05, 1, 30), (0.3, 1, 10), (2.0, 1, 5)],
)
def test_blocks_last_about_12_ms(typical_s: float, iterations: int, rounds: int):
    assert block_size(typical_s) == iterations
    assert round_count(typical_s) == rounds


@pytest.mark.parametrize(
    ("typical_s", "callers", "iterations", "rounds"),
    [(0.003, 4, 16, 40), (0.012, 4, 12, 40), (0.015, 4, 12, 33), (0.1, 2, 6, 10)],
)
def test_each_of_several_callers_has_three_inferences_a_block_at_least(
    typical_s: float, callers: int, iterations: int, rounds: int
):
    assert block_size(typical_s, callers) == iterations
    assert round_count(typical_s, callers) == rounds
