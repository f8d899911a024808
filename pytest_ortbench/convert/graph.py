"""Models as the tools need them: with types of all values, weights by name, and written back."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_ortbench.core.units import counted

if TYPE_CHECKING:
    import onnx
    from numpy.typing import NDArray

#: A model of more bytes is written with external data; one protobuf file can't hold 2 GiB.
INLINE_LIMIT = 3 << 29

#: The last element type that every version of the format has: bfloat16.
_OLD_TYPES = 16

#: The first IR version in which weights need not be inputs, and inputs that are weights may change.
_OVERRIDABLE_SINCE = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """What a tool made, not yet checked.

    Attributes:
        before: Number of elements by element type in the weights of what it was made from.
        facts: What came out.
        notes: What a reader should know.
    """

    before: dict[int, int]
    facts: dict[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


def load_typed(path: Path) -> tuple[onnx.ModelProto, tuple[str, ...]]:
    """Read a model with its weights and the types of its values.

    Types are inferred before external weights are loaded, so that models of any size can be read,
    and nothing is written beside the file.

    Returns:
        The model, and notes: why types could not be inferred.
    """
    import onnx
    from onnx.external_data_helper import load_external_data_for_model

    model = onnx.load(str(path), load_external_data=False)
    notes: tuple[str, ...] = ()
    try:
        model = onnx.shape_inference.infer_shapes(model)
    except Exception as error:  # noqa: BLE001 - onnx raises its own errors and protobuf's
        notes = (f"types were not inferred ({type(error).__name__}): casts may be missing",)
    load_external_data_for_model(model, str(path.parent))
    return model, notes


def graphs_within(graph: onnx.GraphProto) -> Iterator[onnx.GraphProto]:
    """Yield a graph and every graph inside it."""
    yield graph
    for node in graph.node:
        for attribute in node.attribute:
            if attribute.HasField("g"):
                yield from graphs_within(attribute.g)
            for inner in attribute.graphs:
                yield from graphs_within(inner)


def count_types(model: onnx.ModelProto) -> dict[int, int]:
    """Number of elements by element type in initialisers and constants; nothing is loaded."""
    counts: dict[int, int] = {}
    for graph in graphs_within(model.graph):
        tensors = [*graph.initializer]
        for node in graph.node:
            tensors += [a.t for a in node.attribute if a.HasField("t")]
        for tensor in tensors:
            size = math.prod(tensor.dims)
            counts[tensor.data_type] = counts.get(tensor.data_type, 0) + size
    return counts


def constants_to_initialisers(model: onnx.ModelProto) -> None:
    """Turn constant nodes that hold a tensor into initialisers of the same name, in all graphs."""
    for graph in graphs_within(model.graph):
        kept = []
        for node in graph.node:
            values = [a.t for a in node.attribute if a.name == "value" and a.HasField("t")]
            if node.op_type == "Constant" and values:
                tensor = graph.initializer.add()
                tensor.CopyFrom(values[0])
                tensor.name = node.output[0]
            else:
                kept.append(node)
        if len(kept) != len(graph.node):
            copies = [_copy(node) for node in kept]
            del graph.node[:]
            graph.node.extend(copies)


def _copy(node: onnx.NodeProto) -> onnx.NodeProto:
    import onnx

    copied = onnx.NodeProto()
    copied.CopyFrom(node)
    return copied


def values_of(tensor: onnx.TensorProto) -> NDArray[Any]:
    """The values of a loaded float tensor, flat, without a copy where they lie in one piece."""
    import numpy as np
    from onnx import TensorProto, numpy_helper

    if tensor.raw_data and tensor.data_type == TensorProto.FLOAT:
        return np.frombuffer(tensor.raw_data, dtype="<f4")
    values: NDArray[Any] = numpy_helper.to_array(tensor).reshape(-1)
    return values


def save_model(model: onnx.ModelProto, target: Path) -> None:
    """Write a model, with its weights in a file beside it where it is large."""
    import onnx

    order_nodes(model.graph)
    total = sum(
        len(tensor.raw_data) for graph in graphs_within(model.graph) for tensor in graph.initializer
    )
    if total < INLINE_LIMIT:
        onnx.save(model, str(target))
        return
    onnx.save(
        model,
        str(target),
        save_as_external_data=True,
        all_tensors_to_one_file=True,
        location=f"{target.name}.data",
        size_threshold=1024,
    )


def order_nodes(graph: onnx.GraphProto) -> None:
    """Put every node behind those that it reads from, keeping the order where it is free.

    The tools append casts at the end; ONNX wants them in order.
    """
    made_by = {name: index for index, node in enumerate(graph.node) for name in node.output if name}
    order: list[int] = []
    state = [0] * len(graph.node)  # 0: not seen, 1: waits for what it reads, 2: placed
    for start in range(len(graph.node)):
        stack = [start]
        while stack:
            index = stack[-1]
            if state[index] == 2:
                stack.pop()
                continue
            state[index] = 1
            needed = {made_by[name] for name in _read_by(graph.node[index]) if name in made_by} - {
                index
            }
            waiting = [other for other in needed if state[other] == 0]
            if waiting:
                stack += sorted(waiting, reverse=True)
            else:
                state[index] = 2
                order.append(index)
                stack.pop()
    if order != sorted(order):
        nodes = [_copy(graph.node[index]) for index in order]
        del graph.node[:]
        graph.node.extend(nodes)


def _read_by(node: onnx.NodeProto) -> Iterator[str]:
    """Names that a node reads, those of the graphs inside it included."""
    yield from node.input
    for attribute in node.attribute:
        inner = [attribute.g] if attribute.HasField("g") else []
        for graph in [*inner, *attribute.graphs]:
            for part in graph.node:
                yield from _read_by(part)
            yield from (value.name for value in graph.output)


def clean_of_weight_inputs(source: Path, target: Path) -> tuple[str, ...]:
    """Write a model whose weights are no inputs, which the tools take for constants.

    Args:
        source: A model.
        target: Where it goes; nothing is written if no weight is an input.

    Returns:
        A note on weights that could be overridden: before IR version 4 none can, though all of
        them are inputs.
    """
    import onnx
    from onnx.external_data_helper import load_external_data_for_model

    model = onnx.load(str(source), load_external_data=False)
    weights = {tensor.name for tensor in model.graph.initializer}
    weights |= {sparse.values.name for sparse in model.graph.sparse_initializer}
    fed = [value for value in model.graph.input if value.name not in weights]
    count = len(model.graph.input) - len(fed)
    if not count:
        return ()
    note = f"{counted(count, 'weight')} taken out of the inputs, so that ONNX Runtime can fold them"
    notes = (note,) if model.ir_version >= _OVERRIDABLE_SINCE else ()
    load_external_data_for_model(model, str(source.parent))
    del model.graph.input[:]
    model.graph.input.extend(fed)
    model.ir_version = max(model.ir_version, _OVERRIDABLE_SINCE)
    save_model(model, target)
    return notes


def keep_versions(source: Path, target: Path) -> tuple[str, ...]:
    """Take operator sets out that no node of a variant uses, and keep the source's IR version.

    The tools write down every operator set that the installed ONNX Runtime knows, whether a node
    uses it or not, and an older runtime refuses such a file.

    Args:
        source: What the variant was made of.
        target: The variant; it is written again where something changes.

    Returns:
        Notes: operator sets that the variant needs and that are newer than the source's.
    """
    import onnx

    original = onnx.load(str(source), load_external_data=False)
    made = onnx.load(str(target), load_external_data=False)
    before = _imports(original)
    nodes = [node for graph in graphs_within(made.graph) for node in graph.node]
    nodes += [node for function in made.functions for node in function.node]
    used = {_domain(user.domain) for user in (*nodes, *made.functions)}
    kept = [
        onnx.helper.make_opsetid(entry.domain, entry.version)
        for entry in made.opset_import
        if _domain(entry.domain) in used or _domain(entry.domain) in before
    ]
    tensors = [tensor for graph in graphs_within(made.graph) for tensor in graph.initializer]
    ir_version = made.ir_version
    if all(tensor.data_type <= _OLD_TYPES for tensor in tensors):
        ir_version = min(ir_version, max(original.ir_version, _OVERRIDABLE_SINCE))
    if len(kept) != len(made.opset_import) or ir_version != made.ir_version:
        del made.opset_import[:]
        made.opset_import.extend(kept)
        made.ir_version = ir_version
        onnx.save(made, str(target))
    return tuple(
        f"made at operator set {version} of {domain or 'ai.onnx'}, which it needs: the file has "
        f"{before[domain]}"
        for domain, version in _imports(made).items()
        if version > before.get(domain, version)
    )


def _imports(model: onnx.ModelProto) -> dict[str, int]:
    return {_domain(entry.domain): entry.version for entry in model.opset_import}


def _domain(name: str) -> str:
    return "" if name == "ai.onnx" else name
