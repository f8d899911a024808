"""Rows of tables as estimators take them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from pytest_ortbench.engines.entry import LoadedSource
from pytest_ortbench.engines.seam import EngineRefusal
from pytest_ortbench.worker.tabular import table_form


@pytest.mark.parametrize(
    ("rows", "place", "value"),
    [
        (np.array([[1, 2], [3, "red"]], dtype=object), 1, "red"),
        (np.array([[1, 2], [None, "red"]], dtype=object), 0, "None"),
        (np.array([["1", "2"]]), 0, "1"),
    ],
)
def test_text_in_a_matrix_of_numbers_is_named_with_its_column(
    rows: np.ndarray, place: int, value: str
) -> None:
    with pytest.raises(EngineRefusal) as refused:
        table_form(LoadedSource(path=Path("model.py"), model=None, example=rows), matrix=True)
    assert f"column {place} " in str(refused.value)
    assert repr(value) in str(refused.value)
