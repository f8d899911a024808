"""Arrays that are called as outputs, beside those of inputs, are what is expected."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from pytest_ortbench.core.case import InputSpec
from pytest_ortbench.core.errors import UsageError
from pytest_ortbench.core.model import Model, TensorInfo
from pytest_ortbench.planning.feeds import resolve_inputs, stored_batch
from pytest_ortbench.planning.real_inputs import expected_outputs
from pytest_ortbench.planning.sizes import ModelAxes

MODEL = Model(
    name="net",
    path="net.onnx",
    source="file",
    digest="0",
    size_bytes=1,
    inputs=(
        TensorInfo(name="a", type="tensor(float)", shape=("N", 3)),
        TensorInfo(name="b", type="tensor(float)", shape=("N", 2)),
    ),
    outputs=(
        TensorInfo(name="label", type="tensor(int64)", shape=("N",)),
        TensorInfo(name="scores/all", type="tensor(float)", shape=("N", 4)),
    ),
)
INPUTS = {"a": np.zeros((5, 3), np.float32), "b": np.zeros((5, 2), np.float32)}
OUTPUTS = {"scores/all": np.ones((5, 4)), "label": np.arange(5)}


def _write(folder: Path, kind: str, arrays: dict[str, np.ndarray]) -> Path:
    if kind == "npz":
        np.savez(folder / "data.npz", **arrays)
        return folder / "data.npz"
    for name, array in arrays.items():
        np.save(folder / f"{name.replace('/', '_')}.npy", array)
    return folder


def _specs(path: Path) -> tuple[InputSpec, ...]:
    return resolve_inputs(MODEL, batch=5, dims={}, inputs_path=path)


@pytest.mark.parametrize("kind", ["npz", "npy"])
def test_outputs_beside_the_inputs_are_expected(tmp_path: Path, kind: str) -> None:
    expected = expected_outputs(MODEL, _specs(_write(tmp_path, kind, {**INPUTS, **OUTPUTS})))
    assert [(spec.name, spec.type, spec.shape) for spec in expected] == [
        ("label", "tensor(int64)", (5,)),
        ("scores/all", "tensor(double)", (5, 4)),
    ]
    assert all(Path(spec.path).is_file() for spec in expected)


@pytest.mark.parametrize("kind", ["npz", "npy"])
def test_some_outputs_are_enough_and_none_are_no_expectation(tmp_path: Path, kind: str) -> None:
    path = _write(tmp_path, kind, INPUTS)
    assert expected_outputs(MODEL, _specs(path)) == ()
    _write(tmp_path, kind, {**INPUTS, "label": OUTPUTS["label"]})
    assert [spec.name for spec in expected_outputs(MODEL, _specs(path))] == ["label"]


def test_of_drawn_inputs_nothing_is_expected() -> None:
    assert expected_outputs(MODEL, resolve_inputs(MODEL, batch=5, dims={})) == ()


def test_outputs_alone_are_no_inputs(tmp_path: Path) -> None:
    path = _write(tmp_path, "npz", OUTPUTS)
    with pytest.raises(UsageError, match="no array for 'a', 'b'"):
        _specs(path)


def test_another_name_is_refused(tmp_path: Path) -> None:
    path = _write(tmp_path, "npz", {**INPUTS, "labels": OUTPUTS["label"]})
    with pytest.raises(UsageError, match="'labels'") as caught:
        _specs(path)
    assert "label" in caught.value.hint


def test_the_batch_that_nobody_asks_for_is_that_of_the_file(tmp_path: Path) -> None:
    path = _write(tmp_path, "npz", INPUTS)
    axes = ModelAxes(MODEL)
    assert stored_batch(axes, {}, path) == 5
    assert stored_batch(axes, {"N": 3}, path) is None
    _write(tmp_path, "npz", {**INPUTS, "b": np.zeros((4, 2), np.float32)})
    assert stored_batch(axes, {}, path) is None, "two sizes are none"
