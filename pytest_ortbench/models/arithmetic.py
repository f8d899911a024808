"""What a model file has to do in one run: multiply-accumulates, bytes, parameters, by node.

Shapes come from ONNX's own inference at the given sizes, the counts from
:mod:`pytest_ortbench.core.arithmetic`. A node whose operator or shapes are not known is listed as
uncounted. What depends on values (branches, loops) is not guessed either; an operator profile sees
it run.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_ortbench.core.arithmetic import (
    CONTROL_FLOW,
    ModelWork,
    NodeWork,
    Shape,
    einsum_products,
    element_count,
    is_counted,
    moved_bytes,
    multiply_accumulates,
    tensor_bytes,
)
from pytest_ortbench.core.element_types import ELEMENT_NAMES
from pytest_ortbench.core.errors import class_and_line
from pytest_ortbench.models.dataflow import drop_weights
from pytest_ortbench.models.inspection import (
    RANDOM_OPS,
    op_name,
    packed_parameters,
    parameter_count,
    without_functions,
)
from pytest_ortbench.models.model_file import read_model_file
from pytest_ortbench.models.shape_inference import value_shape
from pytest_ortbench.models.shape_values import inferred_types

if TYPE_CHECKING:
    import onnx

#: Domains whose operators' names stand for the same arithmetic as in the table.
_KNOWN_DOMAINS = frozenset(
    {"", "ai.onnx", "com.microsoft", "com.microsoft.nchwc", "com.ms.internal.nhwc"}
)
#: Quantisers stand for the form in which a value travels: an integer kernel reads and writes that.
_DEQUANTISERS = frozenset({"DequantizeLinear"})
_QUANTISERS = frozenset({"QuantizeLinear"})


def count_file(path: Path, sizes: Mapping[str, Sequence[int]]) -> ModelWork:
    """Count what one run of a model file has to do.

    Args:
        path: The file. External data is not read.
        sizes: Shape of each input, by name; one that is missing keeps what the file declares.

    Returns:
        What each node does; with a reason, and nothing else, if shape inference fails.

    Raises:
        ModelError: if the file can't be read.
    """
    return count_proto(read_model_file(path).proto, sizes)


def count_proto(proto: onnx.ModelProto, sizes: Mapping[str, Sequence[int]]) -> ModelWork:
    """Count what one run of a parsed model has to do, see :func:`count_file`.

    Args:
        proto: The model. It is changed: large weights are dropped, sizes are written in.
        sizes: Shape of each input, by name.

    Returns:
        As of :func:`count_file`; a graph that breaks the rules of ONNX is counted as far as its
        weights.
    """
    parameters = parameter_count(proto)
    try:
        return _counted(proto, sizes, parameters)
    except Exception as error:  # noqa: BLE001 - a file can break the rules of ONNX in any place
        return ModelWork(
            parameters=parameters, reason=f"the graph can't be followed: {class_and_line(error)}"
        )


def _counted(
    proto: onnx.ModelProto, sizes: Mapping[str, Sequence[int]], parameters: int
) -> ModelWork:
    drop_weights(proto)
    proto = without_functions(proto)
    values = _declared(proto, _set_sizes(proto, sizes))
    types = inferred_types(proto)
    if types is None:
        return ModelWork(parameters=parameters, reason="ONNX's shape inference fails on this model")
    for name, info in types.items():
        found = _value(info)
        if found.shape is not None:
            values[name] = found
    counting = _Counting(proto, values)
    nodes = tuple(counting.nodes())
    return ModelWork(
        nodes=nodes,
        weight_bytes=sum(counting.weights[name].bytes for name in counting.read),
        parameters=parameters,
        uncounted=dict(sorted(Counter(node.op for node in nodes if node.macs is None).items())),
    )


@dataclass(frozen=True, slots=True)
class _Value:
    """A tensor: type of an element (empty if unknown) and shape (``None`` if not known)."""

    element: str = ""
    shape: Shape | None = None

    @property
    def bytes(self) -> int | None:
        return None if self.shape is None else tensor_bytes(self.element, self.shape)


@dataclass(frozen=True, slots=True)
class _Weight:
    """What stands behind a constant.

    Attributes:
        bytes: Stored bytes.
        parameters: Elements.
        stored: The constants of the file that it is made of.
    """

    bytes: int = 0
    parameters: int = 0
    stored: frozenset[str] = frozenset()


@dataclass(slots=True)
class _Counting:
    """One walk over the main graph, in its order.

    Attributes:
        proto: The model.
        values: What is known of each value, by name.
        weights: Constants, and values computed of constants only, by name.
        read: Constants of the file that nodes read.
    """

    proto: onnx.ModelProto
    values: dict[str, _Value]
    weights: dict[str, _Weight] = field(default_factory=dict)
    read: set[str] = field(default_factory=set)
    _quantised: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        graph = self.proto.graph
        for tensor in graph.initializer:
            self._add_constant(tensor.name, tensor)
        for sparse in graph.sparse_initializer:
            name = sparse.values.name
            parts = (sparse.values, sparse.indices)
            stored = [tensor_bytes(_element(part), part.dims) or 0 for part in parts]
            self.values[name] = _Value(_element(sparse.values), tuple(sparse.dims))
            self.weights[name] = _Weight(
                sum(stored), element_count(sparse.values.dims) or 0, frozenset({name})
            )
        for node in graph.node:  # what is only quantised travels in its quantised form
            if node.op_type in _QUANTISERS and node.input[0] not in self._quantised:
                self._quantised[node.input[0]] = node.output[0]
        for node in graph.node:
            if node.op_type not in _QUANTISERS:
                for name in node.input:
                    self._quantised.pop(name, None)
        for value in graph.output:
            self._quantised.pop(value.name, None)

    def nodes(self) -> Iterator[NodeWork]:
        """Yield what each node does; constants and what follows from them alone do nothing."""
        for node in self.proto.graph.node:
            if not self._fold(node):
                yield self._node(node)

    def _fold(self, node: onnx.NodeProto) -> bool:
        """Whether ONNX Runtime computes the node once, when it loads the model."""
        if node.op_type == "Constant":
            for attribute in node.attribute:
                if attribute.HasField("t"):
                    self._add_constant(node.output[0], attribute.t)
            self.weights.setdefault(node.output[0], _Weight())
            return True
        inputs = [name for name in node.input if name]
        if not inputs or op_name(node) in RANDOM_OPS or node.op_type in CONTROL_FLOW:
            return False
        if not all(name in self.weights for name in inputs):
            return False
        stored = frozenset().union(*(self.weights[name].stored for name in inputs))
        behind = [self.weights[name] for name in stored]
        for name in node.output:
            self.weights[name] = _Weight(
                sum(each.bytes for each in behind),
                sum(each.parameters for each in behind),
                stored,
            )
        return True

    def _node(self, node: onnx.NodeProto) -> NodeWork:
        constants = [name for name in node.input if name in self.weights]
        for name in constants:
            self.read |= self.weights[name].stored
        stored = {name: self.weights[name].parameters for name in constants}
        weight_bytes, activation_bytes = self._moved(node)
        macs, reason = self._macs(node)
        return NodeWork(
            name=node.name or next((name for name in node.output if name), ""),
            op=op_name(node),
            macs=macs,
            weight_bytes=weight_bytes,
            activation_bytes=activation_bytes,
            parameters=sum(stored.values()) + packed_parameters(node, stored),
            reason=reason,
        )

    def _macs(self, node: onnx.NodeProto) -> tuple[int | None, str]:
        """Multiply-accumulates, or why they are not known."""
        if node.op_type in CONTROL_FLOW and not node.domain:
            return None, "which of its nodes run, and how often, is decided by values"
        if node.domain not in _KNOWN_DOMAINS:
            return None, "no rule for this operator"
        inputs = self._shapes(node.input)
        outputs = self._shapes(node.output)
        if node.op_type == "Einsum":
            whole = len(inputs) == len(node.input)
            macs = einsum_products(_text(node, "equation"), inputs) if whole else None
        elif is_counted(node.op_type):
            macs = multiply_accumulates(node.op_type, inputs, outputs)
        else:
            return None, "no rule for this operator"
        return macs, "" if macs is not None else "shapes are not known, or of a form without a rule"

    def _shapes(self, names: Sequence[str]) -> list[Shape]:
        """Shapes in order, up to the first that is missing or not known."""
        found: list[Shape] = []
        for name in names:
            shape = self.values[name].shape if name in self.values else None
            if shape is None:
                break
            found.append(shape)
        return found

    def _moved(self, node: onnx.NodeProto) -> tuple[int, int | None]:
        """Bytes of constants that the node reads, and of activations that it reads and writes."""
        if node.op_type in _DEQUANTISERS:
            # Who reads the result reads, in an integer kernel, what it was made of.
            source = self.values.get(node.input[0], _Value())
            shape = self.values.get(node.output[0], source).shape
            self.values[node.output[0]] = _Value(source.element, shape)
        if node.op_type in _DEQUANTISERS or node.op_type in _QUANTISERS:
            return 0, 0
        if node.op_type in CONTROL_FLOW:
            return 0, None
        names = [name for name in node.input if name]
        sizes = [self._bytes(name) for name in names]
        outputs = [self._bytes(name) for name in node.output if name]
        read, written = moved_bytes(
            node.op_type, [size or 0 for size in sizes], [size or 0 for size in outputs]
        )
        constant = sum(size for name, size in zip(names, read, strict=True) if name in self.weights)
        if None in sizes or None in outputs:
            return constant, None
        return constant, sum(read) - constant + written

    def _bytes(self, name: str) -> int | None:
        if name in self.weights:
            return self.weights[name].bytes
        value = self.values.get(self._quantised.get(name, name))
        return None if value is None else value.bytes

    def _add_constant(self, name: str, tensor: onnx.TensorProto) -> None:
        value = _Value(_element(tensor), tuple(tensor.dims))
        self.values[name] = value
        self.weights[name] = _Weight(
            value.bytes or 0, element_count(tensor.dims) or 0, frozenset({name})
        )


def _set_sizes(proto: onnx.ModelProto, sizes: Mapping[str, Sequence[int]]) -> dict[str, int]:
    """Write sizes into the inputs; return what they say of each symbol."""
    symbols: dict[str, int] = {}
    for value in proto.graph.input:
        wanted = sizes.get(value.name)
        if wanted is None or not value.type.HasField("tensor_type"):
            continue
        shape = value.type.tensor_type.shape
        for dimension, size in zip(shape.dim, wanted, strict=False):
            if dimension.dim_param:
                symbols.setdefault(dimension.dim_param, size)
        shape.ClearField("dim")
        for size in wanted:
            shape.dim.add().dim_value = size
    return symbols


def _declared(proto: onnx.ModelProto, symbols: Mapping[str, int]) -> dict[str, _Value]:
    """Take the types that the file states of values other than inputs out of it.

    They may be of other sizes than those asked for, so inference must not start from them; where it
    knows nothing (an operator of another domain) they are better than nothing.
    """
    graph = proto.graph
    stated = {value.name: _value(value, symbols) for value in (*graph.value_info, *graph.output)}
    del graph.value_info[:]
    for value in graph.output:
        if value.type.HasField("tensor_type"):
            value.type.tensor_type.ClearField("shape")
    return {name: value for name, value in stated.items() if value.shape is not None}


def _value(value: onnx.ValueInfoProto, symbols: Mapping[str, int] | None = None) -> _Value:
    element = ELEMENT_NAMES.get(value.type.tensor_type.elem_type, "")
    shape: list[int] = []
    for size in value_shape(value) or ():
        known = (symbols or {}).get(size) if isinstance(size, str) else size
        if known is None:
            return _Value(element)
        shape.append(known)
    return _Value(element, tuple(shape) if value_shape(value) is not None else None)


def _element(tensor: onnx.TensorProto) -> str:
    return ELEMENT_NAMES.get(tensor.data_type, "")


def _text(node: onnx.NodeProto, name: str) -> str:
    found = (attribute.s for attribute in node.attribute if attribute.name == name)
    return next(found, b"").decode(errors="replace")
