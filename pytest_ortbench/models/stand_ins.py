"""Operators of ONNX in place of those of ``com.microsoft`` whose results have the same shape.

ONNX's shape inference knows nothing of the latter, and everything behind one would be of unknown
shape. Only shapes are asked of the changed model, so it need not compute the same.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import onnx

_DOMAIN = "com.microsoft"

#: Operators of ONNX Runtime that exporters write without a domain.
_NAMELESS = frozenset({"SimplifiedLayerNormalization"})

#: Operators whose last result is the sum of their first two inputs, before it is normalised.
_WITH_SUM = frozenset({"SkipLayerNormalization", "SkipSimplifiedLayerNormalization"})

#: Which of the results that sum is.
_SUM = 3

#: Operator set from which ``Split`` is told into how many parts.
_COUNTED_SPLIT = 18

#: No model has more heads; a file may state any number.
_HEADS = 4096

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
    nodes = proto.graph.node
    for index in reversed(range(len(nodes))):
        node = nodes[index]
        ours = node.domain == _DOMAIN or (not node.domain and node.op_type in _NAMELESS)
        if not ours or not node.input or not node.output:
            continue
        if node.op_type == "GroupQueryAttention" and _is_packed(node):
            nodes.insert(index + 1, _first_heads(proto, node))
        elif node.op_type in _LIKE_FIRST:
            if node.op_type in _WITH_SUM and len(node.output) > _SUM:
                nodes.insert(index + 1, _same(node.input[0], node.output[_SUM]))
            _replace(node, "Identity", (0,))
            node.ClearField("attribute")
        elif node.op_type == "MatMulNBits":
            _packed_product(proto, node)
        elif node.op_type in _OTHERS:
            _replace(node, *_OTHERS[node.op_type])


def _same(source: str, target: str) -> onnx.NodeProto:
    import onnx

    return onnx.NodeProto(op_type="Identity", input=[source], output=[target])


def _is_packed(node: onnx.NodeProto) -> bool:
    """Whether queries, keys and values are in one input."""
    counts = {attribute.name: attribute.i for attribute in node.attribute}
    heads = (counts.get("num_heads", 0), counts.get("kv_num_heads", 0))
    return (len(node.input) < 2 or not node.input[1]) and min(heads) > 0 and max(heads) <= _HEADS


def _first_heads(proto: onnx.ModelProto, node: onnx.NodeProto) -> onnx.NodeProto:
    """Split the node's input into its heads, and return what joins those of the queries again."""
    import onnx
    from onnx import helper

    counts = {attribute.name: attribute.i for attribute in node.attribute}
    heads, target = counts["num_heads"], node.output[0]
    _replace(node, "Split", (0,))
    node.ClearField("attribute")
    parts = heads + 2 * counts["kv_num_heads"]
    del node.output[:]
    node.output.extend(f"{target}::head{part}" for part in range(parts))
    node.attribute.append(helper.make_attribute("axis", -1))
    versions = [entry.version for entry in proto.opset_import if entry.domain in ("", "ai.onnx")]
    if max(versions, default=1) >= _COUNTED_SPLIT:
        node.attribute.append(helper.make_attribute("num_outputs", parts))
    joined = onnx.NodeProto(op_type="Concat", input=node.output[:heads], output=[target])
    joined.attribute.append(helper.make_attribute("axis", -1))
    return joined


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
