"""Weights with subnormal values: found by type and place, and named with their node."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from pytest_ortbench.core.model import SubnormalWeight
from pytest_ortbench.models.graph import read_model
from pytest_ortbench.models.subnormals import subnormal_weights
from tests.models.graphs import value

SMALL = 1e-41


def values(share: float, dtype: str = "float32", small: float = SMALL) -> np.ndarray:
    """Ones with a zero among them, of which a share is subnormal, half of these negative."""
    found = np.ones(2000, dtype)
    found[-1] = 0
    count = round(share * 2000)
    found[:count] = small
    found[: count // 2] *= -1
    return found.reshape(40, 50)


def model_of(*tensors: onnx.TensorProto, nodes: tuple[onnx.NodeProto, ...] = ()) -> onnx.ModelProto:
    graph = helper.make_graph(
        [helper.make_node("MatMul", ["x", "w"], ["y"], name="mm"), *nodes],
        "g",
        [value("x", ["n", 40])],
        [value("y", ["n", 50])],
        list(tensors),
    )
    return helper.make_model(graph, ir_version=8, opset_imports=[helper.make_opsetid("", 17)])


@pytest.mark.parametrize(
    "tensor",
    [
        numpy_helper.from_array(values(0.5), "w"),
        numpy_helper.from_array(values(0.5, "float64", 1e-310), "w"),
        helper.make_tensor("w", TensorProto.FLOAT, (40, 50), values(0.5).reshape(-1).tolist()),
        helper.make_tensor(
            "w", TensorProto.BFLOAT16, (40, 50), values(0.5, small=1e-39).reshape(-1).tolist()
        ),
    ],
    ids=lambda tensor: f"{TensorProto.DataType.Name(tensor.data_type)}-{bool(tensor.raw_data)}",
)
def test_they_are_counted_and_named_with_the_node(tensor: onnx.TensorProto, tmp_path: Path) -> None:
    assert subnormal_weights(model_of(tensor), tmp_path) == (
        SubnormalWeight(name="w", node="mm", op_type="MatMul", values=1000, value_share=0.5),
    )


@pytest.mark.parametrize(
    "tensor",
    [
        numpy_helper.from_array(values(0.0), "w"),
        numpy_helper.from_array(values(0.0005), "w"),  # one of 2000
        numpy_helper.from_array(values(0.5, "float16", 1e-7), "w"),  # normal where it is computed
        numpy_helper.from_array(values(0.5, "float64"), "w"),  # normal in 64 bits
        numpy_helper.from_array(np.zeros((40, 50), np.float32), "w"),
        numpy_helper.from_array(np.full((40, 50), np.inf, np.float32), "w"),
        numpy_helper.from_array(np.ones((40, 50), np.int8), "w"),
        numpy_helper.from_array(np.ones((0, 50), np.float32), "w"),
    ],
)
def test_what_costs_nothing_is_none(tensor: onnx.TensorProto, tmp_path: Path) -> None:
    assert subnormal_weights(model_of(tensor), tmp_path) == ()


def test_constants_and_weights_of_branches_are_looked_at(tmp_path: Path) -> None:
    constant = helper.make_node(
        "Constant", [], ["k"], value=numpy_helper.from_array(values(0.2), "")
    )
    inner = helper.make_graph(
        [helper.make_node("Relu", ["v"], ["o"])],
        "branch",
        [],
        [value("o", [40, 50])],
        [numpy_helper.from_array(values(0.1), "v")],
    )
    branches = helper.make_node("If", ["c"], ["z"], then_branch=inner, else_branch=inner)
    added = helper.make_node("Add", ["y", "k"], ["s"])
    whole = numpy_helper.from_array(values(0.3), "w")
    found = subnormal_weights(model_of(whole, nodes=(constant, branches, added)), tmp_path)
    assert [(weight.name, weight.node, weight.op_type) for weight in found] == [
        ("w", "mm", "MatMul"),
        ("k", "s", "Add"),
        ("v", "o", "Relu"),
        ("v", "o", "Relu"),
    ]


def test_the_most_are_named_of_many(tmp_path: Path) -> None:
    tensors = [numpy_helper.from_array(values(0.1 * n), f"w{n}") for n in range(1, 9)]
    found = subnormal_weights(model_of(*tensors), tmp_path)
    assert [weight.name for weight in found] == ["w8", "w7", "w6", "w5", "w4"]
    assert found[0].node == ""


def test_external_weights_are_read_where_they_lie(tmp_path: Path) -> None:
    model = model_of(numpy_helper.from_array(values(0.5), "w"))
    path = tmp_path / "m.onnx"
    onnx.save(model, str(path), save_as_external_data=True, location="w.bin", size_threshold=0)
    (found,) = read_model(path, name="m", source="file").subnormal_weights
    assert (found.name, found.values) == ("w", 1000)


@pytest.mark.parametrize(("ir_version", "count"), [(3, 0), (4, 1), (10, 1)])
def test_weights_that_are_inputs_count_where_they_can_be_overridden(
    tmp_path: Path, ir_version: int, count: int
) -> None:
    model = model_of(numpy_helper.from_array(values(0.0), "w"))
    model.graph.input.append(value("w", [40, 50]))
    model.ir_version = ir_version
    path = tmp_path / "m.onnx"
    onnx.save(model, str(path))
    found = read_model(path, name="m", source="file")
    assert found.weights_as_inputs == count
    assert [info.name for info in found.inputs] == ["x"]
