"""Facts of an export that can't be true are refused, and those of a real check are not."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pytest_ortbench.core.accuracy import OutputAccuracy, ReferenceSpread
from pytest_ortbench.core.model import TensorInfo
from pytest_ortbench.core.outcome import CaseResult
from pytest_ortbench.core.source import Source
from pytest_ortbench.passes.export_check.facts import (
    CheckedSizes,
    Confusion,
    ExportCheck,
    FirstDifference,
    FixedSize,
)
from pytest_ortbench.schema.meaning import faults_of
from tests.passes.export_check.answered import Answer, checked, network, right
from tests.results_factory import make_case, make_engine_result, make_result

EXACT = OutputAccuracy(
    name="scores", kind="float", finite=True, max_abs=0.0, max_rel=0.0, exact=True, compared=8
)
USUAL = CheckedSizes(sizes={"N": 1}, samples=8, outputs=(EXACT,))
OTHER = CheckedSizes(sizes={"N": 2}, changed=("N",), samples=2, outputs=(EXACT,))
FIXED = FixedSize(axis=1, size=3, inputs=("x",), tried=4, taken=True)
DIFFERING = FirstDifference(
    module="norm", kind="Norm", node="n", op_type="Conv", compared=2, matched=1
)
CHECK = ExportCheck(
    framework="torch",
    choices=(USUAL, OTHER),
    fixed=(FIXED,),
    confusions=(Confusion(output="scores", source_output="states"),),
    repeats=True,
    rebuilds=True,
    first_difference=DIFFERING,
)


def result_of(check: ExportCheck, **model: Any) -> CaseResult:
    case = make_case()
    outputs = tuple(
        TensorInfo(name=name, type="tensor(float)", shape=None) for name in ("scores", "states")
    )
    source = Source(path="/net.py", function="build", framework="torch")
    made = replace(case.model, **{"outputs": outputs, "exported_from": source, **model})
    return replace(make_result(case=replace(case, model=made)), export_check=check)


def places(value: object) -> list[str]:
    return [fault.path for fault in faults_of(value)]


def test_facts_of_a_check_make_sense() -> None:
    assert places(result_of(CHECK)) == []
    assert places(result_of(ExportCheck(interrupted=True))) == []
    assert places(result_of(ExportCheck(reason="no torch"), exported_from=None)) == []


def labels(answer: Answer, *, dtype: str = "int64", more: int = 0) -> Answer:
    return lambda feeds: [answer(feeds)[0], (answer(feeds)[1] > 0).astype(dtype) + more]


def with_nan(answer: Answer) -> Answer:
    return lambda feeds: [np.where(feeds["x"] > 0, np.nan, answer(feeds)[0]), answer(feeds)[1]]


def cut(answer: Answer, rows: int) -> Answer:
    return lambda feeds: [values[:rows] for values in answer(feeds)]


def nothing(_: object) -> list[Any]:
    return [[], None]


@pytest.mark.parametrize(
    ("file", "source"),
    [
        (right, network),
        (network, network),
        (labels(right), labels(network)),
        (labels(right, more=1), labels(network)),
        (with_nan(right), network),
        (right, with_nan(network)),
        (with_nan(right), with_nan(network)),
        (cut(right, 2), network),
        (cut(with_nan(right), 2), network),
        (cut(right, 0), cut(network, 0)),
        (cut(right, 0), network),
        (lambda feeds: right(feeds)[::-1], network),
        (right, lambda feeds: network(feeds)[:1]),
        (nothing, nothing),
        (labels(right, dtype="float32"), labels(network)),
    ],
)
def test_whatever_a_check_finds_can_be_written(tmp_path: Path, file: Any, source: Any) -> None:
    check = checked(tmp_path, file, source)
    assert places(result_of(check)) == []


def output_of(**figures: Any) -> CheckedSizes:
    return replace(USUAL, outputs=(replace(EXACT, **figures),))


@pytest.mark.parametrize(
    ("fact", "place"),
    [
        (replace(OTHER, changed=("M",)), "$.changed"),
        (replace(USUAL, samples=0), "$.outputs"),
        (replace(USUAL, outputs=()), "$.outputs"),
        (replace(USUAL, outputs=(EXACT, EXACT)), "$.outputs"),
        (replace(USUAL, samples=10**15), "$.samples"),
        (replace(USUAL, sizes={"N": -1}), "$.sizes.N"),
        (replace(USUAL, empty=("scores",)), "$.empty"),
        (
            replace(
                output_of(
                    compared=0, finite=False, exact=False, nonfinite=8, reference_nonfinite=8
                ),
                empty=("scores",),
            ),
            "$.empty",
        ),
        (replace(USUAL, empty=("states", "states")), "$.empty"),
        (CheckedSizes(sizes={"N": 1}, empty=("scores",)), "$.empty"),
        (output_of(finite=False, exact=False, sqnr_db=130.0), "$.outputs[0].finite"),
        (output_of(exact=False, max_abs=1.0, max_rel=0.1), "$.outputs[0].sqnr_db"),
        (output_of(exact=False, max_abs=1.0, max_rel=None), "$.outputs[0].sqnr_db"),
        (output_of(sqnr_db=130.0), "$.outputs[0].exact"),
        (output_of(max_abs=1.0), "$.outputs[0].exact"),
        (output_of(compared=None), "$.outputs[0].compared"),
        (output_of(kind="integer"), "$.outputs[0].agree"),
        (output_of(nan_count=2, exact=False), "$.outputs[0].finite"),
        (replace(FIXED, tried=3), "$.tried"),
        (replace(FIXED, size=0), "$.size"),
        (replace(FIXED, inputs=()), "$.inputs"),
        (FirstDifference(module="norm"), "$.node"),
        (replace(DIFFERING, compared=0, matched=0), "$.matched"),
        (replace(DIFFERING, matched=3), "$.matched"),
        (replace(CHECK, interrupted=True), "$.choices"),
        (replace(CHECK, reason="no torch"), "$.choices"),
        (ExportCheck(fixed=(FIXED,)), "$.fixed"),
        (ExportCheck(reason="no torch", confusions=CHECK.confusions), "$.confusions"),
        (ExportCheck(spread=ReferenceSpread()), "$.spread"),
        (ExportCheck(interrupted=True, first_difference=DIFFERING), "$.first_difference"),
        (replace(CHECK, again_reason="no memory"), "$.again_reason"),
        (replace(CHECK, choices=(OTHER, USUAL)), "$.choices[0].changed"),
        (replace(CHECK, choices=(replace(USUAL, sizes={}), OTHER)), "$.choices[1].sizes"),
    ],
)
def test_facts_that_can_not_be_true_are_named(fact: object, place: str) -> None:
    assert places(fact) == [place]


def test_a_check_of_a_file_that_was_exported_from_nothing_is_refused() -> None:
    assert places(result_of(CHECK, exported_from=None)) == ["$.export_check"]
    engine = replace(make_engine_result(), export_check=replace(CHECK, confusions=()))
    assert places(engine) == ["$.export_check"]
    framework = result_of(CHECK)
    provider = replace(framework.case.provider, role="framework")
    row = replace(framework, case=replace(framework.case, provider=provider))
    assert "$.export_check" in places(row)


@pytest.mark.parametrize(
    ("confusion", "place"),
    [
        (Confusion(output="zzz", source_output="states"), "output"),
        (Confusion(output="scores", source_output="zzz"), "source_output"),
        (Confusion(output="scores", source_output="scores"), "source_output"),
    ],
)
def test_outputs_that_the_model_lacks_are_no_other_ones(confusion: Confusion, place: str) -> None:
    result = result_of(replace(CHECK, confusions=(confusion,)))
    assert places(result) == [f"$.export_check.confusions[0].{place}"]
