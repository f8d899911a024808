"""Which node of a variant goes wrong."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from pytest_ortbench.convert.by_node import compare_nodes
from pytest_ortbench.core.case import InputSpec
from pytest_ortbench.core.errors import WorkerError
from pytest_ortbench.core.model import ValueHint
from pytest_ortbench.core.node_error import NodeErrors, beginning_of
from tests.worker.graphs import serialised, value, weights

pytestmark = pytest.mark.live

FLOAT = TensorProto.FLOAT
SPEC = InputSpec(name="x", type="tensor(float)", shape=(4, 16), hint=ValueHint(kind="normal"))


def chain(path: Path, *, wrong: float = 1.0) -> Path:
    """Three matrix products; the second one's weight is ``wrong`` times what it should be."""
    second = weights(16, 16, seed=1, scale=0.25) * np.float32(wrong)
    path.write_bytes(
        serialised(
            [
                helper.make_node("MatMul", ["x", "w0"], ["a"], name="first"),
                helper.make_node("MatMul", ["a", "w1"], ["b"], name="second"),
                helper.make_node("Relu", ["b"], ["c"], name="relu"),
                helper.make_node("MatMul", ["c", "w2"], ["y"], name="third"),
            ],
            [value("x", FLOAT, ["N", 16])],
            [value("y", FLOAT, ["N", 16])],
            {"w0": weights(16, 16), "w1": second, "w2": weights(16, 16, seed=2)},
        )
    )
    return path


def compare(reference: Path, variant: Path) -> NodeErrors:
    return compare_nodes(str(reference), str(variant), (SPEC,), seed=0, samples=2)


def test_the_node_that_is_wrong_is_the_first_with_noise(tmp_path: Path) -> None:
    found = compare(chain(tmp_path / "r.onnx"), chain(tmp_path / "v.onnx", wrong=0.9))
    assert [(node.node, node.op_type) for node in found.nodes] == [
        ("first", "MatMul"),
        ("second", "MatMul"),
        ("relu", "Relu"),
        ("third", "MatMul"),
    ]
    assert found.nodes[0].sqnr_db is None
    # A tenth of the signal is noise, from there on to the end.
    assert [node.sqnr_db for node in found.nodes[1:]] == [pytest.approx(20, abs=0.01)] * 3
    assert (found.samples, found.unmatched) == (2, 0)


def head(path: Path, *, levels: int = 0) -> Path:
    """Boxes in pixels and scores up to 1 in one tensor; with levels, one scale rounds both."""
    nodes = [
        helper.make_node("Mul", ["x", "pixels"], ["boxes"], name="boxes"),
        helper.make_node("Sigmoid", ["x"], ["scores"], name="scores"),
        helper.make_node("Concat", ["boxes", "scores"], ["y"], name="joined", axis=1),
    ]
    tensors = {"pixels": np.float32(300).reshape(1)}
    if levels:
        nodes[2] = helper.make_node("Concat", ["boxes", "scores"], ["whole"], name="joined", axis=1)
        tensors["step"] = np.float32(600 / levels).reshape(1)
        nodes += [
            helper.make_node("Div", ["whole", "step"], ["steps"], name="to_steps"),
            helper.make_node("Round", ["steps"], ["rounded"], name="round"),
            helper.make_node("Mul", ["rounded", "step"], ["y"], name="from_steps"),
        ]
    path.write_bytes(
        serialised(nodes, [value("x", FLOAT, ["N", 16])], [value("y", FLOAT, ["N", 32])], tensors)
    )
    return path


def test_scores_beside_boxes_in_pixels_are_seen_and_the_node_that_joins_them_is_named(
    tmp_path: Path,
) -> None:
    found = compare(head(tmp_path / "r.onnx"), head(tmp_path / "v.onnx", levels=255))
    by_name = {node.node: node for node in found.nodes}
    joined = by_name["joined"]
    assert joined.inputs == ("boxes", "scores")
    assert (joined.sqnr_db or 0) > 30
    assert joined.slices is not None
    assert (joined.slices.first, joined.slices.last) == (16, 31)
    assert joined.slices.sqnr_db < 10
    begins = beginning_of(found)
    assert begins is not None
    assert begins.node == joined


