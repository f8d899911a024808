"""ONNX Runtime beside other engines: what is found, and that nothing is found without evidence."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from pytest_ortbench.analysis.against_engines import EngineAnswer, Standing
from pytest_ortbench.core.outcome import Accuracy, CaseResult, Flag, OutputAccuracy
from pytest_ortbench.core.source import Source
from tests.results_factory import (
    make_accuracy,
    make_case,
    make_engine_result,
    make_memory,
    make_model,
    make_result,
    make_run,
)
from tests.summarised import answers_of


def torch_result(**changes: Any) -> CaseResult:
    asked = {"alias": "torch", "title": "PyTorch", "role": "framework", "compile_ns": None}
    return make_engine_result(**{**asked, "compiled_bytes": None, **changes})


def engines_of(*results: CaseResult) -> tuple[EngineAnswer, ...]:
    answers = answers_of(make_run(results))
    assert len(answers) == 1
    return answers[0].engines


def test_the_classic_claim() -> None:
    slow = torch_result(
        median_ns=9_900_000,
        startup={"import_ns": 500_000_000},
        memory=make_memory(peak_bytes=273_000_000),
        accuracy=make_accuracy(sqnr_db=126.0),
    )
    (answer,) = engines_of(make_result(), slow)
    assert (answer.title, answer.role, answer.reason) == ("PyTorch", "framework", "")
    assert (answer.ours, answer.theirs) == ("native/cpu/b1", "native/torch/b1")
    (speed,) = answer.speeds
    assert speed.finding is Standing.BETTER
    assert speed.factor.value == pytest.approx(3.3, rel=0.01)
    assert speed.factor.low is not None
    assert speed.factor.high is not None
    assert speed.factor.low < 3.3 < speed.factor.high
    assert answer.memory.finding is Standing.BETTER
    assert answer.memory.value == pytest.approx(1 - 105 / 318, rel=0.01)
    assert answer.ready.finding is Standing.BETTER
    assert answer.ready.value == pytest.approx(0.41, rel=0.01)
    assert answer.ready.low <= answer.ready.value <= answer.ready.high
    assert answer.agreement is not None
    assert answer.agreement.sqnr_db == 126.0


def test_what_is_slower_larger_and_later_is_said_to_be() -> None:
    (answer,) = engines_of(
        make_result(),
        make_engine_result(
            median_ns=1_000_000,
            compile_ns=None,
            startup={"import_ns": 1_000},
            memory=make_memory(peak_bytes=10_000_000),
        ),
    )
    (speed,) = answer.speeds
    assert (speed.finding, answer.memory.finding, answer.ready.finding) == (Standing.WORSE,) * 3
    assert speed.factor.value == pytest.approx(3.0, rel=0.01)
    assert speed.factor.low is not None
    assert speed.factor.low > 1


def test_overlaps_claim_nothing() -> None:
    (answer,) = engines_of(make_result(), make_engine_result(seed=1, compile_ns=None))
    (speed,) = answer.speeds
    assert (speed.finding, answer.memory.finding, answer.ready.finding) == (Standing.OPEN,) * 3


def test_a_blurred_number_claims_less() -> None:
    near = make_engine_result(median_ns=3_150_000)
    (sure,) = engines_of(make_result(), near)
    assert sure.speeds[0].finding is Standing.BETTER
    blurred = replace(near, flags=(Flag(name="STEAL", detail="3 %"),))
    (unsure,) = engines_of(make_result(), blurred)
    assert unsure.speeds[0].finding is Standing.OPEN
    assert unsure.speeds[0].blurred_by == ("STEAL",)


def test_one_process_each_proves_no_small_gap() -> None:
    memory = make_memory(peak_bytes=62_000_000)
    (single,) = engines_of(
        make_result(workers=1), make_engine_result(workers=1, memory=memory, seed=1)
    )
    assert single.memory.finding is Standing.OPEN
    (several,) = engines_of(make_result(), make_engine_result(memory=memory, seed=1))
    assert several.memory.finding is Standing.BETTER


def test_missing_evidence_is_missing() -> None:
    unknown = make_engine_result(memory=make_memory(peak_bytes=None))
    warm = tuple(
        replace(measurement, startup=replace(measurement.startup, cache="warm"))
        for measurement in unknown.measurements
    )
    (answer,) = engines_of(make_result(), replace(unknown, measurements=warm))
    assert (answer.memory.finding, answer.ready.finding) == (Standing.MISSING,) * 2


def test_outputs_that_were_not_compared_agree_with_nothing() -> None:
    judged_by_class = make_accuracy(sqnr_db=None, agree=8)
    equal_labels = replace(
        judged_by_class,
        outputs=tuple(replace(output, kind="value") for output in judged_by_class.outputs),
    )
    (labels,) = engines_of(make_result(), make_engine_result(accuracy=equal_labels))
    assert labels.agreement is not None
    assert labels.agreement.sqnr_db == 120.0
    other_labels = replace(
        equal_labels,
        outputs=tuple(replace(output, agree=5, exact=False) for output in equal_labels.outputs),
    )
    unknown = replace(other_labels, outputs=(), reason="no reference")
    for accuracy in (other_labels, unknown):
        (answer,) = engines_of(make_result(), make_engine_result(accuracy=accuracy))
        assert answer.agreement is None
    (equal,) = engines_of(
        make_result(accuracy=judged_by_class), make_engine_result(accuracy=judged_by_class)
    )
    assert equal.agreement is not None
    assert equal.agreement.is_exact


def test_the_worse_side_says_how_far_engines_agree() -> None:
    (answer,) = engines_of(
        make_result(accuracy=make_accuracy(sqnr_db=90.0)),
        make_engine_result(accuracy=make_accuracy(sqnr_db=140.0)),
    )
    assert answer.agreement is not None
    assert answer.agreement.sqnr_db == 90.0


def with_labels(agree: int, rows: int = 8, *, sqnr_db: float | None = 120.0) -> Accuracy:
    """Labels of which some are right, beside probabilities."""
    probabilities = make_accuracy(sqnr_db=sqnr_db)
    labels = OutputAccuracy(
        name="labels",
        kind="integer",
        finite=True,
        exact=agree == rows,
        agree=agree,
        rows=rows,
        compared=rows,
    )
    return replace(probabilities, outputs=(*probabilities.outputs, labels))


def exported(accuracy: Accuracy) -> tuple[CaseResult, CaseResult]:
    """A row of ONNX Runtime, and one of the framework that the file was exported from."""
    source = Source(path="net.py", function="build", framework="torch")
    case = make_case(model=replace(make_model(), exported_from=source))
    return make_result(case=case), torch_result(case=case, accuracy=accuracy)


@pytest.mark.parametrize("sqnr_db", [None, 120.0])
@pytest.mark.parametrize(("agree", "rows"), [(0, 8), (7, 8), (795, 800), (0, 1)])
def test_wrong_labels_stand_behind_no_probabilities(
    sqnr_db: float | None, agree: int, rows: int
) -> None:
    accuracy = with_labels(agree, rows, sqnr_db=sqnr_db)
    exact = with_labels(rows, rows, sqnr_db=None)
    for ours, theirs in (
        exported(accuracy),
        (make_result(accuracy=exact), make_engine_result(accuracy=accuracy)),
        (make_result(accuracy=accuracy), make_engine_result(accuracy=exact)),
    ):
        (answer,) = engines_of(ours, theirs)
        if answer.agreement is None:
            # Labels that are all wrong are an inaccurate row, which is not compared at all.
            assert answer.reason
            continue
        assert not answer.agreement.is_exact
        assert answer.agreement.rows is not None
        assert answer.agreement.rows == agree / rows
        assert answer.agreement.rows.samples == rows
        assert answer.agreement.output == "labels"
        assert answer.agreement.sqnr_db == sqnr_db


def test_an_output_that_differs_by_nobody_knows_how_much_agrees_with_nothing() -> None:
    probabilities = make_accuracy()
    unknown = OutputAccuracy(name="text", kind="string", finite=True, compared=8)
    accuracy = replace(probabilities, outputs=(*probabilities.outputs, unknown))
    (answer,) = engines_of(*exported(accuracy))
    assert answer.speeds
    assert answer.agreement is None


@pytest.mark.parametrize(
    "accuracy",
    [
        Accuracy(reference="r", reason="the run failed"),
        replace(make_accuracy(sqnr_db=None), samples=0),
        replace(make_accuracy(sqnr_db=None), outputs=()),
        replace(
            make_accuracy(sqnr_db=None),
            outputs=(replace(make_accuracy(sqnr_db=None).outputs[0], compared=0),),
        ),
    ],
)
def test_an_export_of_which_nothing_was_compared_is_not_exact(accuracy: Accuracy) -> None:
    (answer,) = engines_of(*exported(accuracy))
    assert answer.agreement is None
    assert answer.reason


def test_a_process_without_memory_was_not_measured() -> None:
    nothing = replace(make_memory(), process_peak_bytes=0)
    for ours, theirs in (
        (make_result(), make_engine_result(memory=nothing)),
        (
            replace(
                make_result(),
                measurements=tuple(
                    replace(measurement, memory=nothing)
                    for measurement in make_result().measurements
                ),
            ),
            make_engine_result(),
        ),
    ):
        (answer,) = engines_of(ours, theirs)
        assert answer.memory.finding is Standing.MISSING


@pytest.mark.parametrize(
    "untimed",
    [
        {"import_ns": 0, "session_create_ns": 0, "first_inference_ns": 0},
        {"import_ns": 500_000_000, "session_create_ns": 0, "first_inference_ns": 0},
        {"first_inference_ns": 0, "build_ns": 0},
    ],
)
def test_a_start_without_an_answer_was_not_measured(untimed: dict[str, int]) -> None:
    rival = make_engine_result(startup=untimed, compile_ns=None)
    (answer,) = engines_of(make_result(), rival)
    assert answer.ready.finding is Standing.MISSING
    ours = replace(
        make_result(),
        measurements=tuple(
            replace(measurement, startup=replace(measurement.startup, **untimed))
            for measurement in make_result().measurements
        ),
    )
    (answer,) = engines_of(ours, make_engine_result())
    assert answer.ready.finding is Standing.MISSING


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        (make_result(), make_engine_result(accuracy=make_accuracy(finite=False))),
        (make_result(), make_engine_result(status="unsupported")),
        (make_result(status="crash"), make_engine_result()),
        (make_result(), make_engine_result(case=make_case(batch=8))),
        (make_result(case=make_case(precision="int8-static")), make_engine_result()),
    ],
)
def test_what_is_barred_or_has_no_counterpart_is_not_compared(
    ours: CaseResult, theirs: CaseResult
) -> None:
    (answer,) = engines_of(ours, theirs)
    assert answer.reason
    assert answer.speeds == ()
    assert answer.memory.finding is Standing.MISSING


def test_the_best_rows_stand_against_each_other_at_every_batch() -> None:
    results = [
        make_result(case=make_case(provider=provider, batch=batch), median_ns=time)
        for provider, batch, time in (
            ("cpu", 1, 3_000_000),
            ("openvino", 1, 2_000_000),
            ("cpu", 8, 9_000_000),
            ("openvino", 8, 12_000_000),
        )
    ]
    engine = [
        make_engine_result(case=make_case(batch=batch), median_ns=time)
        for batch, time in ((1, 4_000_000), (8, 18_000_000), (32, 60_000_000))
    ]
    other = torch_result(median_ns=6_000_000)
    first, second = engines_of(*results, *engine, other)
    assert first.ours == "native/openvino/b1"
    assert [speed.batch for speed in first.speeds] == [1, 8]
    assert [round(speed.factor.value, 1) for speed in first.speeds] == [2.0, 2.0]
    assert (second.title, [speed.batch for speed in second.speeds]) == ("PyTorch", [1])


def test_runs_of_one_kind_alone_have_no_such_answer() -> None:
    assert engines_of(make_result()) == ()
    assert engines_of(make_engine_result(), torch_result()) == ()
