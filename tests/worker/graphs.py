"""Small graphs for tests of the worker, as serialised models; operator set 13, IR version 8."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper


def serialised(
    nodes: Sequence[onnx.NodeProto],
    inputs: Sequence[onnx.ValueInfoProto],
    outputs: Sequence[onnx.ValueInfoProto],
    weights: dict[str, NDArray[np.generic]] | None = None,
    *,
    opset: int = 13,
) -> bytes:
    graph = helper.make_graph(
        list(nodes),
        "g",
        list(inputs),
        list(outputs),
        [numpy_helper.from_array(value, name) for name, value in (weights or {}).items()],
    )
    opsets = [helper.make_opsetid("", opset), helper.make_opsetid("ai.onnx.ml", 2)]
    model: onnx.ModelProto = helper.make_model(graph, opset_imports=opsets, ir_version=8)
    return model.SerializeToString()


def weights(
    *shape: int, seed: int = 0, scale: float = 1.0, dtype: str = "float32"
) -> NDArray[np.generic]:
    values = np.random.default_rng(seed).standard_normal(shape) * scale
    return values.astype(dtype)


def value(name: str, kind: int, shape: Sequence[int | str | None] | None) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, kind, shape)


def labels() -> bytes:
    """MatMul, Softmax and ArgMax over [N, 16], and a LabelEncoder to text behind them."""
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["l"], name="mm"),
        helper.make_node("Softmax", ["l"], ["p"], name="sm"),
        helper.make_node("ArgMax", ["l"], ["a"], name="am", axis=1, keepdims=0),
        helper.make_node(
            "LabelEncoder",
            ["a"],
            ["y"],
            name="le",
            domain="ai.onnx.ml",
            keys_int64s=[0, 1, 2],
            values_strings=["cat", "dog", "fox"],
            default_string="?",
        ),
    ]
    return serialised(
        nodes,
        [value("x", TensorProto.FLOAT, ["N", 16])],
        [value("y", TensorProto.STRING, ["N"]), value("p", TensorProto.FLOAT, ["N", 3])],
        {"w": weights(16, 3)},
    )


def shapes() -> bytes:
    """One Conv whose result is reshaped by what Shape, Gather and Concat compute."""
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["c"], name="conv", pads=[1, 1, 1, 1]),
        helper.make_node("Shape", ["c"], ["s"], name="shape"),
        helper.make_node("Gather", ["s", "zero"], ["b"], name="gather", axis=0),
        helper.make_node("Concat", ["b", "rest"], ["to"], name="concat", axis=0),
        helper.make_node("Reshape", ["c", "to"], ["y"], name="reshape"),
    ]
    return serialised(
        nodes,
        [value("x", TensorProto.FLOAT, ["N", 3, "H", "W"])],
        [value("y", TensorProto.FLOAT, ["N", None])],
        {"w": weights(4, 3, 3, 3), "zero": np.array([0]), "rest": np.array([-1])},
    )


def half() -> bytes:
    """MatMul and Relu in float16."""
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["l"], name="mm"),
        helper.make_node("Relu", ["l"], ["y"], name="relu"),
    ]
    return serialised(
        nodes,
        [value("x", TensorProto.FLOAT16, ["N", 16])],
        [value("y", TensorProto.FLOAT16, ["N", 8])],
        {"w": weights(16, 8, dtype="float16")},
    )


def loop_and_branch() -> bytes:
    """A Loop of five turns over MatMul and Relu, then an If between Tanh and Sin."""
    turned = ["N", 16]
    body = helper.make_graph(
        [
            helper.make_node("Identity", ["go"], ["on"], name="keep"),
            helper.make_node("MatMul", ["v", "w"], ["m"], name="body_mm"),
            helper.make_node("Relu", ["m"], ["v2"], name="body_relu"),
        ],
        "body",
        [
            value("turn", TensorProto.INT64, []),
            value("go", TensorProto.BOOL, []),
            value("v", TensorProto.FLOAT, turned),
        ],
        [value("on", TensorProto.BOOL, []), value("v2", TensorProto.FLOAT, turned)],
    )
    branches = [
        helper.make_graph(
            [helper.make_node(op, ["lo"], [op], name=op.lower())],
            op,
            [],
            [value(op, TensorProto.FLOAT, turned)],
        )
        for op in ("Tanh", "Sin")
    ]
    nodes = [
        helper.make_node("Loop", ["turns", "yes", "x"], ["lo"], name="loop", body=body),
        helper.make_node(
            "If", ["c"], ["y"], name="if", then_branch=branches[0], else_branch=branches[1]
        ),
    ]
    return serialised(
        nodes,
        [value("x", TensorProto.FLOAT, turned), value("c", TensorProto.BOOL, [])],
        [value("y", TensorProto.FLOAT, turned)],
        {"w": weights(16, 16, scale=0.2), "turns": np.array(5), "yes": np.array(True)},
    )


def quantised() -> bytes:
    """A MatMul between QuantizeLinear and DequantizeLinear, which becomes QLinearMatMul."""
    nodes = [
        helper.make_node("QuantizeLinear", ["x", "s", "z"], ["qx"]),
        helper.make_node("DequantizeLinear", ["qx", "s", "z"], ["dx"]),
        helper.make_node("DequantizeLinear", ["qw", "s", "zw"], ["dw"]),
        helper.make_node("MatMul", ["dx", "dw"], ["m"], name="mm"),
        helper.make_node("QuantizeLinear", ["m", "s", "z"], ["qm"]),
        helper.make_node("DequantizeLinear", ["qm", "s", "z"], ["y"]),
    ]
    return serialised(
        nodes,
        [value("x", TensorProto.FLOAT, [64, 256])],
        [value("y", TensorProto.FLOAT, [64, 256])],
        {
            "qw": np.random.default_rng(0).integers(-100, 100, (256, 256), dtype=np.int8),
            "s": np.array(0.05, np.float32),
            "z": np.array(128, np.uint8),
            "zw": np.array(0, np.int8),
        },
    )


def classifier() -> bytes:
    """LinearClassifier with text labels and a ZipMap, over [N, 4]."""
    nodes = [
        helper.make_node(
            "LinearClassifier",
            ["x"],
            ["label", "p"],
            domain="ai.onnx.ml",
            coefficients=weights(12).tolist(),
            intercepts=[0.0, 0.1, 0.2],
            classlabels_strings=["a", "b", "c"],
            post_transform="SOFTMAX",
        ),
        helper.make_node(
            "ZipMap", ["p"], ["z"], domain="ai.onnx.ml", classlabels_strings=["a", "b", "c"]
        ),
    ]
    table = helper.make_sequence_type_proto(
        helper.make_map_type_proto(
            TensorProto.STRING, helper.make_tensor_type_proto(TensorProto.FLOAT, [])
        )
    )
    return serialised(
        nodes,
        [value("x", TensorProto.FLOAT, ["N", 4])],
        [value("label", TensorProto.STRING, ["N"]), helper.make_value_info("z", table)],
    )


def mlp(classes: int = 10) -> bytes:
    """Two layers over [N, 32] that end in logits."""
    nodes = [
        helper.make_node("MatMul", ["x", "w1"], ["h"]),
        helper.make_node("Relu", ["h"], ["r"]),
        helper.make_node("MatMul", ["r", "w2"], ["logits"]),
    ]
    return serialised(
        nodes,
        [value("x", TensorProto.FLOAT, ["N", 32])],
        [value("logits", TensorProto.FLOAT, ["N", classes])],
        {"w1": weights(32, 64, scale=0.2), "w2": weights(64, classes, seed=1, scale=0.2)},
    )


def overflowing() -> bytes:
    """x⁴ scaled by 2e35: finite for small x, infinite for large ones, in single precision."""
    nodes = [
        helper.make_node("Mul", ["x", "x"], ["x2"]),
        helper.make_node("Mul", ["x2", "x2"], ["x4"]),
        helper.make_node("Mul", ["x4", "k"], ["y"]),
    ]
    return serialised(
        nodes,
        [value("x", TensorProto.FLOAT, ["N", 8])],
        [value("y", TensorProto.FLOAT, ["N", 8])],
        {"k": np.array(2e35, np.float32)},
    )


def sequence() -> bytes:
    """Joins a sequence of [M, 3] and splits it again into single rows."""
    nodes = [
        helper.make_node("ConcatFromSequence", ["s"], ["c"], axis=0),
        helper.make_node("SplitToSequence", ["c"], ["o"], axis=0),
    ]
    return serialised(
        nodes,
        [helper.make_tensor_sequence_value_info("s", TensorProto.FLOAT, None)],
        [helper.make_tensor_sequence_value_info("o", TensorProto.FLOAT, None)],
    )


def vectorizer() -> bytes:
    """DictVectorizer over the keys a, b, c."""
    kind = helper.make_map_type_proto(
        TensorProto.STRING, helper.make_tensor_type_proto(TensorProto.FLOAT, [])
    )
    node = helper.make_node(
        "DictVectorizer",
        ["m"],
        ["y"],
        domain="ai.onnx.ml",
        string_vocabulary=["a", "b", "c"],
    )
    return serialised(
        [node], [helper.make_value_info("m", kind)], [value("y", TensorProto.FLOAT, [1, 3])]
    )


def optional() -> bytes:
    """Takes the tensor out of an optional."""
    kind = helper.make_optional_type_proto(helper.make_tensor_type_proto(TensorProto.FLOAT, [2, 3]))
    return serialised(
        [helper.make_node("OptionalGetElement", ["o"], ["y"])],
        [helper.make_value_info("o", kind)],
        [value("y", TensorProto.FLOAT, [2, 3])],
        opset=16,
    )


def every_type() -> bytes:
    """Identity of a float16, a double, an unsigned byte, a scalar and a bool input."""
    kinds = {
        "half": (TensorProto.FLOAT16, [2, 3]),
        "double": (TensorProto.DOUBLE, [2, 3]),
        "byte": (TensorProto.UINT8, [5]),
        "rate": (TensorProto.INT64, []),
        "mask": (TensorProto.BOOL, [2, 4]),
        "text": (TensorProto.STRING, [3, 1]),
    }
    return serialised(
        [helper.make_node("Identity", [name], [f"{name}_out"]) for name in kinds],
        [value(name, kind, shape) for name, (kind, shape) in kinds.items()],
        [value(f"{name}_out", kind, shape) for name, (kind, shape) in kinds.items()],
    )


def wordy() -> bytes:
    """Ten nodes for what two can do: constants to fold, identities, a dead end."""
    return serialised(
        [
            helper.make_node("Identity", ["x"], ["a"], name="id0"),
            helper.make_node("Add", ["w", "w"], ["w2"], name="fold0"),
            helper.make_node("Mul", ["w2", "half"], ["w3"], name="fold1"),
            helper.make_node("MatMul", ["a", "w3"], ["b"], name="mm"),
            helper.make_node("Identity", ["b"], ["c"], name="id1"),
            helper.make_node("Relu", ["c"], ["d"], name="relu"),
            helper.make_node("Reshape", ["d", "s0"], ["e"], name="r0"),
            helper.make_node("Reshape", ["e", "s1"], ["f"], name="r1"),
            helper.make_node("Tanh", ["f"], ["dead"], name="dead"),
            helper.make_node("Identity", ["f"], ["y"], name="id2"),
        ],
        [value("x", TensorProto.FLOAT, ["N", 16])],
        [value("y", TensorProto.FLOAT, ["N", 16])],
        {
            "w": weights(16, 16),
            "half": np.float32(0.5),
            "s0": np.int64([-1, 4, 4]),
            "s1": np.int64([-1, 16]),
        },
    )
