"""What the answers of two sides come to."""

from __future__ import annotations

import dataclasses
import math
import re
from typing import Any

import pytest

from pytest_ortbench.core.accuracy import FarthestValue, ReferenceSpread, SpreadTrial
from pytest_ortbench.core.outcome import Accuracy, Answers, OutputAccuracy
from pytest_ortbench.core.precision import Floor
from pytest_ortbench.gate.numbers.answers import AnswersJudged, judge_answers
from pytest_ortbench.gate.numbers.rules import parse_rules, rules_for
from tests.passes.task.test_numbers import counted

FP32 = Floor(sqnr_db=60.0, agreement=0.99, of="native")
FLOAT = {"y": "tensor(float)"}
EXACT: dict[str, Any] = {"exact": True, "compared": 80}


def output(name: str = "y", **figures: Any) -> OutputAccuracy:
    given = {"kind": "float", "finite": True, "compared": 80, **figures}
    return OutputAccuracy(name=name, **given)


def sides(*outputs: OutputAccuracy, **facts: Any) -> Answers:
    given = {"floor": FP32, "baseline_outputs": FLOAT, "contender_outputs": FLOAT, **facts}
    return Answers(compared=Accuracy(samples=8, outputs=outputs), **given)


def judged(answers: Answers | None, *rules: str) -> AnswersJudged:
    return judge_answers(answers, rules_for("x", parse_rules(rules, place="p")).answers)


def verdicts(result: AnswersJudged) -> dict[str, str]:
    return {one.metric: one.verdict for one in result.metrics}


# What is good.


@pytest.mark.parametrize("figures", [EXACT, {"sqnr_db": 60.0}, {"sqnr_db": 80.0}])
def test_answers_within_the_floor_are_good(figures):
    result = judged(sides(output(**figures)))
    assert result.judgement.is_good
    assert not result.fails
    assert verdicts(result) == {"sides_sqnr": "same"}


def test_the_looser_floor_is_held():
    half = dataclasses.replace(FP32, sqnr_db=40.0, of="fp16")
    answers = sides(output(sqnr_db=45.0), floor=half)
    assert judged(answers).judgement.is_good


# What is not.


@pytest.mark.parametrize("ratio", [-39.9, 0.0, 59.9])
def test_answers_below_the_floor_are_less_accurate(ratio):
    result = judged(sides(output(sqnr_db=ratio)))
    assert result.judgement.is_bad
    assert result.fails
    (number,) = result.metrics
    assert (number.metric, number.verdict, number.contender) == (
        "sides_sqnr",
        "less accurate",
        ratio,
    )
    assert "60" in number.allowed


def test_only_a_side_that_misses_its_own_reference_is_named():
    own = Accuracy(samples=8, outputs=(output(sqnr_db=43.2),))
    exact = Accuracy(samples=8, outputs=(output(**EXACT),))
    good = Accuracy(samples=8, outputs=(output(sqnr_db=119.6),))
    answers = sides(output(sqnr_db=1.0), contender_accuracy=own, baseline_accuracy=good)
    reason = judged(answers).judgement.reason
    assert "contender 43.2 dB" in reason
    assert "119.6" not in reason
    answers = dataclasses.replace(answers, contender_accuracy=exact)
    assert "119.6" not in judged(answers).judgement.reason


def test_the_values_that_are_farthest_apart_stand_in_the_reason():
    farthest = FarthestValue(index=(0, 3), value=0.115, reference=0.00712)
    reason = judged(sides(output(sqnr_db=-47.2, farthest=farthest))).judgement.reason
    assert re.match(r"y\[0, 3\] is 0\.115, and 0\.00712 in the baseline.*-47\.2 dB.*60 dB", reason)
    close = FarthestValue(index=(), value=1.000001, reference=1.000002)
    reason = judged(sides(output(sqnr_db=1.0, farthest=close))).judgement.reason
    assert reason.startswith("y is 1.000001, and 1.000002 ")


