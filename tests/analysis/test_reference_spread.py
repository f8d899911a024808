"""Whether a reference can judge, by how far it differs from itself."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from pytest_ortbench.analysis.inaccuracy import judge_accuracy, needs_spread
from pytest_ortbench.analysis.limits import check_limits
from pytest_ortbench.analysis.summary import summarise
from pytest_ortbench.analysis.validity import flags_of
from pytest_ortbench.core.accuracy import ReferenceSpread, SpreadTrial
from pytest_ortbench.core.case import Case
from pytest_ortbench.core.judgement import Outcome
from pytest_ortbench.core.limits import parse_limit
from pytest_ortbench.core.outcome import Accuracy, CaseResult, OutputAccuracy
from pytest_ortbench.passes.task.facts import TaskAccuracy
from pytest_ortbench.report.cells import ALL_COLUMNS, texts
from pytest_ortbench.report.entries import by_model, shown_run
from tests.results_factory import make_case, make_model, make_result, make_run
from tests.summarised import answers_of


def noisy(sqnr_db: float | None, name: str = "y") -> OutputAccuracy:
    return OutputAccuracy(
        name=name,
        kind="float",
        finite=True,
        sqnr_db=sqnr_db,
        exact=sqnr_db is None,
        compared=100,
        max_abs=0.0 if sqnr_db is None else 0.1,
    )


def counted(agree: int, rows: int = 1000, name: str = "kept") -> OutputAccuracy:
    return OutputAccuracy(
        name=name,
        kind="integer",
        finite=True,
        exact=agree == rows,
        agree=agree,
        rows=rows,
        compared=rows,
    )


def spread(*outputs: OutputAccuracy, name: str = "one-thread") -> ReferenceSpread:
    calm = [replace(noisy(None), name=output.name) for output in outputs]
    return ReferenceSpread(
        trials=(
            SpreadTrial(name="again", samples=8, outputs=tuple(calm)),
            SpreadTrial(name=name, samples=8, outputs=outputs),
            SpreadTrial(name="float64", reason="Conv is not implemented"),
        )
    )


def result_of(
    *outputs: OutputAccuracy, known: ReferenceSpread | None, case: Case | None = None
) -> CaseResult:
    accuracy = Accuracy(reference="m as it is", samples=8, outputs=outputs, spread=known)
    result = make_result(case=case, accuracy=accuracy)
    return replace(result, flags=flags_of(result))


@pytest.mark.parametrize(
    ("sqnr_db", "own_db", "outcome"),
    [
        (70.0, 50.0, Outcome.GOOD),  # above the floor, whatever the reference does
        (55.0, None, Outcome.BAD),  # the reference is always the same: a fault of the optimiser
        (55.0, 120.0, Outcome.BAD),
        (55.0, 75.1, Outcome.BAD),  # more than ten times as far
        (55.0, 74.9, Outcome.GOOD),
        (45.0, 61.0, Outcome.GOOD),
        (30.0, 61.0, Outcome.BAD),
        (55.0, 59.9, Outcome.UNJUDGED),  # further from itself than it may be from others
        (10.0, 12.0, Outcome.UNJUDGED),
        (0.0, 59.0, Outcome.UNJUDGED),
    ],
)
def test_an_fp32_file_on_the_cpu(sqnr_db: float, own_db: float | None, outcome: Outcome) -> None:
    result = result_of(noisy(sqnr_db), known=spread(noisy(own_db)))
    assert judge_accuracy(result).outcome is outcome


@pytest.mark.parametrize(
    ("agree", "own", "outcome"),
    [
        (900, 1000, Outcome.BAD),
        (900, 999, Outcome.BAD),  # a hundred times as many
        (950, 995, Outcome.GOOD),
        (900, 950, Outcome.UNJUDGED),
    ],
)
def test_whole_values_are_counted(agree: int, own: int, outcome: Outcome) -> None:
    result = result_of(counted(agree), known=spread(counted(own)))
    assert judge_accuracy(result).outcome is outcome


@pytest.mark.parametrize("provider", ["openvino", "cuda"])
def test_other_providers_are_not_excused_by_a_factor(provider: str) -> None:
    case = make_case(provider=provider)
    below = 35.0  # of TF32, too
    assert judge_accuracy(result_of(noisy(below), known=spread(noisy(62.0)), case=case)).is_bad
    doubtful = result_of(noisy(below), known=spread(noisy(20.0)), case=case)
    assert judge_accuracy(doubtful).is_unjudged


def test_other_precisions_are_held_to_their_own_floor() -> None:
    case = make_case(precision="int8-static")
    # The reference is 50 dB from itself: too far for fp32, and near enough to see 12 dB.
    assert judge_accuracy(result_of(noisy(12.0), known=spread(noisy(50.0)), case=case)).is_bad
    assert judge_accuracy(result_of(noisy(12.0), known=spread(noisy(14.0)), case=case)).is_unjudged


def test_a_quantised_file_is_no_fp32_file() -> None:
    model = replace(make_model(), op_types={"QLinearConv": 3})
    case = make_case(model=model)
    assert judge_accuracy(result_of(noisy(10.0), known=spread(noisy(25.0)), case=case)).is_bad


def test_a_fault_in_one_output_is_found_beside_another_that_can_t_be_judged() -> None:
    known = spread(noisy(20.0, "boxes"), noisy(130.0, "scores"))
    result = result_of(noisy(15.0, "boxes"), noisy(30.0, "scores"), known=known)
    assert [flag.name for flag in result.flags] == ["INACCURATE"]
    assert re.findall(r"([\d.]+) dB", result.flags[0].detail) == ["30.0", "60"]


def test_a_reference_that_can_t_judge_leaves_one_verdict_in_the_row() -> None:
    result = result_of(noisy(None, "ims"), counted(900), known=spread(counted(940)))
    assert [flag.name for flag in result.flags] == ["UNJUDGED"]
    assert result.flags[0].detail == (
        "accuracy: the reference, run with one thread, differs from its own first run: kept: 940 "
        "of 1000 rows agree, the minimum for native is 99 %"
    )
    run = make_run([result])
    (group,) = by_model(shown_run(run).entries)
    (cells,) = texts(group, [ALL_COLUMNS["accuracy"], ALL_COLUMNS["status"]])
    assert cells == {"accuracy": "not judged", "status": "UNJUDGED"}
    summary = summarise(result)
    assert not summary.exact
    assert "accuracy_sqnr" not in summary.quantities
    (outcome,) = check_limits([parse_limit("accuracy_sqnr >= 30 dB", place="here")], summary)
    assert outcome.judgement.is_unjudged
    (answer,) = answers_of(run)
    assert answer.left_out == (("native/cpu/b1", "UNJUDGED"),)


def test_exact_floats_beside_integers_that_differ_are_not_exact() -> None:
    result = result_of(noisy(None, "ims"), counted(900), known=spread(counted(1000)))
    assert [flag.name for flag in result.flags] == ["INACCURATE"]
    run = make_run([result])
    (group,) = by_model(shown_run(run).entries)
    (cells,) = texts(group, [ALL_COLUMNS["accuracy"]])
    assert cells == {"accuracy": "100/1000 differ"}
    summary = summarise(result)
    assert not summary.exact
    assert " 100 of 1000 values of kept " in f"{summary.missing['accuracy_sqnr']} "


def test_runs_that_differ_are_no_fault_where_the_reference_s_differ_too() -> None:
    accuracy = Accuracy(
        samples=8, outputs=(noisy(None),), repeatable=False, repeat_note="their norm by 0.2"
    )
    known = spread(noisy(20.0), name="again")
    alone = make_result(accuracy=replace(accuracy, spread=spread(noisy(130.0))))
    assert judge_accuracy(alone).reason == "their norm by 0.2 (random inputs)"
    assert judge_accuracy(alone).drawn_inputs
    both = make_result(accuracy=replace(accuracy, spread=known))
    judgement = judge_accuracy(both)
    assert judgement.is_unjudged
    assert judgement.reason.startswith(
        "the reference, run a second time, differs from its own first run: y: "
    )


def test_an_fp32_file_is_not_condemned_where_its_reference_could_not_be_run_again() -> None:
    known = ReferenceSpread(reason="it ran out of memory")
    judgement = judge_accuracy(result_of(noisy(50.0), known=known))
    assert judgement.is_unjudged
    assert judgement.reason.endswith(" memory")
    converted = make_case(precision="fp16")
    assert judge_accuracy(result_of(noisy(20.0), known=known, case=converted)).is_bad


@pytest.mark.parametrize(
    ("result", "asked"),
    [
        (result_of(noisy(80.0), known=None), False),
        (result_of(noisy(None), known=None), False),
        (result_of(noisy(50.0), known=None), True),
        (result_of(counted(10), known=None), True),
        (result_of(noisy(50.0), known=spread(noisy(80.0))), False),
        (result_of(known=None), False),
        (result_of(noisy(50.0), known=None, case=make_case(precision="int8-static")), False),
        (make_result(accuracy=Accuracy(reason="no reference")), False),
        (make_result(status="crash"), False),
    ],
)
def test_a_reference_is_run_again_only_where_it_would_condemn(
    result: CaseResult, asked: bool
) -> None:
    assert needs_spread(result) is asked


def test_labels_that_are_lost_are_the_only_verdict_beside_a_doubtful_reference() -> None:
    result = result_of(counted(900), known=spread(counted(940)))
    lost = TaskAccuracy(
        dataset="d.npz",
        metric="top-1",
        samples=2000,
        score_sum=1200.0,
        largest=1.0,
        reference="fp32",
        reference_sum=1800.0,
        difference_squares=600.0,
        worse=600,
    )
    result = replace(result, task=lost)
    result = replace(result, flags=flags_of(result))
    assert [flag.name for flag in result.flags] == ["INACCURATE"]
    (group,) = by_model(shown_run(make_run([result])).entries)
    (cells,) = texts(group, [ALL_COLUMNS["accuracy"]])
    assert cells == {"accuracy": "task 0.600"}