def gather(path: Path, kind: int, *, second: str = "") -> Path:
    """Rows of a table by number; with ``second``, that input is added to them."""
    nodes = [helper.make_node("Gather", ["table", "x"], ["rows"], name="gather")]
    inputs = [value("x", kind, [3])]
    if second:
        nodes.append(helper.make_node("Add", ["rows", second], ["y"], name="add"))
        inputs.append(value(second, FLOAT, [3, 4]))
    outputs = [value("y" if second else "rows", FLOAT, [3, 4])]
    path.write_bytes(serialised(nodes, inputs, outputs, {"table": weights(8, 4)}))
    return path


def test_integers_are_fed_in_the_width_that_each_declares(tmp_path: Path) -> None:
    spec = InputSpec(
        name="x", type="tensor(int64)", shape=(3,), hint=ValueHint(kind="integers", low=0, high=7)
    )
    wide = gather(tmp_path / "wide.onnx", TensorProto.INT64)
    narrow = gather(tmp_path / "narrow.onnx", TensorProto.INT32)
    found = compare_nodes(str(wide), str(narrow), (spec,), seed=0, samples=1)
    assert [(node.node, node.max_abs) for node in found.nodes] == [("gather", 0)]


def test_an_input_that_nothing_is_fed_to_is_named(tmp_path: Path) -> None:
    spec = InputSpec(
        name="x", type="tensor(int64)", shape=(3,), hint=ValueHint(kind="integers", low=0, high=7)
    )
    one = gather(tmp_path / "one.onnx", TensorProto.INT64)
    two = gather(tmp_path / "two.onnx", TensorProto.INT64, second="bias")
    with pytest.raises(WorkerError) as caught:
        compare_nodes(str(one), str(two), (spec,), seed=0, samples=1)
    assert caught.value.failure.message.count("'bias'") == 1


def test_nodes_that_the_variant_lacks_are_counted(tmp_path: Path) -> None:
    variant = chain(tmp_path / "v.onnx")
    model = onnx.load(str(variant))
    for node in model.graph.node:
        for names in (node.input, node.output):
            for index, name in enumerate(names):
                names[index] = "other" if name == "b" else name
    onnx.save(model, str(variant))
    found = compare(chain(tmp_path / "r.onnx"), variant)
    assert [node.node for node in found.nodes] == ["first", "relu", "third"]
    assert found.unmatched == 1


def test_values_that_turn_into_nan_are_counted(tmp_path: Path) -> None:
    found = compare(chain(tmp_path / "r.onnx"), chain(tmp_path / "v.onnx", wrong=float("nan")))
    assert found.nodes[1].nonfinite == 2 * 4 * 16


def test_behind_a_quantise_dequantise_pair_the_value_is_the_rounded_one(tmp_path: Path) -> None:
    """The quantiser drops the Relu: what it leaves has negative values until it is rounded."""
    variant = chain(tmp_path / "v.onnx")
    model = onnx.load(str(variant))
    nodes = [node for node in model.graph.node if node.op_type != "Relu"]
    nodes[1].output[0] = "c"
    nodes[2].input[0] = "c_back"
    pair = [
        helper.make_node("QuantizeLinear", ["c", "s", "z"], ["c_q"], name="q"),
        helper.make_node("DequantizeLinear", ["c_q", "s", "z"], ["c_back"], name="dq"),
    ]
    tensors = [
        *model.graph.initializer,
        numpy_helper.from_array(np.float32(12 / 255), "s"),
        numpy_helper.from_array(np.uint8(0), "z"),
    ]
    graph = helper.make_graph(
        [*nodes[:2], *pair, nodes[2]], "g", model.graph.input, model.graph.output, tensors
    )
    opsets = [helper.make_opsetid("", 13)]
    onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=8), str(variant))
    found = {node.node: node.sqnr_db for node in compare(chain(tmp_path / "r.onnx"), variant).nodes}
    assert found["first"] is None
    assert found["relu"] is not None
    assert found["relu"] > 25
