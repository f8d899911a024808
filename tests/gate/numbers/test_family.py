"""Holm's procedure over a suite, and sending flagged cases on."""

from __future__ import annotations

import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_ortbench.gate.numbers.family import adjusted_p, correct_for_suite, deciding_look, holm
from pytest_ortbench.gate.numbers.looks import (
    DEDICATED,
    SHARED_FLOOR,
    SLOWER,
    LookVerdict,
    take_looks,
)


def regressed(launches: int, p: float, verdict: str = SLOWER) -> LookVerdict:
    return LookVerdict(verdict=verdict, estimate=0.07, low=0.02, high=0.1, p=p, launches=launches)


def test_holm_steps_down():
    assert holm({"a": 0.001, "b": 0.004, "c": 0.02}, 0.01) == {"a", "b"}
    # The second fails at .01 / 2, so the third is not even looked at.
    assert holm({"a": 0.001, "b": 0.006, "c": 0.0065}, 0.01) == {"a"}
    assert holm({}, 0.01) == frozenset()


@given(st.dictionaries(st.integers(), st.floats(0, 1), min_size=1, max_size=20))
def test_holm_lies_between_bonferroni_and_no_correction(p_values: dict[int, float]):
    rejected = holm(p_values, 0.01)
    assert {key for key, p in p_values.items() if p <= 0.01 / len(p_values)} <= rejected
    assert rejected <= {key for key, p in p_values.items() if p <= 0.01}


def test_one_case_can_be_decided_at_the_first_look_and_two_can_not():
    assert deciding_look(1, SHARED_FLOOR) == 8
    assert deciding_look(2, SHARED_FLOOR) == 12
    assert deciding_look(12, SHARED_FLOOR) == 12
    assert deciding_look(13, SHARED_FLOOR) == 20
    assert deciding_look(3000, SHARED_FLOOR) == 20
    assert deciding_look(4000, SHARED_FLOOR) is None
    # A dedicated machine has the same looks: large suites can be decided there, too.
    assert deciding_look(18, DEDICATED) == deciding_look(3000, DEDICATED) == 20


def test_looks_share_the_error():
    assert adjusted_p(0.004, 8, SHARED_FLOOR) == pytest.approx(0.01)
    assert adjusted_p(0.003, 20, SHARED_FLOOR) == pytest.approx(0.01)
    with pytest.raises(ValueError, match="look at 9"):
        adjusted_p(0.004, 9, SHARED_FLOOR)


def test_a_lone_flag_in_a_suite_of_one_stands():
    corrected = correct_for_suite({"a": regressed(8, 2**-8)}, SHARED_FLOOR)
    assert corrected.confirmed == {"a"}
    assert corrected.go_on == {}


def test_a_flag_goes_on_to_the_look_at_which_it_can_stand():
    judgements = {"a": regressed(8, 2**-8)}
    judgements |= {name: regressed(8, 0.5, verdict="not slower") for name in "bcdefghijklmn"}
    corrected = correct_for_suite(judgements, SHARED_FLOOR)
    assert corrected.confirmed == frozenset()
    assert corrected.go_on == {"a": 20}
    judgements["a"] = regressed(20, 2**-20)
    assert correct_for_suite(judgements, SHARED_FLOOR).confirmed == {"a"}


def test_a_flag_that_never_stands_is_unconfirmed():
    judgements = {"a": regressed(20, 0.003), "b": regressed(8, 0.5, verdict="not slower")}
    corrected = correct_for_suite(judgements, SHARED_FLOOR)
    assert corrected.unconfirmed == {"a"}
    assert corrected.go_on == {}


def test_family_of_equal_sides_raises_hardly_any_alarm():
    draw = random.Random(3)
    alarms = 0
    for _ in range(300):
        values = {case: [draw.gauss(0, 0.05) for _ in range(20)] for case in range(12)}
        judgements = {case: take_looks(series, SHARED_FLOOR) for case, series in values.items()}
        corrected = correct_for_suite(judgements, SHARED_FLOOR)
        for case, ahead in corrected.go_on.items():
            judgements[case] = take_looks(values[case], SHARED_FLOOR, not_before=ahead)
        alarms += bool(correct_for_suite(judgements, SHARED_FLOOR).confirmed)
    # One in a hundred at most is expected, and four binomial deviations above three are ten. Case
    # by case, without Holm's procedure, it would be about 27.
    assert alarms <= 10


def test_true_slowdowns_in_a_suite_are_confirmed():
    draw = random.Random(5)
    shift = {case: math.log(1.08) if case < 3 else 0.0 for case in range(12)}
    values = {c: [draw.gauss(shift[c], 0.01) for _ in range(20)] for c in shift}
    judgements = {case: take_looks(series, SHARED_FLOOR) for case, series in values.items()}
    corrected = correct_for_suite(judgements, SHARED_FLOOR)
    assert corrected.go_on == {0: 12, 1: 12, 2: 12}
    for case, ahead in corrected.go_on.items():
        judgements[case] = take_looks(values[case], SHARED_FLOOR, not_before=ahead)
    assert correct_for_suite(judgements, SHARED_FLOOR).confirmed == {0, 1, 2}
