"""Where an input's values go: through operators that keep values, and into subgraphs.

The question is always "which operators finally read what is fed here, and as what?", so that a
hint can say which values the graph accepts. A value is followed through operators that move or
copy it (Reshape, Slice, Concat, …), through additions and multiplications with constants (the
offset is remembered), into branches, loop bodies and the model's own functions, and out of them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING

from pytest_ortbench.core.element_types import ELEMENT_NAMES
from pytest_ortbench.core.model import TensorInfo
from pytest_ortbench.models.inspection import (
    all_graphs,
    all_nodes,
    op_name,
    subgraphs,
)
from pytest_ortbench.models.shape_inference import Shape, inferred_shapes, value_shape
from pytest_ortbench.models.symbols import free_symbols, named_shapes

if TYPE_CHECKING:
    import numpy as np
    import onnx

#: Weights with more elements than this are never looked at, and dropped before shape inference.
_SMALL = 1024

#: Element types whose values are whole numbers.
_INTEGERS = frozenset(
    {"int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "int4", "uint4"}
)

#: Inputs whose values come out again unchanged; ``None``: all of them.
_KEEPS_VALUES: dict[str, tuple[int, ...] | None] = {
    **dict.fromkeys(
        (
            "Identity", "Cast", "CastLike", "Reshape", "Flatten", "Squeeze", "Unsqueeze",
            "Transpose", "Slice", "Gather", "GatherElements", "GatherND", "Split",
            "SplitToSequence", "Expand", "Tile", "Pad", "Dropout", "Compress", "ReverseSequence",
            "Optional", "OptionalGetElement", "SequenceAt", "ConcatFromSequence", "Clip", "TopK",
            "Unique", "ReduceMax", "ReduceMin", "MaxPool", "Trilu", "CenterCropPad",
        ),
        (0,),
    ),
    "Concat": None,
    "SequenceConstruct": None,
    "SequenceInsert": (0, 1),
    "Where": (1, 2),
    "Max": None,
    "Min": None,
    "Scatter": (0, 2),
    "ScatterElements": (0, 2),
    "ScatterND": (0, 2),
}  # fmt: skip
#: Of those, the ones that also keep every element at its place.
_KEEPS_SHAPE = frozenset({"Identity", "Cast", "CastLike", "Dropout", "Clip", "Optional"})
#: Of those, the ones after which the tensor still holds all elements in their order.
_KEEPS_ORDER = _KEEPS_SHAPE | {"Reshape", "Flatten", "Squeeze", "Unsqueeze"}
#: Casts and negations between a comparison and what it chooses.
_DEEPEST = 6
_ALL_OUTPUTS = frozenset({"Split", "SplitToSequence"})


_Makers = Mapping[str, "onnx.NodeProto"]
_Constant = Callable[[str], "np.ndarray | None"]


@dataclass(slots=True, kw_only=True, eq=False)
class Scope:
    """A graph or function body: who reads which value, and what is constant in it."""

    outputs: tuple[str, ...]
    outer: Scope | None = None
    node: onnx.NodeProto | None = None
    readers: dict[str, list[tuple[onnx.NodeProto, int]]] = field(default_factory=dict)
    makers: dict[str, onnx.NodeProto] = field(default_factory=dict)
    captures: dict[str, list[Scope]] = field(default_factory=dict)
    constants: dict[str, onnx.TensorProto] = field(default_factory=dict)
    shapes: dict[str, Shape] = field(default_factory=dict)
    inner: dict[int, list[tuple[str, Scope, tuple[str, ...]]]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Use:
    """One operator that finally reads what was fed.

    Attributes:
        node: The operator.
        index: Which of its inputs.
        scope: Where it stands.
        scale: What it reads is ``scale · fed + offset``.
        offset: See ``scale``.
        whole: Whether it reads all elements in their order, not a part of them.
        axes: For each axis that it sees, the axis of the input; ``None`` where that is lost.
        element: Element type that it reads (``int64``), empty if unknown.
    """

    node: onnx.NodeProto
    index: int
    scope: Scope
    scale: float = 1.0
    offset: float = 0.0
    whole: bool = True
    axes: tuple[int, ...] | None = None
    element: str = ""

    @property
    def op(self) -> str:
        """``OpType``, or ``domain::OpType`` outside the default domain."""
        return op_name(self.node)

    @property
    def reads_integers(self) -> bool:
        """Whether its elements are known to be whole numbers."""
        return self.element in _INTEGERS


@dataclass(frozen=True, slots=True)
class _FlowingValue:
    name: str
    scope: Scope
    scale: float = 1.0
    offset: float = 0.0
    whole: bool = True
    axes: tuple[int, ...] | None = None
    element: str = ""


class Dataflow:
    """A model's graph, ready to be asked where values go, what is constant, and how large it is.

    Args:
        proto: The model. Weights of more than 1,024 elements are dropped from it.
        inputs: Its inputs as they will be known. Their dimensions, with a name for each unset one,
            are written into the model, so that shape inference carries the names on.
        walked: Axes of values that are as large as one of an input, by name, from a walk.
    """

    def __init__(
        self,
        proto: onnx.ModelProto,
        inputs: Sequence[TensorInfo],
        walked: Mapping[str, tuple[str | None, ...]] | None = None,
    ) -> None:
        drop_weights(proto)
        _name_dimensions(proto, inputs)
        self._proto = proto
        self._inferred: dict[str, Shape] | None = None
        self._symbols = frozenset(free_symbols(named_shapes(inputs)))
        self._walked = walked or {}
        self._functions = {(item.domain, item.name): item for item in proto.functions}
        self.main = self._graph_scope(proto.graph, None, None)

    def uses(
        self, name: str, rank: int | None, *, element: str = "", scope: Scope | None = None
    ) -> Iterator[Use]:
        """Yield every operator that finally reads a value.

        Args:
            name: The value.
            rank: Its number of axes, ``None`` if unknown.
            element: Its element type, empty if unknown.
            scope: Where it is known; the main graph by default.
        """
        axes = None if rank is None else tuple(range(rank))
        start = _FlowingValue(name, scope or self.main, axes=axes, element=element)
        pending, seen = [start], {start}
        while pending:
            value = pending.pop()
            for reached in self._step(value):
                if isinstance(reached, Use):
                    yield reached
                elif reached not in seen and len(seen) < 20_000:
                    seen.add(reached)
                    pending.append(reached)

    def constant(self, scope: Scope, name: str) -> np.ndarray | None:
        """Return a small constant as an array, ``None`` if it is none, large or external."""
        from onnx import TensorProto, numpy_helper

        found: Scope | None = scope
        while found is not None:
            tensor = found.constants.get(name)
            if tensor is not None:
                if math.prod(tensor.dims) > _SMALL or tensor.data_location == TensorProto.EXTERNAL:
                    return None
                try:
                    return numpy_helper.to_array(tensor)
                except (ValueError, TypeError, KeyError):
                    # Data that does not fit its own shape, or of a type that this version of the
                    # onnx package does not know: the runtime will say so.
                    return None
            if name in found.shapes:
                return None
            found = found.outer
        return None

    def shape(self, scope: Scope, name: str) -> Shape | None:
        """Return the shape of any value, as far as it is declared or can be inferred."""
        shape = self._told_shape(scope, name)
        walked = self._walked.get(name, ())
        if shape is None:
            return walked or None
        if len(shape) != len(walked):
            return shape
        # What inference calls by a name of its own is often an axis of an input.
        return tuple(
            size if isinstance(size, int) or size in self._symbols else at or size
            for size, at in zip(shape, walked, strict=True)
        )

    def _told_shape(self, scope: Scope, name: str) -> Shape | None:
        found: Scope | None = scope
        while found is not None:
            if name in found.shapes:
                return found.shapes[name]
            tensor = found.constants.get(name)
            if tensor is not None:
                return tuple(tensor.dims)
            found = found.outer
        if self._inferred is None:  # costs a process: only when something asks
            self._inferred = inferred_shapes(self._proto)
        return self._inferred.get(name)

    def _step(self, value: _FlowingValue) -> Iterator[Use | _FlowingValue]:
        scope = value.scope
        for node, index in scope.readers.get(value.name, ()):
            yield Use(
                node=node,
                index=index,
                scope=scope,
                scale=value.scale,
                offset=value.offset,
                whole=value.whole,
                axes=value.axes,
                element=value.element,
            )
            yield from self._through(value, node, index)
        for inner in scope.captures.get(value.name, ()):
            yield replace(value, scope=inner)
        if scope.outer is not None and scope.node is not None:
            for position, output in enumerate(scope.outputs):
                if output == value.name:
                    yield from _leave(value, scope.node, position, scope.outer)

    def _through(
        self, value: _FlowingValue, node: onnx.NodeProto, index: int
    ) -> Iterator[_FlowingValue]:
        for kind, inner, names in self._inner(value.scope, node):
            # A loop's trip count is not what its body sees as the iteration number.
            if (kind != "Loop" or index > 0) and index < len(names) and names[index]:
                yield replace(value, name=names[index], scope=inner)
        if value.element in _INTEGERS:
            taken = _branch_taken(
                node, index, value.scope.makers, partial(self.constant, value.scope)
            )
            if taken:
                yield replace(value, name=node.output[0])
            if taken is not None:
                return
        shifted = self._shifted(value, node, index)
        if shifted is not None:
            yield shifted
            return
        kept = _KEEPS_VALUES.get(op_name(node), ())
        if (kept is not None and index not in kept) or _cast_to(node) == "bool":
            return
        op = node.op_type
        axes = value.axes if op in _KEEPS_SHAPE else _transposed(value.axes, node)
        element = _cast_to(node) or value.element
        outputs = node.output if op in _ALL_OUTPUTS else node.output[:1]
        for output in outputs:
            whole = value.whole and op in _KEEPS_ORDER
            yield replace(value, name=output, whole=whole, axes=axes, element=element)

    def _shifted(
        self, value: _FlowingValue, node: onnx.NodeProto, index: int
    ) -> _FlowingValue | None:
        if node.op_type not in ("Add", "Sub", "Mul") or node.domain or len(node.input) != 2:
            return None
        other = self.constant(value.scope, node.input[1 - index])
        if other is None or other.size != 1 or other.dtype.kind not in "iuf":
            return None
        number = float(other.reshape(-1)[0])
        scale, offset = value.scale, value.offset
        if node.op_type == "Add":
            offset += number
        elif node.op_type == "Mul":
            scale, offset = scale * number, offset * number
        elif index == 0:
            offset -= number
        else:
            scale, offset = -scale, number - offset
        return replace(value, name=node.output[0], scale=scale, offset=offset)

    def _inner(
        self, scope: Scope, node: onnx.NodeProto
    ) -> list[tuple[str, Scope, tuple[str, ...]]]:
        """Bodies that a node's inputs enter by position: loops, scans and local functions."""
        if id(node) not in scope.inner:
            function = self._functions.get((node.domain, node.op_type))
            if function is not None and _depth(scope) < 8:
                body = self._function_scope(function, scope, node)
                scope.inner[id(node)] = [("function", body, tuple(function.input))]
        return scope.inner.get(id(node), [])

    def _graph_scope(
        self, graph: onnx.GraphProto, outer: Scope | None, node: onnx.NodeProto | None
    ) -> Scope:
        scope = Scope(outputs=tuple(output.name for output in graph.output), outer=outer, node=node)
        scope.constants = {tensor.name: tensor for tensor in graph.initializer}
        for value in (*graph.input, *graph.value_info, *graph.output):
            shape = value_shape(value) if value.name not in scope.constants else None
            if shape is not None:
                scope.shapes[value.name] = shape
        self._add_nodes(scope, graph.node)
        return scope

    def _function_scope(
        self, function: onnx.FunctionProto, outer: Scope, node: onnx.NodeProto
    ) -> Scope:
        scope = Scope(outputs=tuple(function.output), outer=outer, node=node)
        for formal, actual in zip(function.input, node.input, strict=False):
            if actual in outer.constants:
                scope.constants[formal] = outer.constants[actual]
                continue
            shape = self.shape(outer, actual)
            if shape is not None:
                scope.shapes[formal] = shape
        self._add_nodes(scope, function.node)
        return scope

    def _add_nodes(self, scope: Scope, nodes: object) -> None:
        for node in nodes:  # type: ignore[attr-defined]  # protobuf's repeated field
            if node.op_type == "Constant" and not node.domain:
                _add_constant(scope, node)
            scope.makers.update(dict.fromkeys(node.output, node))
            for index, name in enumerate(node.input):
                if name:
                    scope.readers.setdefault(name, []).append((node, index))
            for graph in subgraphs(node):
                inner = self._graph_scope(graph, scope, node)
                declared = tuple(item.name for item in graph.input)
                if node.op_type != "If":
                    scope.inner.setdefault(id(node), []).append((node.op_type, inner, declared))
                local = set(declared) | set(inner.constants)
                for name in {*inner.readers, *inner.captures, *inner.outputs} - local:
                    scope.captures.setdefault(name, []).append(inner)