@pytest.mark.parametrize(
    ("answers", "is_known"),
    [
        (sides(output(sqnr_db=-47.2)), False),
        (sides(output(**EXACT), contender_outputs={"z": "tensor(float)"}), False),
        (sides(output(finite=False, nonfinite=3, nan_count=3)), True),
        (sides(output(sqnr_db=-47.2), task=counted(1000, 700, 900)), True),
        (sides(output(sqnr_db=-47.2), task=counted(8, 8, 8)), False),
    ],
    ids=["decibels", "names", "nan", "labels", "few labels"],
)
def test_who_is_wrong_is_known_by_labels_or_nan_alone(answers: Answers, is_known: bool):
    result = judged(answers)
    assert result.judgement.is_bad
    assert result.side_is_known is is_known


@pytest.mark.parametrize(
    "after",
    [
        {"z": "tensor(float)"},
        {"y": "tensor(float)", "z": "tensor(float)"},
        {"y": "tensor(int64)"},
        {"y": "tensor(double)"},
    ],
)
def test_other_outputs_are_less_accurate_whatever_they_hold(after):
    result = judged(sides(output(**EXACT), contender_outputs=after))
    assert result.judgement.is_bad


def test_outputs_in_another_order_are_less_accurate():
    before = {"a": "tensor(float)", "b": "tensor(float)"}
    after = {"b": "tensor(float)", "a": "tensor(float)"}
    answers = sides(output("a", **EXACT), baseline_outputs=before, contender_outputs=after)
    result = judged(answers)
    assert result.judgement.is_bad
    assert result.metrics[0].contender == 0.0


def test_another_precision_may_have_floats_of_another_width():
    half = {"y": "tensor(float16)"}
    answers = sides(output(sqnr_db=61.0), contender_outputs=half)
    assert judged(answers).judgement.is_bad
    assert judged(dataclasses.replace(answers, retyped=True)).judgement.is_good


def test_one_wrong_output_of_two_is_enough():
    assert judged(sides(output(**EXACT), output("z", sqnr_db=3.0))).judgement.is_bad


@pytest.mark.parametrize("count", [{"nan_count": 3}, {"inf_count": 3}])
def test_nan_on_the_contender_alone_is_less_accurate_whatever_is_allowed(count):
    answers = sides(output(finite=False, nonfinite=3, **count))
    assert judged(answers).judgement.is_bad
    assert judged(answers, "sides_sqnr >= -200 dB").judgement.is_bad


def test_whole_values_are_held_to_the_agreement_floor():
    off = output(kind="integer", agree=0, rows=80, max_abs=1.0)
    assert judged(sides(off, baseline_outputs={}, contender_outputs={})).judgement.is_bad
    few = output(kind="integer", agree=7, rows=8)
    assert judged(sides(few)).judgement.is_good
    text = output(kind="string", agree=0, rows=8)
    assert judged(sides(text)).judgement.is_bad


def test_a_step_of_a_quantised_output_is_rounding():
    step = output(kind="integer", agree=0, rows=80, max_abs=1.0)
    types = {"y": "tensor(uint8)"}
    answers = sides(step, baseline_outputs=types, contender_outputs=types)
    assert judged(answers).judgement.is_good
    types = {"y": "tensor(int64)"}
    answers = sides(step, baseline_outputs=types, contender_outputs=types)
    assert judged(answers).judgement.is_bad


# What can't be judged.


@pytest.mark.parametrize(
    "answers",
    [
        None,
        sides(),
        Answers(floor=FP32, compared=Accuracy(reason="contender: it died")),
        Answers(floor=FP32, compared=Accuracy(samples=0, outputs=(output(**EXACT),))),
        sides(output(exact=True, nonfinite=80, reference_nonfinite=80, compared=0)),
        sides(output(exact=True, nonfinite=1, reference_nonfinite=1)),
        sides(output(reference_nonfinite=80, compared=0)),
        sides(output(kind="class", reference_nonfinite=80, compared=0, agree=0, rows=8)),
        sides(output(sqnr_db=math.nan)),
    ],
)
def test_missing_evidence_fails_and_is_never_the_same(answers):
    result = judged(answers)
    assert result.judgement.is_unjudged
    assert result.fails
    assert "same" not in verdicts(result).values()


