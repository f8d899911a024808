"""What a conversion really changed: weights by type, and nodes that still compute in float."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_ortbench.convert.graph import count_types, graphs_within
from pytest_ortbench.core.recipe import Recipe

if TYPE_CHECKING:
    import onnx

#: Operators whose weights quantisation is for.
_WITH_WEIGHTS = frozenset(
    {"Conv", "ConvTranspose", "MatMul", "Gemm", "LSTM", "GRU", "RNN", "Attention"}
)
#: Operators that only carry a value on.
_CARRIERS = frozenset({"Cast", "Constant", "Identity", "QuantizeLinear", "DequantizeLinear"})

#: A file of which less than this share of the weights changed is still what it was.
_LEAST = 0.05

#: A graph with fewer weights is judged by its nodes: half precision is for activations too.
_FEW = 100

#: Operator types that are named before the rest is counted.
_NAMED = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Changed:
    """The difference that a conversion made.

    Attributes:
        weights: Number of weights (or of nodes, where there are hardly any) that changed.
        facts: What to show in the recipe.
        reason: Why none changed, where none did.
    """

    weights: int
    facts: dict[str, str] = field(default_factory=dict)
    reason: str = ""


def changed(before: dict[int, int], target: Path, recipe: Recipe, source: Path) -> Changed:
    """Compare a converted model with what it was made from.

    Args:
        before: Weights by element type of what it was made from, as the tool got it.
        target: The converted model.
        recipe: What it was to become.
        source: The file that it was made from, for the reason why nothing changed: a tool's own
            preparation folds and fuses, so its counts differ from tool to tool.
    """
    import onnx

    base = recipe.base
    model = onnx.load(str(target), load_external_data=False)
    float32, narrow = onnx.TensorProto.FLOAT, (onnx.TensorProto.FLOAT16, onnx.TensorProto.BFLOAT16)
    after = count_types(model)
    if base == "fp32":
        had = sum(before.get(kind, 0) for kind in narrow)
        weights = had - sum(after.get(kind, 0) for kind in narrow)
    else:
        had = before.get(float32, 0)
        weights = had - after.get(float32, 0)
    left = Counter(_left_in_float(model, base))
    if base in ("fp16", "bf16") and had < _FEW:
        return _by_nodes(model, left, base)
    if weights <= 0:
        return Changed(weights=0, reason=_reason(source, had, recipe))
    share = weights / had
    if share < _LEAST:
        return Changed(
            weights=0,
            reason=f"{100 * share:.2g} % of the weights are too few; left in float: "
            f"{_counted(left)}",
        )
    facts = {"weights": f"{100 * share:.1f} % of {had} values in {base}"}
    if base != "fp32":
        facts["nodes_in_float"] = _counted(left)
    return Changed(weights=weights, facts=facts)


def _by_nodes(model: onnx.ModelProto, left: Counter[str], base: str) -> Changed:
    """What half precision changed in a graph with hardly any weights: the rest of its nodes."""
    computing = Counter(
        node.op_type
        for graph in graphs_within(model.graph)
        for node in graph.node
        if node.op_type not in _CARRIERS
    )
    total = sum(computing.values())
    half = total - sum(left.values())
    if half <= 0:
        names = ", ".join(f"{count} {op}" for op, count in computing.most_common(4))
        return Changed(weights=0, reason=f"no node supports {base} ({names})")
    facts = {"nodes": f"{half} of {total} in {base}", "nodes_in_float": _counted(left)}
    return Changed(weights=half, facts=facts)


def with_weights(model: onnx.ModelProto) -> Counter[str]:
    """Count the operators that quantisation is for, by type, those in inner graphs included."""
    return Counter(
        node.op_type
        for graph in graphs_within(model.graph)
        for node in graph.node
        if node.op_type in _WITH_WEIGHTS
    )


def _reason(source: Path, had: int, recipe: Recipe) -> str:
    import onnx

    base = recipe.base
    if not had:
        return "the model has no such weights"
    model = onnx.load(str(source), load_external_data=False)
    weighted = with_weights(model)
    if not weighted:
        names = Counter(node.op_type for graph in graphs_within(model.graph) for node in graph.node)
        return f"the model has no operator with weights ({_counted(names)})"
    ops = _listed(weighted)
    if recipe.op_types and not weighted.keys() & set(recipe.op_types):
        return (
            f"the recipe's op_types ({', '.join(recipe.op_types)}) match none of the model's "
            f"operators with weights: {ops}"
        )
    if base == "bf16":
        return no_bfloat16(model)
    if base == "int4":
        return (
            "only a MatMul with constant weights can be converted, and the model's operators with "
            f"weights are {ops}"
        )
    if base == "int8-static" and not any(node.op_type in weighted for node in model.graph.node):
        return (
            "all operators with weights stand in branches of If or bodies of loops, which "
            f"ONNX Runtime's static quantiser skips: {ops}"
        )
    return f"none of the model's operators with weights can be converted: {ops}"


def no_bfloat16(model: onnx.ModelProto) -> str:
    """Say that no operator with weights takes bfloat16 at the model's operator set."""
    versions = {entry.domain or "ai.onnx": entry.version for entry in model.opset_import}
    weighted = with_weights(model)
    return (
        f"no operator with weights in this model ({_listed(weighted)}) supports bfloat16 in opset "
        f"{versions.get('ai.onnx', 1)}"
    )


def _left_in_float(model: onnx.ModelProto, base: str) -> Iterable[str]:
    """Operator types of the nodes that still compute in float32."""
    if base in ("fp16", "bf16"):
        return _reading_float32(model)
    return [
        node.op_type
        for graph in graphs_within(model.graph)
        for node in graph.node
        if node.op_type in _WITH_WEIGHTS and not _reads_quantised(node, graph)
    ]


def _reads_quantised(node: onnx.NodeProto, graph: onnx.GraphProto) -> bool:
    """Whether both operands come out of DequantizeLinear, so that a kernel can take integers."""
    sources = {name for n in graph.node if n.op_type == "DequantizeLinear" for name in n.output}
    return all(name in sources for name in list(node.input)[:2])


def _reading_float32(model: onnx.ModelProto) -> list[str]:
    """Nodes with a float32 operand, by the types that inference finds; casts are no computation."""
    import onnx

    try:
        model = onnx.shape_inference.infer_shapes(model)
    except Exception:  # noqa: BLE001 - onnx raises its own errors and protobuf's
        return []
    readers = []
    for graph in graphs_within(model.graph):
        wide = {tensor.name for tensor in graph.initializer if tensor.data_type == 1}
        for value in (*graph.input, *graph.value_info, *graph.output):
            if value.type.tensor_type.elem_type == onnx.TensorProto.FLOAT:
                wide.add(value.name)
        readers += [
            node.op_type
            for node in graph.node
            if node.op_type not in _CARRIERS
            and (wide.intersection(node.output) or _first_is_wide(node, wide))
        ]
    return readers


def _first_is_wide(node: onnx.NodeProto, wide: set[str]) -> bool:
    # Scales of Resize and the like are float32 by definition; the first operand is the data.
    return bool(node.input) and node.input[0] in wide


def _counted(names: Counter[str]) -> str:
    """``3 (2 Softmax, 1 Resize)``, or ``0``."""
    return f"{sum(names.values())} ({_listed(names)})" if names else "0"


def _listed(names: Counter[str]) -> str:
    """``2 Softmax, 1 Resize``."""
    shown = [f"{count} {name}" for name, count in names.most_common(_NAMED)]
    rest = len(names) - len(shown)
    if rest > 0:
        shown.append(f"{rest} more types")
    return ", ".join(shown)
