"""Zeros among weights: counted by type and place, and what pruning compresses to."""

from __future__ import annotations

import zlib
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from pytest_ortbench.models import zeros
from pytest_ortbench.models.graph import read_model
from tests.models.graphs import value

SHARE = 0.25


def weights(share: float = SHARE, shape: tuple[int, ...] = (8, 8)) -> np.ndarray:
    """Ones, of which a share is zero, half of these negative zeros."""
    values = np.ones(shape, np.float32).reshape(-1)
    count = round(values.size * share)
    values[:count] = 0.0
    values[: count // 2] = -0.0
    return values.reshape(shape)


def model_of(*tensors: onnx.TensorProto) -> onnx.ModelProto:
    graph = helper.make_graph(
        [helper.make_node("Identity", ["x"], ["y"])],
        "g",
        [value("x", ["n"])],
        [value("y", ["n"])],
        list(tensors),
    )
    return helper.make_model(graph, ir_version=8, opset_imports=[helper.make_opsetid("", 17)])


def listed(kind: int, values: np.ndarray) -> onnx.TensorProto:
    """A tensor whose values stand in its list of numbers, not in its bytes."""
    return helper.make_tensor("w", kind, values.shape, values.reshape(-1).tolist())


@pytest.mark.parametrize(
    "tensor",
    [
        numpy_helper.from_array(weights(), "w"),
        numpy_helper.from_array(weights().astype(np.float16), "w"),
        numpy_helper.from_array(weights().astype(np.float64), "w"),
        numpy_helper.from_array(-weights().astype(np.int8), "w"),
        listed(TensorProto.FLOAT, weights()),
        listed(TensorProto.DOUBLE, weights()),
        listed(TensorProto.FLOAT16, weights()),
        listed(TensorProto.BFLOAT16, weights()),
        listed(TensorProto.INT8, -weights()),
    ],
    ids=lambda tensor: f"{TensorProto.DataType.Name(tensor.data_type)}-{bool(tensor.raw_data)}",
)
def test_zeros_of_each_type_are_counted(tensor: onnx.TensorProto, tmp_path: Path) -> None:
    assert zeros.zero_share(model_of(tensor), tmp_path) == SHARE


def test_biases_indices_and_empty_tensors_are_not_weights(tmp_path: Path) -> None:
    others = [
        numpy_helper.from_array(np.zeros(64, np.float32), "bias"),
        numpy_helper.from_array(np.zeros((4, 4), np.int64), "indices"),
        numpy_helper.from_array(np.zeros((0, 4), np.float32), "empty"),
    ]
    assert zeros.zero_share(model_of(*others), tmp_path) is None
    with_weights = model_of(*others, numpy_helper.from_array(weights(), "w"))
    assert zeros.zero_share(with_weights, tmp_path) == SHARE


def test_a_large_tensor_is_counted_in_blocks_over_all_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(zeros, "_BLOCK", 64)
    monkeypatch.setattr(zeros, "_BLOCKS", 4)
    values = np.ones((64, 64), np.float32)
    values[:, ::2] = 0
    tensor = numpy_helper.from_array(values, "w")
    assert zeros.zero_share(model_of(tensor), tmp_path) == 0.5


def test_external_weights_are_counted_and_the_size_compressed_is_told(tmp_path: Path) -> None:
    path = tmp_path / "m.onnx"
    tensor = numpy_helper.from_array(weights(0.75, (64, 64)), "w")
    onnx.save(
        model_of(tensor), path, save_as_external_data=True, location="m.data", size_threshold=0
    )
    model = read_model(path, name="m", source="file")
    assert (model.zero_share, model.is_pruned) == (0.75, True)
    parts = (path, tmp_path / "m.data")
    assert model.compressed_bytes == sum(len(zlib.compress(p.read_bytes(), 1)) for p in parts)


def test_a_dense_model_is_not_compressed(tmp_path: Path) -> None:
    path = tmp_path / "m.onnx"
    onnx.save(model_of(numpy_helper.from_array(weights(), "w")), path)
    model = read_model(path, name="m", source="file")
    assert (model.zero_share, model.is_pruned, model.compressed_bytes) == (SHARE, False, None)


def test_a_file_that_would_take_too_long_is_not_compressed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(zeros, "_COMPRESSED_MOST", 10)
    path = tmp_path / "m"
    path.write_bytes(bytes(11))
    assert zeros.compressed_size(path, ()) is None