@pytest.mark.parametrize(
    "answers",
    [
        Answers(floor=FP32, compared=Accuracy(reason="random"), random_ops=("RandomNormalLike",)),
        sides(output(exact=True, compared=0)),
    ],
)
def test_what_nobody_could_judge_is_said_and_fails_nothing(answers):
    result = judged(answers)
    assert result.judgement.is_unjudged
    assert not result.fails
    assert verdicts(result) == {"sides_sqnr": "unjudged"}


# What the user allows.


def test_a_floor_of_the_pair_replaces_that_of_the_precision():
    answers = sides(output(sqnr_db=45.0))
    assert judged(answers, "sides_sqnr >= 40 dB").judgement.is_good
    assert judged(sides(output(sqnr_db=65.0)), "sides_sqnr >= 70 dB").judgement.is_bad


@pytest.mark.parametrize(
    "answers",
    [
        sides(output(sqnr_db=-40.0)),
        sides(output(**EXACT), contender_outputs={"z": "tensor(float)"}),
        sides(output(kind="integer", agree=0, rows=80)),
        Answers(floor=FP32, compared=Accuracy(reason="no output has the same name")),
    ],
)
def test_answers_may_be_allowed_to_differ_at_all(answers):
    assert judged(answers).fails
    assert not judged(answers, "sides_sqnr >= -200 dB").fails


def test_classes_may_have_a_floor_of_their_own():
    answers = sides(output(kind="class", sqnr_db=65.0, agree=70, rows=80))
    assert verdicts(judged(answers)) == {"sides_sqnr": "same", "sides_agreement": "informs"}
    assert judged(answers, "sides_agreement >= 80 %").judgement.is_good
    result = judged(answers, "sides_agreement >= 95 %")
    assert result.judgement.is_bad
    assert verdicts(result)["sides_agreement"] == "less accurate"


def test_a_floor_for_some_cases_only():
    rules = parse_rules(["sides_sqnr >= 70 dB", "gan@sides_sqnr >= 20 dB"], place="p")
    assert rules_for("gan/native/cpu/b1", rules).answers["sides_sqnr"].value == 20.0
    assert rules_for("x/native/cpu/b1", rules).answers["sides_sqnr"].value == 70.0
    assert rules_for("x/native/cpu/b1", rules).limits == ()


# A model that is not even equal to itself.


def apart_from_itself(ratio: float) -> Accuracy:
    trial = SpreadTrial(name="threads", samples=8, outputs=(output(sqnr_db=ratio),))
    return Accuracy(samples=8, outputs=(output(**EXACT),), spread=ReferenceSpread(trials=(trial,)))


@pytest.mark.parametrize("side", ["baseline_accuracy", "contender_accuracy"])
def test_sides_of_a_plain_file_may_be_ten_times_as_far_apart_as_it_is_from_itself(side: str):
    own = {side: apart_from_itself(70.0)}
    assert judged(sides(output(sqnr_db=55.0), plain=True, **own)).judgement.is_good
    assert judged(sides(output(sqnr_db=45.0), plain=True, **own)).judgement.is_bad
    assert judged(sides(output(sqnr_db=55.0), **own)).judgement.is_bad


def test_a_reference_that_differs_from_itself_by_more_than_the_floor_can_not_judge():
    own = {"baseline_accuracy": apart_from_itself(50.0)}
    result = judged(sides(output(sqnr_db=40.0), **own))
    assert result.judgement.is_unjudged
    assert not result.fails
    assert judged(sides(output(sqnr_db=-39.9), **own)).judgement.is_bad
    assert judged(sides(output(sqnr_db=40.0), **own), "sides_sqnr >= 60 dB").judgement.is_bad


# What labels say.


def test_labels_decide_and_the_difference_is_shown():
    answers = sides(output(sqnr_db=12.0), task=counted(1000, 900, 900))
    result = judged(answers)
    assert result.judgement.is_good
    assert verdicts(result) == {"sides_sqnr": "informs"}
    assert result.metrics[0].contender == 12.0
    assert judged(answers, "sides_sqnr >= 40 dB").judgement.is_bad


def test_a_lost_task_is_less_accurate_though_outputs_agree():
    assert judged(sides(output(**EXACT), task=counted(1000, 700, 900))).judgement.is_bad


def test_too_few_labels_leave_it_to_the_floors():
    assert judged(sides(output(sqnr_db=12.0), task=counted(8, 8, 8))).judgement.is_bad
