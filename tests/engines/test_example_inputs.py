"""Example inputs of a source become the inputs that are timed, at the batch that was asked for."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from pytest_ortbench.core.model import TensorInfo
from pytest_ortbench.core.source import Source
from pytest_ortbench.planning.example_inputs import example_inputs, fed_from_file
from pytest_ortbench.planning.request import PlanRequest
from pytest_ortbench.planning.sizes import ModelAxes
from pytest_ortbench.worker.array_archive import write_arrays
from tests.results_factory import make_case


@pytest.fixture
def axes(tmp_path: Path) -> ModelAxes:
    file = tmp_path / "example.npz"
    write_arrays(
        file,
        {"file": np.arange(6.0).reshape(3, 2), "word": np.array([["x"], ["y"], ["z"]], object)},
    )
    inputs = (
        TensorInfo(name="file", type="tensor(double)", shape=("batch", 2)),
        TensorInfo(name="word", type="tensor(string)", shape=("batch", 1)),
    )
    model = replace(
        make_case().model, inputs=inputs, exported_from=Source(path="/net.py", example=str(file))
    )
    return ModelAxes(model)


@pytest.mark.parametrize(
    ("batch", "dims", "rows"),
    [
        (None, {}, "xyz"),
        (3, {}, "xyz"),
        (2, {}, "xy"),
        (7, {}, "xyzxyzx"),
        (None, {"batch": 4}, "xyzx"),
    ],
)
def test_rows_are_repeated_or_left_out(
    batch: int | None, dims: dict[str, int], rows: str, axes: ModelAxes
) -> None:
    for _ in range(2):  # made, and found again
        path = example_inputs(axes, batch, dims)
        assert path is not None
        with np.load(path, allow_pickle=False) as stored:
            assert "".join(stored["word"][:, 0]) == rows
            assert stored["file"].shape == (len(rows), 2)


def test_other_sizes_are_drawn(axes: ModelAxes) -> None:
    assert example_inputs(axes, None, {"length": 5}) is None
    plain = ModelAxes(replace(axes.model, exported_from=None))
    assert example_inputs(plain, None, {}) is None


def test_what_the_user_feeds_goes_first(axes: ModelAxes, tmp_path: Path) -> None:
    request = PlanRequest(models=("net.py:build",))
    fed, batch = fed_from_file(request, axes, None, {}, has_data=False)
    assert (fed.inputs, batch) == (tmp_path / "example.npz", 3)
    fed, batch = fed_from_file(request, axes, None, {}, has_data=True)
    assert (fed.inputs, batch) == (None, None)
    own = tmp_path / "own.npz"
    write_arrays(own, {"file": np.zeros((5, 2)), "word": np.array([["x"]] * 5)})
    fed, batch = fed_from_file(replace(request, inputs=own), axes, None, {}, has_data=False)
    assert (fed.inputs, batch) == (own, 5)
