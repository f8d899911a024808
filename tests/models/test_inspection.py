"""Facts about a model: interface, operators, weights, notes."""

from __future__ import annotations

import platform
from pathlib import Path

import onnx
import pytest
from onnx import TensorProto, helper

from tests.models.graphs import BOOL, FLOAT, INT64, constant, model, node, read, relu, value, weight


def branch(name: str, op: str) -> onnx.GraphProto:
    return helper.make_graph([node(op, ["x"], [name])], name, [], [value(name, ["N", 4])])


def test_initialisers_listed_as_inputs_are_weights(tmp_path: Path) -> None:
    proto = model(
        [node("MatMul", ["x", "w"], ["y"])],
        [value("x", ["N", 4]), value("w", [4, 2])],
        [value("y", ["N", 2])],
        [weight("w", 4, 2)],
        ir_version=3,
    )
    found = read(proto, tmp_path)
    assert [info.name for info in found.inputs] == ["x"]
    assert found.ir_version == 3
    assert found.parameters == 8


@pytest.mark.parametrize(
    ("kind", "spelling"),
    [
        (TensorProto.FLOAT, "tensor(float)"),
        (TensorProto.DOUBLE, "tensor(double)"),
        (TensorProto.FLOAT16, "tensor(float16)"),
        (TensorProto.BFLOAT16, "tensor(bfloat16)"),
        (TensorProto.INT8, "tensor(int8)"),
        (TensorProto.STRING, "tensor(string)"),
        (TensorProto.BOOL, "tensor(bool)"),
    ],
)
def test_types_are_spelled_as_onnx_runtime_does(tmp_path: Path, kind: int, spelling: str) -> None:
    (info,) = read(relu(kind=kind), tmp_path).inputs
    assert info.type == spelling


def test_sequence_optional_and_map_types(tmp_path: Path) -> None:
    tensor = helper.make_tensor_type_proto(FLOAT, ["N", 2])
    sequence = helper.make_sequence_type_proto(tensor)
    optional = helper.make_optional_type_proto(tensor)
    mapping = helper.make_map_type_proto(INT64, helper.make_tensor_type_proto(FLOAT, []))
    inputs = [
        helper.make_value_info("s", sequence),
        helper.make_value_info("o", optional),
        helper.make_value_info("m", mapping),
    ]
    nodes = [node("SequenceAt", ["s", "zero"], ["y"])]
    found = read(model(nodes, inputs, [value("y", None)], [constant("zero", 0)]), tmp_path)
    assert [(i.type, i.shape, i.optional) for i in found.inputs] == [
        ("seq(tensor(float))", ("N", 2), False),
        ("optional(tensor(float))", ("N", 2), True),
        ("map(int64,tensor(float))", None, False),
    ]


def test_sizes_symbols_and_unset_axes(tmp_path: Path) -> None:
    proto = relu(["N", None, 7, 0, "?"])
    proto.graph.input[0].type.tensor_type.shape.dim[2].dim_value = -1
    assert read(proto, tmp_path).inputs[0].shape == ("N", None, None, 0, None)


def test_scalar_and_unknown_rank(tmp_path: Path) -> None:
    assert read(relu([]), tmp_path).inputs[0].shape == ()
    assert read(relu(None), tmp_path).inputs[0].shape is None


def test_subgraphs_count(tmp_path: Path) -> None:
    proto = model(
        [
            node(
                "If",
                ["c"],
                ["y"],
                then_branch=branch("a", "Relu"),
                else_branch=branch("b", "Sigmoid"),
            )
        ],
        [value("c", [], BOOL), value("x", ["N", 4])],
        [value("y", ["N", 4])],
    )
    found = read(proto, tmp_path)
    assert found.nodes == 3
    assert found.op_types == {"If": 1, "Relu": 1, "Sigmoid": 1}


