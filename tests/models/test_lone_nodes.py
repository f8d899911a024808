"""Nodes taken out of a model, as they are and changed in one thing."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import TensorProto, checker, helper, numpy_helper

from pytest_ortbench.models.lone_nodes import LoneNode, LoneNodes

pytestmark = pytest.mark.live  # shapes are inferred in a process of its own


@pytest.fixture(scope="module")
def lone(tmp_path_factory: pytest.TempPathFactory) -> LoneNodes:
    """Nodes of Gather, Add, If and an operator of another domain, at batch 3."""
    branch = helper.make_graph(
        [helper.make_node("Identity", ["sum"], ["same"])],
        "branch",
        [],
        [helper.make_tensor_value_info("same", TensorProto.INT64, None)],
    )
    nodes = [
        helper.make_node("Gather", ["table", "ids"], ["rows"], name="look up", axis=0),
        helper.make_node("Add", ["rows", "rows"], ["sum"], name="first"),
        helper.make_node("Add", ["sum", "more"], ["total"], name="second"),
        helper.make_node("If", ["yes"], ["y"], then_branch=branch, else_branch=branch),
        helper.make_node("Strange", ["total"], ["z"], domain="acme"),
    ]
    graph = helper.make_graph(
        nodes,
        "g",
        [
            helper.make_tensor_value_info("ids", TensorProto.INT64, ["batch"]),
            helper.make_tensor_value_info("yes", TensorProto.BOOL, []),
        ],
        [
            helper.make_tensor_value_info("y", TensorProto.INT64, None),
            helper.make_tensor_value_info("z", TensorProto.INT64, None),
        ],
        [
            numpy_helper.from_array(np.arange(40).reshape(10, 4), "table"),
            numpy_helper.from_array(np.ones(4, np.int64), "more"),
        ],
    )
    opsets = [helper.make_opsetid("", 14), helper.make_opsetid("acme", 1)]
    path = tmp_path_factory.mktemp("lone") / "m.onnx"
    onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=8), path)
    return LoneNodes(path, {"batch": 3})


def shapes(model: onnx.ModelProto) -> dict[str, tuple[int, list[int]]]:
    return {
        value.name: (
            value.type.tensor_type.elem_type,
            [dimension.dim_value for dimension in value.type.tensor_type.shape.dim],
        )
        for value in (*model.graph.input, *model.graph.output)
    }


def test_a_node_stands_alone_with_fixed_sizes_and_its_constants(lone: LoneNodes) -> None:
    plain = next(lone.of("Gather", "look up"))
    assert (plain.change, plain.detail) == ("", "")
    checker.check_model(plain.proto, full_check=True)
    assert shapes(plain.proto) == {
        "ids": (TensorProto.INT64, [3]),
        "rows": (TensorProto.INT64, [3, 4]),
    }
    [table] = plain.proto.graph.initializer
    np.testing.assert_array_equal(numpy_helper.to_array(table), np.arange(40).reshape(10, 4))


def test_it_is_found_by_its_name(lone: LoneNodes) -> None:
    second = next(lone.of("Add", "second"))
    assert list(second.proto.graph.node[0].input) == ["sum", "more"]
    assert next(lone.of("Add", "")).proto.graph.node[0].name == "first"


def of_change(nodes: list[LoneNode], change: str) -> dict[str, LoneNode]:
    return {node.detail: node for node in nodes if node.change == change}


def test_another_type_holds_for_values_and_constants(lone: LoneNodes) -> None:
    changed = of_change(list(lone.of("Add", "second")), "types")
    assert "int64 → float" in changed
    proto = changed["int64 → float"].proto
    checker.check_model(proto, full_check=True)
    assert {kind for kind, _ in shapes(proto).values()} == {TensorProto.FLOAT}
    assert proto.graph.initializer[0].data_type == TensorProto.FLOAT


def test_older_operator_sets_are_those_before_a_change(lone: LoneNodes) -> None:
    changed = of_change(list(lone.of("Add", "second")), "opset")
    # Add changed in 14, 13 and 7.
    assert list(changed)[:2] == ["opset 13", "opset 12"]
    assert changed["opset 13"].proto.opset_import[0].version == 13


def test_what_can_not_stand_alone_yields_nothing(lone: LoneNodes) -> None:
    assert list(lone.of("If", "")) == []
    assert list(lone.of("Conv", "")) == []


def test_of_an_operator_that_onnx_does_not_know_nothing_is_changed(lone: LoneNodes) -> None:
    assert [node.change for node in lone.of("acme::Strange", "")] == [""]