def _branch_taken(
    node: onnx.NodeProto, index: int, makers: _Makers, constant: _Constant
) -> bool | None:
    """Return whether a node passes on what it reads, ``None`` if no sign decides that.

    Indices may count from the end: ``x < 0 ? x + size : x``, which some exporters write as
    ``(x < 0) * (x + size) + (x >= 0) * x``. What is fed is never below zero, so one branch is.
    """
    if node.op_type == "Where" and index in (1, 2):
        known = _truth(node.input[0], makers, constant)
        return None if known is None else known == (index == 1)
    if node.op_type not in ("Mul", "Add") or len(node.input) != 2:
        return None
    other = node.input[1 - index]
    if node.op_type == "Mul":
        return _truth(other, makers, constant)
    maker = makers.get(other)
    if maker is None or maker.op_type != "Mul":
        return None
    empty = any(_truth(name, makers, constant) is False for name in maker.input)
    return True if empty else None


def _truth(name: str, makers: _Makers, constant: _Constant) -> bool | None:
    """What a comparison of whole numbers that are not below zero with zero gives."""
    turned = False
    for _ in range(_DEEPEST):
        maker = makers.get(name)
        if maker is None:
            return None
        if maker.op_type in ("Less", "GreaterOrEqual"):
            limit = constant(maker.input[1])
            if limit is None or limit.size != 1 or limit.reshape(-1)[0] != 0:
                return None
            return (maker.op_type == "GreaterOrEqual") != turned
        if maker.op_type not in ("Not", "Cast", "Identity"):
            return None
        turned ^= maker.op_type == "Not"
        name = maker.input[0]
    return None


