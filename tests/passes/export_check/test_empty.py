"""Outputs of an export that have no value: what their shapes say, and what they leave open."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pytest_ortbench.core.judgement import Judgement
from pytest_ortbench.core.model import TensorInfo
from pytest_ortbench.passes.export_check.facts import ExportCheck
from pytest_ortbench.passes.export_check.numbers.evidence import left_out
from pytest_ortbench.passes.export_check.numbers.faults import export_faults
from pytest_ortbench.passes.export_check.numbers.verdict import (
    export_sqnr_db,
    is_exact,
    judge_export,
)
from pytest_ortbench.schema.meaning import faults_of
from tests.passes.export_check.answered import NAMES, Answer, checked, network, right
from tests.results_factory import make_case, make_result

MODEL = replace(
    make_case().model,
    outputs=tuple(TensorInfo(name=name, type="tensor(float)", shape=None) for name in NAMES),
)


def judged(check: ExportCheck) -> Judgement:
    result = make_result(case=replace(make_case(), model=MODEL))
    judgement = judge_export(replace(result, export_check=check))
    assert judgement is not None
    return judgement


def second(value: Any) -> Any:
    """An answer whose second output is a value, whatever it is fed."""
    return lambda answer: lambda feeds: [answer(feeds)[0], value]


def empties(check: ExportCheck) -> list[tuple[str, ...]]:
    return [choice.empty for choice in check.choices]


@pytest.mark.parametrize(
    "value",
    [
        np.zeros((0, 8), "float32"),
        np.zeros((4, 0), "float16"),
        np.zeros(0, "int64"),
        np.array([], object),
        [],
        [np.zeros((0, 3), "float32")],
        None,
    ],
)
def test_an_output_that_is_empty_everywhere_leaves_the_others_to_judge(
    tmp_path: Path, value: Any
) -> None:
    with_empty = second(value)
    check = checked(tmp_path, with_empty(right), with_empty(network))
    name = "states[0]" if isinstance(value, list) and value else "states"
    assert empties(check) == [(name,)] * 4
    assert judged(check).is_good
    assert export_sqnr_db(check) is not None
    assert len(left_out(check)) == 1
    assert list(faults_of(check)) == []
    wrong = checked(tmp_path, with_empty(lambda feeds: network(feeds, epsilon=0.1)),
                    with_empty(network))  # fmt: skip
    assert judged(wrong).is_bad
    exact = checked(tmp_path, with_empty(network), with_empty(network))
    assert is_exact(exact, MODEL)


def test_all_outputs_empty_is_not_judged(tmp_path: Path) -> None:
    def nothing(feeds: Mapping[str, Any]) -> Sequence[Any]:
        return [values[:0] for values in network(feeds)]

    check = checked(tmp_path, nothing, nothing)
    assert empties(check) == [NAMES] * 4
    assert judged(check).is_unjudged
    assert not is_exact(check, MODEL)


@pytest.mark.parametrize(
    ("file", "source"),
    [
        (np.zeros((0, 8), "float32"), np.zeros((0, 4), "float32")),
        (np.zeros((0, 8), "float32"), np.zeros((1, 8), "float32")),
        (np.zeros((1, 8), "float32"), np.zeros((0, 8), "float32")),
        (np.zeros((0, 8), "int64"), np.zeros((0, 4), "int64")),
        ([], np.zeros((1, 8), "float32")),
    ],
)
def test_an_empty_output_of_another_shape_is_wrong(tmp_path: Path, file: Any, source: Any) -> None:
    check = checked(tmp_path, second(file)(right), second(source)(network), batches=(4,))
    assert check.choices[0].empty == ()
    (fault,) = export_faults(check, MODEL)
    assert (fault.kind, fault.outputs) == ("different", ("states",))


def test_an_output_that_is_empty_or_nan_is_not_judged(tmp_path: Path) -> None:
    def either(feeds: Mapping[str, Any]) -> Sequence[Any]:
        scores, states = network(feeds)
        return [scores, states[:0] if len(feeds["x"]) == 4 else np.full_like(states, np.nan)]

    check = checked(tmp_path, either, either)
    assert empties(check) == [("states",), (), (), ()]
    assert judged(check).is_unjudged


def test_sizes_at_which_everything_is_empty_are_none_at_which_a_file_is_right(
    tmp_path: Path,
) -> None:
    def without_the_first(answer: Answer) -> Answer:
        return lambda feeds: [values[1:] for values in answer(feeds)]

    check = checked(
        tmp_path,
        without_the_first(lambda feeds: network(feeds, epsilon=0.1)),
        without_the_first(network),
        batches=(4, 1),
    )
    assert empties(check) == [(), NAMES]
    (fault,) = export_faults(check, MODEL)
    assert (fault.kind, fault.dimension) == ("different", "")


def test_a_source_is_not_loaded_again_for_an_empty_output(tmp_path: Path) -> None:
    with_empty = second(np.zeros((0, 8), "float32"))
    check = checked(tmp_path, with_empty(right), with_empty(network))
    assert (check.repeats, check.rebuilds) == (None, None)
