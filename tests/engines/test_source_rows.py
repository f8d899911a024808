"""Rows of what a model was exported from: right where both differ, and not without evidence."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pytest_ortbench.analysis.inaccuracy import judge_accuracy, needs_spread
from pytest_ortbench.analysis.summary import summarise
from pytest_ortbench.analysis.validity import flags_of
from pytest_ortbench.core.accuracy import ReferenceSpread, SpreadTrial
from pytest_ortbench.core.outcome import Accuracy, CaseResult, OutputAccuracy
from pytest_ortbench.core.source import Source
from tests.results_factory import make_accuracy, make_case, make_engine_result, make_model


def source_row(accuracy: Accuracy | None, *random_ops: str) -> CaseResult:
    """A row of a framework on the source itself."""
    source = Source(path="net.py", function="build", framework="torch")
    model = replace(make_model(), exported_from=source, random_ops=random_ops)
    row = make_engine_result(
        alias="torch", title="PyTorch", role="framework", case=make_case(model=model)
    )
    assert row.case.is_source
    return replace(row, accuracy=accuracy)


def with_output(accuracy: Accuracy, **changes: object) -> Accuracy:
    (output,) = accuracy.outputs
    return replace(accuracy, outputs=(replace(output, **changes),))


EXACT = make_accuracy(sqnr_db=None)


def test_a_source_is_right_however_far_its_export_is() -> None:
    row = source_row(make_accuracy(sqnr_db=3.0, agree=0))
    assert judge_accuracy(row).is_good
    assert not needs_spread(row)
    assert "accuracy_sqnr" in summarise(row).quantities


@pytest.mark.parametrize(
    ("accuracy", "reason"),
    [
        (None, "not compared"),
        (Accuracy(reference="r", reason="the run failed: boom"), "boom"),
        (Accuracy(reference="r", samples=8), "no outputs"),
        (replace(EXACT, samples=0), "no input set"),
        (with_output(EXACT, compared=0), "no value"),
        (
            with_output(EXACT, finite=False, exact=False, compared=0, reference_nonfinite=8),
            "no value",
        ),
        (
            with_output(EXACT, finite=False, exact=False, compared=4, reference_nonfinite=4),
            "4 NaN",
        ),
    ],
)
def test_a_source_without_evidence_is_not_judged(accuracy: Accuracy | None, reason: str) -> None:
    row = source_row(accuracy)
    judgement = judge_accuracy(row)
    assert judgement.is_unjudged
    assert reason in judgement.reason
    summary = summarise(row)
    assert not summary.exact
    assert "accuracy_finite" not in summary.quantities
    assert summary.missing["accuracy_finite"]
    assert "UNJUDGED" in [flag.name for flag in flags_of(row)]


def test_a_source_that_draws_random_numbers_is_not_judged() -> None:
    judgement = judge_accuracy(source_row(EXACT, "RandomNormal"))
    assert judgement.is_unjudged
    assert "RandomNormal" in judgement.reason


@pytest.mark.parametrize("note", ["first and last run differ", ""])
def test_a_source_that_answers_otherwise_each_time_is_not_right(note: str) -> None:
    restless = replace(EXACT, repeatable=False, repeat_note=note)
    row = source_row(restless)
    judgement = judge_accuracy(row)
    assert judgement.is_bad
    assert note in judgement.reason
    assert needs_spread(row)
    # The reference differs when it is repeated, too: it can't tell.
    again = OutputAccuracy(name="logits", kind="float", finite=True, sqnr_db=3.0, compared=8)
    spread = ReferenceSpread(trials=(SpreadTrial(name="again", samples=8, outputs=(again,)),))
    assert judge_accuracy(source_row(replace(restless, spread=spread))).is_unjudged