def _leave(
    value: _FlowingValue, node: onnx.NodeProto, position: int, outer: Scope
) -> Iterator[_FlowingValue]:
    """What a body gives out at ``position`` becomes an output of the node around it."""
    shift = 1 if node.op_type == "Loop" else 0  # a loop's first output is its condition
    if shift <= position < len(node.output) + shift:
        name = node.output[position - shift]
        yield replace(value, name=name, scope=outer, whole=False, axes=None)


def _cast_to(node: onnx.NodeProto) -> str:
    """Element type that a Cast makes, empty for other operators."""
    if node.op_type != "Cast":
        return ""
    to = next((attribute.i for attribute in node.attribute if attribute.name == "to"), 0)
    return ELEMENT_NAMES.get(to, "")


def _transposed(axes: tuple[int, ...] | None, node: onnx.NodeProto) -> tuple[int, ...] | None:
    if node.op_type != "Transpose" or axes is None:
        return None
    order = next((tuple(item.ints) for item in node.attribute if item.name == "perm"), None)
    order = tuple(reversed(range(len(axes)))) if order is None else order
    return tuple(axes[i] for i in order) if sorted(order) == list(range(len(axes))) else None


def _depth(scope: Scope) -> int:
    depth, outer = 0, scope.outer
    while outer is not None:
        depth, outer = depth + 1, outer.outer
    return depth


