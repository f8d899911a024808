"""Operators of ONNX in place of those of ``com.microsoft`` whose results have the same shape.

ONNX's shape inference knows nothing of the latter, and everything behind one would be of unknown
shape. Only shapes are asked of the changed model, so it need not compute the same.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import onnx

_DOMAIN = "com.microsoft"

#: Operators whose first result has the shape of their first input.
_LIKE_FIRST = frozenset(
    {
        *("BiasAdd", "BiasGelu", "BiasSoftmax", "FastGelu", "Gelu"),
        *("GroupQueryAttention", "MultiHeadAttention", "QLinearLeakyRelu", "QLinearSigmoid"),
        *("QLinearSoftmax", "QuickGelu", "RotaryEmbedding", "SkipGroupNorm"),
        *("SimplifiedLayerNormalization", "SkipLayerNormalization"),
        "SkipSimplifiedLayerNormalization",
    }
)
#: Others: what stands in for them, and which of their inputs it has.
_OTHERS: dict[str, tuple[str, tuple[int, ...]]] = {
    "DequantizeLinear": ("DequantizeLinear", (0, 1, 2)),
    "DynamicQuantizeMatMul": ("MatMul", (0, 1)),
    "FusedConv": ("Conv", (0, 1)),
    "FusedGemm": ("Gemm", (0, 1)),
    "MatMulIntegerToFloat": ("MatMul", (0, 1)),
    "QLinearAdd": ("Add", (0, 3)),
    "QLinearMul": ("Mul", (0, 3)),
    "QuantizeLinear": ("QuantizeLinear", (0, 1, 2)),
}


def put_stand_ins(proto: onnx.ModelProto) -> None:
    """Replace what has a stand-in; the main graph of ``proto`` is changed."""
    for node in proto.graph.node:
        if node.domain != _DOMAIN or not node.input or not node.output:
            continue
        if node.op_type in _LIKE_FIRST:
            _replace(node, "Identity", (0,))
            node.ClearField("attribute")
        elif node.op_type == "MatMulNBits":
            _packed_product(proto, node)
        elif node.op_type in _OTHERS:
            _replace(node, *_OTHERS[node.op_type])


def _replace(node: onnx.NodeProto, op: str, indices: tuple[int, ...]) -> None:
    if len(node.input) <= max(indices):
        return
    inputs = [node.input[index] for index in indices]
    node.op_type, node.domain = op, ""
    del node.input[:]
    node.input.extend(inputs)
    del node.output[1:]
    ours = [
        attribute for attribute in node.attribute if not attribute.name.startswith("activation")
    ]
    del node.attribute[:]
    node.attribute.extend(ours)


def _packed_product(proto: onnx.ModelProto, node: onnx.NodeProto) -> None:
    """A product with weights whose sizes stand in attributes: ``[…, K]`` times ``[K, N]``."""
    import onnx

    sizes = {attribute.name: attribute.i for attribute in node.attribute}
    if "K" not in sizes or "N" not in sizes:
        return
    name = f"{node.output[0]}::unpacked"
    weight = onnx.TensorProto(name=name, data_type=onnx.TensorProto.FLOAT)
    weight.dims.extend([sizes["K"], sizes["N"]])
    proto.graph.initializer.append(weight)
    _replace(node, "MatMul", (0,))
    node.input.append(name)
    node.ClearField("attribute")
