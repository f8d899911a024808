"""The metric of a task, what is kept of the reference's, and the verdict, by hand."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from pytest_ortbench.analysis.inaccuracy import evidence_of, judge_accuracy
from pytest_ortbench.analysis.limits import check_limits
from pytest_ortbench.analysis.summary import summarise
from pytest_ortbench.analysis.validity import flags_of
from pytest_ortbench.core.judgement import Outcome
from pytest_ortbench.core.limits import parse_limit
from pytest_ortbench.core.outcome import Accuracy, CaseResult, OutputAccuracy
from pytest_ortbench.passes.task.facts import BoxAccuracy, Precisions, TaskAccuracy
from pytest_ortbench.passes.task.numbers import (
    judge,
    judge_task,
    kept_ratio,
    mean_score,
    paired_difference,
    student_t,
)
from tests.results_factory import make_result


def counted(samples: int, right: int, before: int, better: int = 0) -> TaskAccuracy:
    """Right and wrong answers; ``better`` of them were wrong in the reference."""
    worse = before - right + better
    return TaskAccuracy(
        dataset="d.npz",
        metric="top-1",
        samples=samples,
        score_sum=float(right),
        largest=1.0,
        reference="fp32",
        reference_sum=float(before),
        difference_squares=float(better + worse),
        better=better,
        worse=worse,
    )


#: From published tables of Student's distribution.
@pytest.mark.parametrize(
    ("freedom", "deviate"),
    [
        (1, 12.7062), (2, 4.3027), (3, 3.1824), (4, 2.7764), (9, 2.2622), (10, 2.2281),
        (30, 2.0423), (120, 1.9799), (100_000, 1.9600),
    ],
)  # fmt: skip
def test_students_deviate_is_that_of_the_tables(freedom: int, deviate: float) -> None:
    assert student_t(freedom) == pytest.approx(deviate, abs=6e-5)


def test_three_of_four_right_is_0_75_with_its_exact_interval() -> None:
    value, low, high = mean_score(counted(4, 3, 3))
    assert value == 0.75
    # Clopper-Pearson for 3 of 4.
    assert low == pytest.approx(0.1941, abs=1e-4)
    assert high == pytest.approx(0.9937, abs=1e-4)


def test_scores_that_are_not_right_or_wrong_have_no_such_interval() -> None:
    task = replace(counted(4, 3, 3), score_sum=2.5, largest=0.9)
    assert mean_score(task) == (0.625, None, None)


def test_the_paired_difference_by_hand() -> None:
    # 1000 samples, 900 right before; 5 became wrong, 2 right: mean -0.003, squares 7.
    task = counted(1000, 897, 900, better=2)
    found = paired_difference(task)
    assert found is not None
    assert found.value == pytest.approx(-0.003)
    variance = (7 - 1000 * 0.003**2) / 999
    half = 1.96234 * math.sqrt(variance / 1000)  # Student's t at 999 degrees of freedom
    assert found.low == pytest.approx(-0.003 - half, abs=1e-7)
    assert found.high == pytest.approx(-0.003 + half, abs=1e-7)
    kept = kept_ratio(task)
    assert kept is not None
    assert kept[0] == pytest.approx(897 / 900)
    assert kept[1] == pytest.approx(1 + (-0.003 - half) / 0.9)


def test_no_sample_that_changed_proves_no_more_than_the_rule_of_three() -> None:
    found = paired_difference(counted(100, 90, 90))
    assert found is not None
    assert found.value == 0
    assert found.low == pytest.approx(-(1 - 0.025**0.01))  # 3.6 % of the samples may yet change
    few = judge_task(counted(100, 90, 90))
    assert few.is_unjudged
    assert "409 samples" in few.reason
    assert judge_task(counted(400, 360, 360)).is_unjudged
    assert judge_task(counted(410, 369, 369)).is_good


def test_one_sample_alone_and_all_alike_have_an_interval() -> None:
    single = paired_difference(counted(1, 0, 1))
    assert single is not None
    assert (single.value, single.low, single.high) == (-1.0, -2.0, 2.0)
    every = paired_difference(counted(50, 0, 50))
    assert every is not None
    assert every.value == -1
    assert every.low < -1 < every.high


@pytest.mark.parametrize(
    ("task", "outcome"),
    [
        (counted(2000, 1800, 1800), Outcome.GOOD),
        (counted(2000, 1798, 1800), Outcome.GOOD),  # 99.89 %, at least 99.73 %
        (counted(2000, 1790, 1800), Outcome.GOOD),  # 99.44 %, at least 99.10 %
        (counted(2000, 1788, 1800), Outcome.BAD),  # 99.33 %, at least 98.96 %
        (counted(2000, 1700, 1800), Outcome.BAD),
        (counted(200, 179, 180), Outcome.UNJUDGED),  # one of 180: too few to know
        (counted(200, 180, 180), Outcome.UNJUDGED),
        (
            counted(20, 16, 15),
            Outcome.UNJUDGED,
        ),  # better by one, and unchanged samples would prove nothing
        (counted(20, 14, 15), Outcome.UNJUDGED),
        (counted(20, 6, 15), Outcome.BAD),  # 40 %, and 72 % at most
        (counted(400, 341, 340, better=31), Outcome.UNJUDGED),  # better, though 61 samples changed
        (
            counted(430, 343, 344, better=9),
            Outcome.UNJUDGED,
        ),  # 430 unchanged ones would keep 98.93 %
        (counted(470, 375, 376, better=9), Outcome.BAD),  # 470 would keep 99.02 %, and one was lost
        (replace(counted(200, 10, 10), reference_sum=0.0), Outcome.UNJUDGED),
        (replace(counted(200, 10, 10), reference_sum=None), Outcome.UNJUDGED),
    ],
)
def test_the_lower_bound_must_keep_99_percent(task: TaskAccuracy, outcome: Outcome) -> None:
    assert judge_task(task).outcome is outcome


@pytest.mark.parametrize(
    "task",
    [
        None,
        TaskAccuracy(dataset="d.npz", reason="no such file"),
        TaskAccuracy(dataset="d.npz"),
        replace(counted(2000, 1800, 1800), samples=0),
        replace(counted(2000, 1800, 1800), score_sum=math.nan),
        replace(counted(2000, 1800, 1800), reference_sum=math.nan),
        replace(counted(2000, 1800, 1800), difference_squares=math.inf, better=3),
        replace(counted(2000, 1800, 1800), reference_sum=-3.0),
        counted(1, 1, 1),
    ],
)
def test_scores_that_are_missing_or_no_numbers_keep_nothing(task: TaskAccuracy | None) -> None:
    judgement = judge_task(task)
    assert judgement.is_unjudged
    assert judgement.reason


def test_one_changed_sample_of_too_few_leaves_the_judgement_to_the_floor() -> None:
    assert evidence_of(noisy(120, counted(20, 16, 15))).wrong == ""
    assert evidence_of(noisy(120, counted(20, 14, 15))).wrong == ""
    assert "SQNR 12.0 dB" in evidence_of(noisy(12, counted(20, 16, 15))).wrong
    assert evidence_of(noisy(120, counted(20, 6, 15))).wrong.startswith(
        "top-1 0.3 (reference 0.75)"
    )


def test_the_reason_says_all_that_decides() -> None:
    assert judge_task(counted(2000, 1700, 1800)).reason == (
        "top-1 0.85 (reference 0.9): 94.44 % of the reference's score, at least 93.38 % (95 % "
        "interval, 2000 samples); the minimum is 99 %"
    )


# -- labels and floors ---------------------------------------------------------------------------


def noisy(sqnr_db: float, task: TaskAccuracy | None, *, finite: bool = True) -> CaseResult:
    output = OutputAccuracy(
        name="y", kind="class", finite=finite, nan_count=0 if finite else 3, sqnr_db=sqnr_db
    )
    accuracy = Accuracy(reference="fp32", samples=8, magnitudes=(1.0,), outputs=(output,))
    return replace(make_result(), accuracy=accuracy, task=task)


def test_labels_go_before_the_floor_of_the_precision() -> None:
    assert "SQNR 12.0 dB" in evidence_of(noisy(12, None)).wrong
    assert evidence_of(noisy(12, counted(2000, 1800, 1800))).wrong == ""
    assert evidence_of(noisy(120, counted(2000, 1700, 1800))).wrong.startswith("top-1 0.85")


def test_too_few_labels_leave_the_judgement_to_the_floor() -> None:
    assert "SQNR 12.0 dB" in evidence_of(noisy(12, counted(4, 3, 3))).wrong
    assert evidence_of(noisy(120, counted(4, 3, 3))).wrong == ""


@pytest.mark.parametrize(
    ("sqnr_db", "task", "outcome"),
    [
        # The original keeps its answers, however few labels say so.
        (111, counted(12, 9, 9), Outcome.GOOD),
        # Outputs that differ by more than rounding wait for more labels, ...
        (40, counted(12, 9, 9), Outcome.UNJUDGED),
        # ... and so do scores that changed, either way.
        (111, counted(12, 8, 9), Outcome.UNJUDGED),
        (111, counted(12, 9, 9, better=1), Outcome.UNJUDGED),
        # Labels that measure nothing judge nothing.
        (111, replace(counted(12, 0, 0), reference_sum=0.0), Outcome.UNJUDGED),
        (111, replace(counted(12, 9, 9), reference_sum=None), Outcome.UNJUDGED),
    ],
)
def test_few_labels_take_nothing_from_what_the_outputs_prove(
    sqnr_db: float, task: TaskAccuracy, outcome: Outcome
) -> None:
    judged = judge(noisy(sqnr_db, task))
    assert judged is not None
    assert judged.outcome is outcome


def test_few_boxes_take_nothing_from_what_the_outputs_prove() -> None:
    parts = (0.38, 0.39, 0.40)
    same = boxes_of(parts, parts, samples=12)
    found = [judge(noisy(db, same)) for db in (111, 40)]
    assert [entry.outcome for entry in found if entry] == [Outcome.GOOD, Outcome.UNJUDGED]
    other = boxes_of((0.38, 0.39, 0.39), parts, samples=12)
    changed = judge(noisy(111, other))
    assert changed is not None
    assert changed.is_unjudged


def test_a_floor_of_the_users_own_and_nan_hold_beside_labels() -> None:
    result = noisy(12, counted(2000, 1800, 1800))
    recipe = {"base": "int8-static", "sqnr_floor_db": "20"}
    variant = replace(result.case.variant, precision="mine", recipe=recipe)
    own = replace(result, case=replace(result.case, variant=variant))
    assert "minimum of 20 dB for mine" in evidence_of(own).wrong
    assert "3 NaN" in evidence_of(noisy(12, counted(2000, 1800, 1800), finite=False)).wrong


def test_nan_on_labelled_samples_is_nonfinite_however_well_the_rest_is_answered() -> None:
    task = replace(counted(2000, 1800, 1800), nonfinite=40)
    result = noisy(120, task)
    assert evidence_of(result).nonfinite == "40 values on the 2000 labelled samples"
    assert judge_accuracy(result).is_bad
    assert summarise(result).quantities["accuracy_finite"].value == 0
    assert "NONFINITE" in {flag.name for flag in flags_of(result)}
    given = replace(result, task=replace(task, nonfinite_inputs=3))
    assert evidence_of(given).nonfinite.endswith(
        "; the inputs themselves hold 3 NaN or infinite values"
    )


def test_limits_hold_against_the_metric_and_against_what_is_kept() -> None:
    summary = summarise(noisy(120, counted(4, 3, 3)))
    assert summary.quantities["task_metric"].value == 0.75
    texts = (
        "task_metric >= 0.75",
        "task_metric >= 0.76",
        "task_ratio >= 99 %",
        "task_kept >= 99 %",
    )
    found = [
        outcome.judgement.is_good
        for outcome in check_limits([parse_limit(t, place="") for t in texts], summary)
    ]
    assert found == [True, False, True, False]
    strict = summarise(noisy(120, counted(40_000, 30_000, 30_000)))
    (outcome,) = check_limits([parse_limit("task_kept >= 99.9 %", place="")], strict)
    assert outcome.judgement.is_good


def test_without_labels_there_is_a_reason() -> None:
    summary = summarise(noisy(120, None))
    assert summary.missing["task_metric"] == "no labelled data was given (--ort-dataset)"
    failed = noisy(120, TaskAccuracy(dataset="d.npz", reason="d.npz holds no samples"))
    assert summarise(failed).missing["task_kept"] == "d.npz holds no samples"
    alone = replace(
        counted(4, 3, 3), reference_sum=None, difference_squares=None, reference_reason="no file"
    )
    found = summarise(noisy(120, alone))
    assert found.quantities["task_metric"].value == 0.75
    assert found.missing["task_ratio"] == "no file"


def boxes_of(
    own: tuple[float, ...], before: tuple[float, ...], samples: int = 1000
) -> TaskAccuracy:
    """Mean average precisions as they are without each of some parts; the whole is their mean."""
    sides = [
        Precisions(mean_ap=sum(side) / len(side), mean_ap_50=0.9, left_out=side)
        for side in (own, before)
    ]
    return TaskAccuracy(
        dataset="coco:labels.json",
        metric="mAP",
        samples=samples,
        score_sum=samples * sides[0].mean_ap,
        largest=1.0,
        reference="fp32",
        reference_sum=samples * sides[1].mean_ap,
        boxes=BoxAccuracy(
            form="yolov8: out",
            classes="by name",
            drawn=9,
            detected=9,
            own=sides[0],
            reference=sides[1],
        ),
    )


class TestBoxes:
    def test_the_interval_is_that_of_the_jackknife(self) -> None:
        task = boxes_of((0.50, 0.52, 0.54), (0.60, 0.60, 0.60))
        difference = paired_difference(task)
        assert difference is not None
        assert difference.value == pytest.approx(-0.08)
        # Student's t on 2 degrees of freedom, times the root of 2/3 of the squares.
        half = 4.3027 * math.sqrt(2 / 3 * (0.02**2 + 0.02**2))
        assert difference.high - difference.value == pytest.approx(half, rel=1e-3)
        value, low, high = mean_score(task)
        assert (value, low, high) == pytest.approx((0.52, 0.52 - half, 0.52 + half), rel=1e-3)

    @pytest.mark.parametrize("left_out", [(0.4,), (0.4, 0.4)])
    def test_a_value_that_no_part_moves_is_not_certain(self, left_out: tuple[float, ...]) -> None:
        value, low, high = mean_score(boxes_of(left_out, left_out))
        half = 1 - 0.025 ** (1 / 1000)  # Clopper and Pearson's end for none of 1000
        assert (value, low, high) == pytest.approx((0.4, 0.4 - half, 0.4 + half))

    def test_the_same_boxes_are_kept_as_far_as_pictures_can_tell(self) -> None:
        kept = kept_ratio(boxes_of((0.5, 0.6), (0.5, 0.6)))
        assert kept is not None
        assert kept[0] == 1
        assert kept[1] == pytest.approx(1 - 0.00368 / 0.55, abs=1e-4)

    @pytest.mark.parametrize("loss", [0.001, 0.01, 0.05])
    @pytest.mark.parametrize("samples", [12, 100, 1000])
    def test_one_that_lost_something_is_not_known_better_than_one_that_lost_nothing(
        self, samples: int, loss: float
    ) -> None:
        """However alike the few pictures are on which it lost."""
        before = (0.38, 0.39, 0.40)
        same, lost = (
            boxes_of(own, before, samples)
            for own in (before, tuple(value - loss for value in before))
        )
        kept, less = (kept_ratio(task) for task in (same, lost))
        assert kept is not None
        assert less is not None
        assert less[0] < kept[0]
        assert less[1] <= kept[1]

    def test_no_more_is_lost_than_there_was(self) -> None:
        kept = kept_ratio(boxes_of((0.0, 0.3), (0.3, 0.2)))
        assert kept is not None
        assert kept[1] == pytest.approx(0)

    @pytest.mark.parametrize(
        ("own", "outcome"),
        [((0.5, 0.6), Outcome.GOOD), ((0.1, 0.11), Outcome.BAD), ((0.4, 0.8), Outcome.UNJUDGED)],
    )
    def test_the_verdict(self, own: tuple[float, ...], outcome: Outcome) -> None:
        assert judge_task(boxes_of(own, (0.5, 0.6))).outcome is outcome
