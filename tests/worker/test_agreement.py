"""Outputs that can't be compared, where the reference has nothing to lose."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from pytest_ortbench.analysis.inaccuracy import evidence_of
from pytest_ortbench.core.accuracy import FarthestValue
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


# The value that is farthest from its reference.


def _moved(values: NDArray[Any], *changes: tuple[tuple[int, ...], Any]) -> NDArray[Any]:
    moved = values.copy()
    for index, value in changes:
        moved[index] = value
    return moved


def test_the_farthest_value_is_told_with_its_place() -> None:
    got = _moved(FORTY, ((3, 1), 1.5), ((39, 2), -2.0))
    assert _summary((FORTY, got)).farthest == FarthestValue(
        index=(39, 2), value=-2.0, reference=1.0
    )


def test_it_is_that_of_the_sample_in_which_it_is_farthest() -> None:
    near, far = _moved(FORTY, ((0, 0), 1.25)), _moved(FORTY, ((1, 3), 3.0))
    found = _summary((FORTY, near), (FORTY, far), (FORTY, FORTY)).farthest
    assert found == FarthestValue(index=(1, 3), value=3.0, reference=1.0)


def test_values_that_are_not_finite_are_passed_over() -> None:
    right = _moved(FORTY, ((0, 0), np.nan))
    got = _moved(FORTY, ((0, 0), np.nan), ((0, 1), np.inf), ((2, 2), 4.0))
    found = _summary((right, got)).farthest
    assert found == FarthestValue(index=(2, 2), value=4.0, reference=1.0)


def test_it_is_found_in_any_part_of_a_long_output() -> None:
    right = np.zeros(3_000_000, np.float32)
    found = _summary((right, _moved(right, ((2_999_999,), 5.0), ((7,), 4.0)))).farthest
    assert found == FarthestValue(index=(2_999_999,), value=5.0, reference=0.0)


def test_whole_numbers_have_one_too() -> None:
    right = np.arange(6).reshape(2, 3)
    found = _summary((right, _moved(right, ((1, 0), 9)))).farthest
    assert found == FarthestValue(index=(1, 0), value=9.0, reference=3.0)


@pytest.mark.parametrize(
    ("right", "got"),
    [
        (FORTY, FORTY),
        (FORTY, None),
        (FORTY, np.ones((2, 2), np.float32)),
        (FORTY.astype(np.complex64), np.zeros((40, 4), np.complex64)),
        (np.array(["a"], object), np.array(["b"], object)),
    ],
    ids=["exact", "absent", "shape", "complex", "text"],
)
def test_where_there_is_none_none_is_told(right: NDArray[Any], got: NDArray[Any] | None) -> None:
    assert _summary((right, got)).farthest is None


def test_a_scalar_has_no_index() -> None:
    found = _summary((np.array(1.0, np.float32), np.array(2.0, np.float32))).farthest
    assert found == FarthestValue(index=(), value=2.0, reference=1.0)