def test_domains_are_named(tmp_path: Path) -> None:
    proto = model(
        [node("Frobnicate", ["x"], ["y"], domain="my.ops")],
        [value("x", ["N"])],
        [value("y", ["N"])],
        opsets={"": 13, "my.ops": 2},
    )
    found = read(proto, tmp_path)
    assert found.op_types == {"my.ops::Frobnicate": 1}
    assert found.opsets == {"ai.onnx": 13, "my.ops": 2}


def test_parameters_are_float_and_integer_weights(tmp_path: Path) -> None:
    proto = relu()
    proto.graph.initializer.extend(
        [weight("w", 10, 3), constant("i", [1, 2]), constant("b", [True], "bool")]
    )
    proto.graph.node.insert(
        0, node("Constant", [], ["c"], value=constant("", [[1.0, 2.0]], "float32"))
    )
    assert read(proto, tmp_path).parameters == 30 + 2 + 2


def test_parameters_of_classical_models(tmp_path: Path) -> None:
    tree = node(
        "TreeEnsembleRegressor",
        ["x"],
        ["t"],
        domain="ai.onnx.ml",
        nodes_modes=["BRANCH_LEQ", "LEAF", "LEAF"],
        target_weights=[1.0, -1.0],
    )
    linear = node(
        "LinearRegressor",
        ["x"],
        ["l"],
        domain="ai.onnx.ml",
        coefficients=[1.0, 2.0, 3.0],
        intercepts=[0.5],
    )
    proto = model(
        [tree, linear],
        [value("x", ["N", 3])],
        [value("t", None), value("l", None)],
        opsets={"": 17, "ai.onnx.ml": 1},
    )
    assert read(proto, tmp_path).parameters == 3 + 4


@pytest.mark.parametrize(
    ("nodes", "expected"),
    [
        ([node("RandomNormalLike", ["x"], ["y"])], ("RandomNormalLike",)),
        ([node("Bernoulli", ["x"], ["y"])], ("Bernoulli",)),
        ([node("Dropout", ["x"], ["y"])], ()),
        ([node("Dropout", ["x", "", "yes"], ["y"])], ("Dropout (training mode)",)),
        ([node("Dropout", ["x", "", "no"], ["y"])], ()),
    ],
)
def test_random_operators(
    tmp_path: Path, nodes: list[onnx.NodeProto], expected: tuple[str, ...]
) -> None:
    flags = [constant("yes", True, "bool"), constant("no", False, "bool")]
    proto = model(nodes, [value("x", ["N", 4])], [value("y", ["N", 4])], flags)
    assert read(proto, tmp_path).random_ops == expected


def test_internal_domain_is_noted(tmp_path: Path) -> None:
    proto = model(
        [node("ReorderInput", ["x"], ["y"], domain="com.microsoft.nchwc")],
        [value("x", ["N", 16, 8, 8])],
        [value("y", None)],
        opsets={"": 17, "com.microsoft.nchwc": 1},
    )
    (note,) = read(proto, tmp_path).notes
    assert note.startswith("optimised offline: ")
    assert "com.microsoft.nchwc" in note


@pytest.mark.live
@pytest.mark.skipif(
    platform.machine() not in ("x86_64", "AMD64"), reason="only x86 builds have this layout"
)
def test_model_optimised_offline_is_noted(tmp_path: Path) -> None:
    import onnxruntime as ort

    proto = model(
        [node("Conv", ["x", "w"], ["y"], pads=[1, 1, 1, 1])],
        [value("x", [1, 16, 8, 8])],
        [value("y", [1, 16, 8, 8])],
        [weight("w", 16, 16, 3, 3)],
    )
    plain = read(proto, tmp_path)
    options = ort.SessionOptions()
    options.optimized_model_filepath = str(tmp_path / "optimised.onnx")
    options.log_severity_level = 3
    ort.InferenceSession(plain.path, options, providers=["CPUExecutionProvider"])
    from pytest_ortbench.models.graph import read_model

    optimised = read_model(tmp_path / "optimised.onnx", name="o", source="file")
    assert plain.notes == ()
    assert "com.microsoft.nchwc" in optimised.notes[0]
    assert optimised.notes[0].startswith("optimised offline: ")