def _add_constant(scope: Scope, node: onnx.NodeProto) -> None:
    from onnx import helper

    for attribute in node.attribute:
        if attribute.HasField("t"):
            scope.constants[node.output[0]] = attribute.t
        elif attribute.name in ("value_int", "value_ints"):
            values = [attribute.i] if attribute.name == "value_int" else list(attribute.ints)
            dims = [] if attribute.name == "value_int" else [len(values)]
            scope.constants[node.output[0]] = helper.make_tensor("", 7, dims, values)
        elif attribute.name in ("value_float", "value_floats"):
            floats = [attribute.f] if attribute.name == "value_float" else list(attribute.floats)
            dims = [] if attribute.name == "value_float" else [len(floats)]
            scope.constants[node.output[0]] = helper.make_tensor("", 1, dims, floats)


def drop_weights(proto: onnx.ModelProto) -> None:
    """Drop the content of large weights; categories inside node attributes stay."""
    weights = [tensor for graph in all_graphs(proto) for tensor in graph.initializer]
    weights += [
        attribute.t
        for node in all_nodes(proto)
        if node.op_type == "Constant"
        for attribute in node.attribute
        if attribute.HasField("t")
    ]
    for tensor in weights:
        if math.prod(tensor.dims) > _SMALL:
            for name in ("raw_data", "float_data", "int32_data", "int64_data", "double_data"):
                tensor.ClearField(name)


def _name_dimensions(proto: onnx.ModelProto, inputs: Sequence[TensorInfo]) -> None:
    shapes = dict(zip((info.name for info in inputs), named_shapes(inputs), strict=True))
    for value in proto.graph.input:
        shape = shapes.get(value.name)
        if shape is None or not value.type.HasField("tensor_type"):
            continue
        for dimension, size in zip(value.type.tensor_type.shape.dim, shape, strict=True):
            if isinstance(size, str):
                dimension.dim_param = size
