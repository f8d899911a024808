"""The models that are changed: small ones of many kinds, built here."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import numpy as np
from onnx import FunctionProto, ModelProto, TensorProto, ValueInfoProto, helper, numpy_helper

F, I64 = TensorProto.FLOAT, TensorProto.INT64
#: The file of external data, where a model has one.
DATA = "weights.bin"


def _value(name: str, kind: int, shape: Sequence[int | str] | None) -> ValueInfoProto:
    return helper.make_tensor_value_info(name, kind, shape)


def _weight(name: str, *shape: int, kind: type = np.float32) -> TensorProto:
    drawn = np.random.default_rng(len(name) + sum(shape)).normal(0, 0.3, shape)
    return numpy_helper.from_array(drawn.astype(kind), name)


def _ints(name: str, *values: int) -> TensorProto:
    return numpy_helper.from_array(np.array(values, np.int64), name)


def _model(
    nodes: Sequence[Any],
    inputs: Sequence[ValueInfoProto],
    outputs: Sequence[ValueInfoProto],
    weights: Sequence[TensorProto] = (),
    *,
    domains: Sequence[tuple[str, int]] = (),
    functions: Sequence[FunctionProto] = (),
) -> ModelProto:
    graph = helper.make_graph(nodes, "base", inputs, outputs, weights)
    opsets = [helper.make_opsetid(domain, version) for domain, version in (("", 17), *domains)]
    model = helper.make_model(graph, ir_version=9, opset_imports=opsets, functions=functions)
    helper.set_model_props(model, {"author": "tests"})
    return model


def _mlp() -> ModelProto:
    node = helper.make_node
    return _model(
        [node("MatMul", ["x", "w"], ["h"], name="first"), node("Add", ["h", "b"], ["a"]),
         node("Relu", ["a"], ["r"]), node("Gemm", ["r", "v"], ["g"], transB=1),
         node("Softmax", ["g"], ["y"], axis=-1)],
        [_value("x", F, ["batch", 16])], [_value("y", F, ["batch", 4])],
        [_weight("w", 16, 8), _weight("b", 8), _weight("v", 4, 8)],
    )  # fmt: skip


def _external() -> ModelProto:
    model = _mlp()
    offset = 0
    for tensor in model.graph.initializer:
        length = len(tensor.raw_data)
        tensor.ClearField("raw_data")
        tensor.data_location = TensorProto.EXTERNAL
        for key, value in (("location", DATA), ("offset", offset), ("length", length)):
            entry = tensor.external_data.add()
            entry.key, entry.value = key, str(value)
        offset += length
    return model


def _convnet() -> ModelProto:
    node = helper.make_node
    norm = [_weight(name, 4) for name in ("scale", "bias", "mean")]
    return _model(
        [node("Conv", ["x", "k"], ["c"], pads=[1, 1, 1, 1], strides=[2, 2], group=1),
         node("BatchNormalization", ["c", "scale", "bias", "mean", "var"], ["n"], epsilon=1e-5),
         node("MaxPool", ["n"], ["p"], kernel_shape=[2, 2], strides=[2, 2]),
         node("Resize", ["p", "", "s"], ["u"], mode="nearest"),
         node("GlobalAveragePool", ["u"], ["g"]), node("Flatten", ["g"], ["f"]),
         node("Gemm", ["f", "w", "b"], ["y"])],
        [_value("x", F, ["N", 3, 16, "W"])], [_value("y", F, ["N", 5])],
        [_weight("k", 4, 3, 3, 3), *norm, numpy_helper.from_array(np.ones(4, np.float32), "var"),
         numpy_helper.from_array(np.array([1, 1, 2, 2], np.float32), "s"),
         _weight("w", 4, 5), _weight("b", 5)],
    )  # fmt: skip


def _encoder() -> ModelProto:
    node = helper.make_node
    return _model(
        [node("Gather", ["table", "ids"], ["e"]),
         node("LayerNormalization", ["e", "g"], ["l"], axis=-1),
         node("Transpose", ["l"], ["t"], perm=[0, 2, 1]), node("MatMul", ["l", "t"], ["s"]),
         node("Cast", ["mask"], ["m"], to=F), node("Unsqueeze", ["m", "axis"], ["mu"]),
         node("Mul", ["s", "mu"], ["sm"]), node("Softmax", ["sm"], ["p"], axis=-1),
         node("MatMul", ["p", "l"], ["y"]), node("ReduceMean", ["y"], ["z"], axes=[1])],
        [_value("ids", I64, ["batch", "seq"]), _value("mask", I64, ["batch", "seq"])],
        [_value("y", F, ["batch", "seq", 8]), _value("z", F, None)],
        [_weight("table", 20, 8), _weight("g", 8), _ints("axis", 1)],
    )  # fmt: skip


def _recurrent() -> ModelProto:
    node = helper.make_node
    return _model(
        [node("LSTM", ["x", "w", "r", "b"], ["o", "h", ""], hidden_size=6, direction="forward"),
         node("Squeeze", ["o", "axis"], ["s"]), node("ArgMax", ["s"], ["y"], axis=2, keepdims=0)],
        [_value("x", F, ["seq", "batch", 5])],
        [_value("y", I64, ["seq", "batch"]), _value("h", F, [1, "batch", 6])],
        [_weight("w", 1, 24, 5), _weight("r", 1, 24, 6), _weight("b", 1, 48), _ints("axis", 1)],
    )  # fmt: skip


def _control_flow() -> ModelProto:
    node = helper.make_node
    body = helper.make_graph(
        [node("Add", ["before", "x"], ["after"]), node("Identity", ["keep"], ["go"]),
         node("Identity", ["after"], ["scan"])], "body",
        [_value("i", I64, []), _value("keep", TensorProto.BOOL, []), _value("before", F, ["N", 3])],
        [_value("go", TensorProto.BOOL, []), _value("after", F, ["N", 3]),
         _value("scan", F, ["N", 3])],
    )  # fmt: skip
    branches = [
        helper.make_graph(
            [node(op, ["last"], [f"{op}_out"])], op, [], [_value(f"{op}_out", F, None)]
        )
        for op in ("Neg", "Abs")
    ]
    return _model(
        [node("Loop", ["trips", "", "x"], ["last", "scans"], body=body, name="loop"),
         node("If", ["flag"], ["y"], then_branch=branches[0], else_branch=branches[1])],
        [_value("x", F, ["N", 3]), _value("flag", TensorProto.BOOL, [])],
        [_value("y", F, None), _value("scans", F, None)],
        [numpy_helper.from_array(np.array(3, np.int64), "trips")],
    )  # fmt: skip


def _functions() -> ModelProto:
    node = helper.make_node
    opset = [helper.make_opsetid("", 17), helper.make_opsetid("own", 1)]
    inner = helper.make_function(
        "own", "Scaled", ["a", "k"], ["b"], [node("Mul", ["a", "k"], ["b"])], opset
    )
    outer = helper.make_function(
        "own", "Twice", ["a", "k"], ["c"],
        [node("Scaled", ["a", "k"], ["b"], domain="own"),
         node("Scaled", ["b", "k"], ["c"], domain="own")], opset,
    )  # fmt: skip
    return _model(
        [node("Twice", ["x", "w"], ["t"], domain="own"), node("Tanh", ["t"], ["y"])],
        [_value("x", F, ["N", 4])], [_value("y", F, ["N", 4])], [_weight("w", 4)],
        domains=[("own", 1)], functions=[inner, outer],
    )  # fmt: skip


def _classical() -> ModelProto:
    node = helper.make_node
    trees = node(
        "TreeEnsembleClassifier", ["s"], ["label", "scores"], domain="ai.onnx.ml",
        nodes_treeids=[0, 0, 0], nodes_nodeids=[0, 1, 2], nodes_featureids=[0, 0, 0],
        nodes_values=[0.5, 0.0, 0.0], nodes_modes=["BRANCH_LEQ", "LEAF", "LEAF"],
        nodes_truenodeids=[1, 0, 0], nodes_falsenodeids=[2, 0, 0],
        class_treeids=[0, 0], class_nodeids=[1, 2], class_ids=[0, 1], class_weights=[1.0, 1.0],
        classlabels_strings=["no", "yes"],
    )  # fmt: skip
    scaler = node("Scaler", ["x"], ["s"], domain="ai.onnx.ml", offset=[0.1, 0.2], scale=[1.0, 2.0])
    zipped = node(
        "ZipMap", ["scores"], ["y"], domain="ai.onnx.ml", classlabels_strings=["no", "yes"]
    )
    maps = helper.make_value_info(
        "y",
        helper.make_sequence_type_proto(
            helper.make_map_type_proto(TensorProto.STRING, helper.make_tensor_type_proto(F, ()))
        ),
    )
    return _model(
        [scaler, trees, zipped], [_value("x", F, ["N", 2])],
        [_value("label", TensorProto.STRING, ["N"]), maps], domains=[("ai.onnx.ml", 3)],
    )  # fmt: skip


def _texts() -> ModelProto:
    node = helper.make_node
    return _model(
        [node("LabelEncoder", ["x"], ["n"], domain="ai.onnx.ml", keys_strings=["a"],
              values_strings=["b"], default_string="c"),
         node("LabelEncoder", ["n"], ["y"], domain="ai.onnx.ml", keys_strings=["b", "c"],
              values_int64s=[1, 2], default_int64=-1)],
        [_value("x", TensorProto.STRING, ["N"])], [_value("y", I64, ["N"])],
        domains=[("ai.onnx.ml", 3)],
    )  # fmt: skip


def _sequences() -> ModelProto:
    node = helper.make_node
    return _model(
        [node("SplitToSequence", ["x", "parts"], ["q"], axis=1),
         node("SequenceAt", ["q", "at"], ["f"]), node("SequenceLength", ["q"], ["n"]),
         node("Constant", [], ["c"], value=_weight("held", 2)), node("Add", ["f", "c"], ["y"])],
        [_value("x", F, ["N", 6])], [_value("y", F, ["N", 2]), _value("n", I64, [])],
        [_ints("parts", 2, 2, 2), numpy_helper.from_array(np.array(1, np.int64), "at")],
    )  # fmt: skip


def _quantised() -> ModelProto:
    node = helper.make_node
    scale = numpy_helper.from_array(np.array(0.05, np.float32), "scale")
    zero = numpy_helper.from_array(np.array(128, np.uint8), "zero")
    return _model(
        [node("QuantizeLinear", ["x", "scale", "zero"], ["q"]),
         node("DequantizeLinear", ["q", "scale", "zero"], ["d"]),
         node("DequantizeLinear", ["w8", "ws"], ["w"]), node("MatMul", ["d", "w"], ["m"]),
         node("Gelu", ["m"], ["y"], domain="com.microsoft")],
        [_value("x", F, ["N", 8])], [_value("y", F, ["N", 4])],
        [scale, zero, numpy_helper.from_array(np.arange(32, dtype=np.int8).reshape(8, 4), "w8"),
         numpy_helper.from_array(np.array(0.02, np.float32), "ws")],
        domains=[("com.microsoft", 1)],
    )  # fmt: skip


def _shapes() -> ModelProto:
    node = helper.make_node
    return _model(
        [node("Shape", ["x"], ["s"]), node("Gather", ["s", "i0"], ["n"]),
         node("Concat", ["n", "rest"], ["to"], axis=0), node("Reshape", ["x", "to"], ["r"]),
         node("Shape", ["r"], ["full"]),
         node("ConstantOfShape", ["full"], ["z"]), node("Add", ["r", "z"], ["a"]),
         node("TopK", ["a", "k"], ["y", "idx"], axis=-1),
         node("Slice", ["a", "i0", "k"], ["cut"]), node("Tile", ["cut", "reps"], ["t"])],
        [_value("x", F, ["N", 4, "M"])],
        [_value("y", F, None), _value("idx", I64, None), _value("t", F, None)],
        [_ints("i0", 0), _ints("rest", 2, -1), _ints("k", 2), _ints("reps", 1, 2, 1)],
    )  # fmt: skip


def _sparse() -> ModelProto:
    node = helper.make_node
    model = _model(
        [node("MatMul", ["x", "s"], ["h"]), node("Clip", ["h", "", "top"], ["c"]),
         node("Einsum", ["c", "w"], ["y"], equation="bi,ij->bj")],
        [_value("x", TensorProto.FLOAT16, [2, 4])], [_value("y", TensorProto.FLOAT16, [2, 3])],
        [numpy_helper.from_array(np.array(3, np.float16), "top"),
         _weight("w", 4, 3, kind=np.float16)],
    )  # fmt: skip
    values = numpy_helper.from_array(np.array([1, 2, 3], np.float16), "s")
    model.graph.sparse_initializer.append(
        helper.make_sparse_tensor(values, _ints("s_at", 0, 5, 10), [4, 4])
    )
    return model


_BUILDERS: tuple[Callable[[], ModelProto], ...] = (
    _mlp, _external, _convnet, _encoder, _recurrent, _control_flow, _functions, _classical, _texts,
    _sequences, _quantised, _shapes, _sparse,
)  # fmt: skip


@cache
def model_bases() -> dict[str, tuple[bytes, bytes]]:
    """Return each model as the bytes of its file and those of its external data, by name."""
    found = {}
    for build in _BUILDERS:
        model = build()
        held = b"".join(tensor.raw_data for tensor in _mlp().graph.initializer)
        external = held if build is _external else b""
        found[build.__name__.lstrip("_")] = (model.SerializeToString(), external)
    return found
