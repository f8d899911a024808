"""Outputs that can't be compared, where the reference has nothing to lose."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from pytest_ortbench.analysis.inaccuracy import evidence_of
from pytest_ortbench.core.outcome import Accuracy, OutputAccuracy
from pytest_ortbench.worker.agreement import difference, kind_of, worst_figures
from pytest_ortbench.worker.outputs import Leaf
from tests.results_factory import make_result


def _leaf(values: NDArray[Any]) -> Leaf:
    return Leaf(label="boxes", values=values)


def _summary(*pairs: tuple[NDArray[Any], NDArray[Any] | None]) -> OutputAccuracy:
    kind = kind_of(_leaf(pairs[0][0]))
    found = [
        difference(kind, _leaf(right), None if got is None else _leaf(got)) for right, got in pairs
    ]
    return worst_figures("boxes", kind, found)


def _reasons(output: OutputAccuracy) -> str:
    accuracy = Accuracy(reference="fp32", samples=1, magnitudes=(1.0,), outputs=(output,))
    return evidence_of(replace(make_result(), accuracy=accuracy)).wrong


EMPTY = np.zeros((0, 4), np.float32)
FORTY = np.ones((40, 4), np.float32)


@pytest.mark.parametrize(
    ("right", "got"),
    [
        (EMPTY, FORTY),
        (np.zeros((3, 4), np.float32), FORTY),
        (EMPTY, None),
        (np.full((3, 4), np.nan, np.float32), FORTY),
    ],
    ids=["empty", "zero", "absent", "nan"],
)
def test_what_came_out_where_nothing_was_expected_is_wrong(
    right: NDArray[Any], got: NDArray[Any] | None
) -> None:
    output = _summary((right, got))
    assert output.sqnr_db == 0.0
    assert not output.exact
    assert output.mismatch
    assert _reasons(output) == f"boxes {output.mismatch}"


def test_one_such_sample_among_good_ones_is_enough() -> None:
    output = _summary((FORTY, FORTY + np.float32(1e-6)), (EMPTY, FORTY), (FORTY, FORTY))
    assert output.sqnr_db == 0.0


def test_an_empty_output_that_is_empty_again_is_exact() -> None:
    output = _summary((EMPTY, EMPTY), (np.zeros((3, 4), np.float32), np.zeros((3, 4), np.float32)))
    assert (output.sqnr_db, output.exact) == (None, True)
    assert _reasons(output) == ""


def test_whole_numbers_count_what_came_out_too() -> None:
    none, some = np.zeros((0, 3), np.int64), np.ones((40, 3), np.int64)
    output = _summary((some, some), (none, some))
    assert (output.agree, output.rows, output.sqnr_db) == (120, 240, None)
    assert output.mismatch
    assert _reasons(output) == f"boxes {output.mismatch}"
