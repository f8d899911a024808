"""Operators that ONNX Runtime's optimiser and quantiser write, and graphs inside of operators."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime as ort
import pytest
from onnx import TensorProto

from tests.models.axes.test_tracking import comes_out_as_alone, role_of
from tests.models.graphs import FLOAT, INT64, constant, model, node, value, weight

_OPSETS = {"": 17, "com.microsoft": 1}
_FLAT = (constant("flat", [0, -1]),)


def _own(op: str, inputs: list[str], outputs: list[str], **attributes: Any) -> onnx.NodeProto:
    return node(op, inputs, outputs, domain="com.microsoft", **attributes)


def _graph(
    nodes: list[onnx.NodeProto], shape: list[Any], *weights: onnx.TensorProto, opset: int = 17
) -> onnx.ModelProto:
    opsets = {**_OPSETS, "": opset}
    return model(nodes, [value("x", shape)], [value("y", None)], weights, opsets=opsets)


def _quantised(name: str, values: np.ndarray) -> onnx.TensorProto:
    return onnx.numpy_helper.from_array(values.astype(np.uint8), name)


_SCALE = (constant("s", 0.1, "float32"), _quantised("z", np.array(100)))
_BYTES = node("QuantizeLinear", ["x", "s", "z"], ["q"])
_BACK = node("DequantizeLinear", ["r", "s", "z"], ["y"])


def _body(
    nodes: list[onnx.NodeProto], inputs: dict[str, int], outputs: dict[str, int]
) -> onnx.GraphProto:
    declared, taken = (
        [value(name, None if kind == FLOAT else [], kind) for name, kind in found.items()]
        for found in (outputs, inputs)
    )
    return onnx.helper.make_graph(nodes, "body", taken, declared)


_GOES_ON = {"i": INT64, "c": TensorProto.BOOL}
_RECURRENCE = _body(
    [
        node("Gather", ["steps", "i"], ["now"], axis=0),
        node("Add", ["now", "h"], ["sum"]),
        node("Tanh", ["sum"], ["next"]),
        node("Identity", ["c"], ["more"]),
        node("Identity", ["next"], ["out"]),
    ],
    {**_GOES_ON, "h": FLOAT},
    {"more": TensorProto.BOOL, "next": FLOAT, "out": FLOAT},
)
_GROWING = _body(
    [node("Concat", ["h", "x"], ["next"], axis=1), node("Identity", ["c"], ["more"])],
    {**_GOES_ON, "h": FLOAT},
    {"more": TensorProto.BOOL, "next": FLOAT},
)
_SUMMED = _body(
    [
        node("ReduceSum", ["h", "zero"], ["all"], keepdims=1),
        node("Add", ["h", "all"], ["next"]),
        node("Identity", ["c"], ["more"]),
    ],
    {**_GOES_ON, "h": FLOAT},
    {"more": TensorProto.BOOL, "next": FLOAT},
)
_STEP = _body(
    [node("Add", ["h", "now"], ["sum"]), node("Tanh", ["sum"], ["next"]),
     node("Identity", ["next"], ["out"])],
    {"h": FLOAT, "now": FLOAT},
    {"next": FLOAT, "out": FLOAT},
)  # fmt: skip
_EACH = _body([node("Tanh", ["now"], ["out"])], {"now": FLOAT}, {"out": FLOAT})
_TURNS = (constant("turns", 3), constant("yes", True, "bool"), constant("zero", [0]))

#: Graphs over ``x`` whose first axis is a batch.
APART = {
    "fused convolution": _graph(
        [_own("FusedConv", ["x", "w"], ["c"], activation="Relu", pads=[1] * 4),
         node("GlobalAveragePool", ["c"], ["y"])],
        ["N", 3, "H", "W"], weight("w", 4, 3, 3, 3)),
    "norm with a shortcut": _graph(
        [_own("SkipLayerNormalization", ["x", "x", "g"], ["y"])], ["N", "T", 8], weight("g", 8)),
    "fused attention": _graph(
        [_own("Attention", ["x", "w", "b"], ["y"], num_heads=2)],
        ["N", "T", 8], weight("w", 8, 24), weight("b", 24)),
    "weights of four bits": _graph(
        [_own("MatMulNBits", ["x", "w", "scales"], ["y"], K=32, N=4, bits=4, block_size=32)],
        ["N", 32], _quantised("w", np.full((4, 1, 16), 7)), weight("scales", 4)),
    "dynamic quantisation": _graph(
        [node("DynamicQuantizeLinear", ["x"], ["q", "sx", "zx"]),
         node("MatMulInteger", ["q", "w", "zx"], ["m"]), node("Cast", ["m"], ["f"], to=FLOAT),
         node("Mul", ["f", "sx"], ["t"]), node("Sign", ["t"], ["y"])],
        ["N", 4], _quantised("w", np.arange(12).reshape(4, 3))),
    "quantised product": _graph(
        [_BYTES, _own("QGemm", ["q", "s", "z", "w", "s", "z", "", "s", "z"], ["r"]), _BACK],
        ["N", 4], *_SCALE, _quantised("w", np.arange(12).reshape(4, 3))),
    "quantised parts": _graph(
        [_BYTES, _own("QLinearConcat", ["s", "z", "q", "s", "z", "q", "s", "z"], ["r"], axis=1),
         _BACK],
        ["N", 4], *_SCALE),
    "quantised pools": _graph(
        [_BYTES, _own("QLinearAveragePool", ["q", "s", "z", "s", "z"], ["p"],
                      kernel_shape=[2, 2], strides=[2, 2]),
         _own("QLinearGlobalAveragePool", ["p", "s", "z", "s", "z"], ["r"]), _BACK],
        ["N", 3, "H", "W"], *_SCALE),
    "quantised softmax": _graph(
        [_BYTES, _own("QLinearSoftmax", ["q", "s", "z", "s", "z"], ["r"], axis=-1, opset=13),
         _BACK],
        ["N", 4], *_SCALE),
    "softmax with a bias": _graph(
        [_own("BiasSoftmax", ["x", "b"], ["y"], axis=1, is_inner_broadcast=0)],
        ["N", 4], weight("b", 1, 4)),
    "a product with its quantisation": _graph(
        [_own("DynamicQuantizeMatMul", ["x", "w", "s", "z"], ["m"]), node("Sign", ["m"], ["y"])],
        ["N", 4], *_SCALE, _quantised("w", np.arange(12).reshape(4, 3))),
    "a bias of positions": _graph(
        [node("Shape", ["x"], ["shape"]), node("Gather", ["shape", "one"], ["t"], axis=0),
         _own("RelativePositionBias", ["table", "t", "t"], ["bias"], max_distance=8),
         node("Unsqueeze", ["x", "places"], ["u"]), node("Add", ["u", "bias"], ["y"])],
        ["N", "T"], weight("table", 8, 2), constant("one", 1), constant("places", [1, 2])),
    "steps of a loop": _graph(
        [node("Transpose", ["x"], ["steps"], perm=[1, 0, 2]),
         node("Gather", ["steps", "zero0"], ["first"], axis=0),
         node("Loop", ["turns", "yes", "first"], ["last", "all"], body=_RECURRENCE),
         node("Transpose", ["all"], ["y"], perm=[1, 0, 2])],
        ["N", "T", 4], *_TURNS, constant("zero0", 0)),
    "a loop that grows": _graph(
        [node("Loop", ["turns", "yes", "x"], ["y"], body=_GROWING)], ["N", 4], *_TURNS),
    "steps of a scan": _graph(
        [node("ReduceMax", ["x"], ["first"], axes=[1], keepdims=0),
         node("Scan", ["first", "x"], ["last", "y"], body=_STEP, num_scan_inputs=1,
              scan_input_axes=[1], scan_output_axes=[1])],
        ["N", "T", 4]),
    "each row by itself": _graph(
        [node("Scan", ["x"], ["y"], body=_EACH, num_scan_inputs=1)], ["N", 4]),
    "an axis that is left out if it is 1": _graph(
        [node("Shape", ["x"], ["shape"]), node("Gather", ["shape", "one"], ["d"], axis=0),
         node("Equal", ["d", "one"], ["c"]),
         node("If", ["c"], ["y"],
              then_branch=_body([node("Squeeze", ["x", "places"], ["t"])], {}, {"t": FLOAT}),
              else_branch=_body([node("Identity", ["x"], ["e"])], {}, {"e": FLOAT}))],
        ["N", 1, 4], constant("one", 1), constant("places", [1])),
}  # fmt: skip

#: Graphs that mix along the first axis of ``x``.
MIXED = {
    "a sum over rows in a loop": _graph(
        [node("Loop", ["turns", "yes", "x"], ["y"], body=_SUMMED)], ["N", 4], *_TURNS),
    "rows as steps": _graph(
        [node("Scan", ["first", "x"], ["last", "y"], body=_STEP, num_scan_inputs=1)],
        ["N", 4], weight("first", 4)),
    "softmax over rows": _graph(
        [_own("BiasSoftmax", ["x", "b"], ["y"], axis=0, is_inner_broadcast=0)],
        ["N", 4], weight("b", 1, 4)),
    "parts of a batch": _graph(
        [_BYTES, _own("QLinearConcat", ["s", "z", "q", "s", "z", "q", "s", "z"], ["r"], axis=0),
         _BACK],
        ["N", 4], *_SCALE),
}  # fmt: skip


@pytest.mark.parametrize("name", APART)
def test_what_treats_rows_apart_has_a_batch(name: str) -> None:
    assert role_of(APART[name]).role == "batch"


@pytest.mark.parametrize("name", MIXED)
def test_what_mixes_rows_has_none(name: str) -> None:
    assert role_of(MIXED[name]).role == "mixed"


#: What the CPU has no kernel for.
_ELSEWHERE = frozenset({"BiasSoftmax", "RelativePositionBias"})
_RUN = [
    name
    for name, proto in (APART | MIXED).items()
    if _ELSEWHERE.isdisjoint(item.op_type for item in proto.graph.node)
]


@pytest.mark.live
@pytest.mark.parametrize("name", _RUN)
def test_what_is_said_is_what_runs_show(name: str, tmp_path: Path) -> None:
    proto = APART.get(name) or MIXED[name]
    assert comes_out_as_alone(proto, tmp_path) == (name in APART)


@pytest.mark.parametrize("op", ["EPContext", "PackedAttention", "RemovePadding"])
def test_what_is_opaque_is_no_evidence(op: str) -> None:
    assert role_of(_graph([_own(op, ["x"], ["y"])], ["N", 4])).role == "unknown"


def test_rows_of_a_cache_belong_to_those_of_the_query() -> None:
    names = ["x", "k", "v", "pk", "pv", "lengths", "total"]
    attention = _own("GroupQueryAttention", names, ["y", "nk", "nv"], num_heads=2, kv_num_heads=2)
    cache = ["P", 2, "past", 8]
    proto = model(
        [attention],
        [
            *(value(name, ["N", "T", 16]) for name in ("x", "k", "v")),
            *(value(name, cache) for name in ("pk", "pv")),
            value("lengths", ["L"], TensorProto.INT32),
            value("total", [], TensorProto.INT32),
        ],
        [value(name, None) for name in ("y", "nk", "nv")],
        opsets=_OPSETS,
    )
    assert role_of(proto).role == "batch"
    assert role_of(proto, "pk").tied_to == "N"
    assert role_of(proto, "lengths").tied_to == "N"


@pytest.mark.live
def test_a_graph_in_blocks_of_channels_keeps_its_batch(tmp_path: Path) -> None:
    """As ONNX Runtime writes it at its highest level for CPUs with wide registers."""
    proto = model(
        [
            node("Conv", ["x", "w"], ["c"], pads=[1, 1, 1, 1]),
            node("Relu", ["c"], ["r"]),
            node("MaxPool", ["r"], ["p"], kernel_shape=[2, 2], strides=[2, 2]),
            node("Conv", ["p", "v"], ["d"]),
            node("GlobalAveragePool", ["d"], ["g"]),
            node("Flatten", ["g"], ["y"]),
        ],
        [value("x", ["N", 3, "H", "W"])],
        [value("y", None)],
        [weight("w", 16, 3, 3, 3), weight("v", 32, 16, 1, 1)],
    )
    options = ort.SessionOptions()
    options.log_severity_level = 4
    options.optimized_model_filepath = str(tmp_path / "all.onnx")
    ort.InferenceSession(proto.SerializeToString(), options, providers=["CPUExecutionProvider"])
    written = onnx.load(tmp_path / "all.onnx")
    assert any(item.domain.startswith("com.microsoft") for item in written.graph.node)
    assert role_of(written).role == "batch"
