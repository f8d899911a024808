"""Writes an ONNX graph node by node, with the same bytes under every version of ``onnx``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from fractions import Fraction
from typing import BinaryIO, TypeAlias

import numpy as np
from numpy.typing import NDArray
from onnx import (
    AttributeProto,
    GraphProto,
    ModelProto,
    NodeProto,
    TensorProto,
    ValueInfoProto,
)

from pytest_ortbench.core.element_types import ELEMENT_TYPES
from pytest_ortbench.models.builders.weights import Draws, DrawScale, scale_for, scaled

#: Operator set, ai.onnx.ml set and IR version: all that ONNX Runtime 1.15 reads, and what
#: conversion tools know best. The first that has LayerNormalization is 17.
OPSET = 17
ML_OPSET = 3
IR_VERSION = 8

ML_DOMAIN = "ai.onnx.ml"

#: ONNX Runtime's own operators, of which there is one set.
CONTRIB_DOMAIN = "com.microsoft"
_DOMAIN_OPSETS = {ML_DOMAIN: ML_OPSET, CONTRIB_DOMAIN: 1}

#: Ends the name of every tensor that is the output of a block of a network.
BLOCK_OUTPUT = "/out"

#: Starts the name of every initialiser that is no trainable parameter.
CONSTANT_PREFIX = "constant/"

#: Weights of at least so many bytes lie beside the model, where one has such a file.
_PAGE = 4096

Shape: TypeAlias = Sequence[int | str]
Attribute: TypeAlias = (
    int | float | str | Sequence[int] | Sequence[float] | Sequence[str] | GraphProto
)


class WeightsFile:
    """A file beside a model that holds its large weights, each from a page of its own.

    Args:
        stream: Where they go.
        location: Name of the file as it stands in the model.
    """

    def __init__(self, stream: BinaryIO, location: str) -> None:
        self._stream = stream
        self._location = location
        self._end = 0

    def hold(self, tensor: TensorProto, values: NDArray[np.generic]) -> None:
        """Write the values of a tensor, and say in the tensor where they are."""
        gap = -self._end % _PAGE
        self._stream.write(bytes(gap))
        self._stream.write(values.data)
        tensor.data_location = TensorProto.EXTERNAL
        for key, value in (
            ("location", self._location),
            ("offset", str(self._end + gap)),
            ("length", str(values.nbytes)),
        ):
            tensor.external_data.add(key=key, value=value)
        self._end += gap + values.nbytes


class GraphWriter:
    """One graph in the making. Nodes must be added in the order in which they run.

    Protobufs are filled here field by field rather than by ``onnx.helper``, whose choices of
    optional fields follow its version.

    Args:
        name: Of the graph; together with the version it is the seed of the weights.
        version: Of the builder, recorded as the model's version.
        beside: Takes the large weights; ``None`` to have all in the model file.
    """

    def __init__(self, name: str, *, version: int, beside: WeightsFile | None = None) -> None:
        self._beside = beside
        self._draws = Draws(f"{name}-v{version}")
        self._model = ModelProto(ir_version=IR_VERSION, producer_name="pytest-ortbench")
        self._model.model_version = version
        self._model.opset_import.add(domain="", version=OPSET)
        self._graph: GraphProto = self._model.graph
        self._graph.name = name
        self._scope = ""
        self._constants: dict[tuple[str, tuple[int, ...], bytes], str] = {}

    @contextmanager
    def scope(self, name: str) -> Iterator[None]:
        """Prefix the names made inside by ``name/``; scopes nest."""
        outer = self._scope
        self._scope = f"{outer}{name}/"
        try:
            yield
        finally:
            self._scope = outer

    def input(self, name: str, element: str, shape: Shape) -> str:
        """Declare a graph input.

        Args:
            name: Of the input.
            element: ``float``, ``int64`` or ``bool``.
            shape: Sizes and symbols.
        """
        _declare(self._graph.input.add(), name, element, shape)
        return name

    def output(self, name: str, element: str, shape: Shape) -> str:
        """Declare a tensor that some node makes as a graph output."""
        _declare(self._graph.output.add(), name, element, shape)
        return name

    def node(
        self,
        op_type: str,
        *inputs: str,
        out: str = "",
        whole_name: str = "",
        domain: str = "",
        **attributes: Attribute,
    ) -> str:
        """Add a node with one output and return that tensor's name.

        Args:
            op_type: Operator.
            inputs: Tensor names; empty for an optional input that is left out.
            out: Name of the output within the scope; by default it is numbered.
            whole_name: Name of the output without the scope (graph outputs).
            domain: Operator domain, empty, ``ML_DOMAIN`` or ``CONTRIB_DOMAIN``.
            attributes: By name; ``int``, ``float``, ``str``, sequences of one of these, or a graph.
        """
        label = f"{self._scope}{op_type}.{len(self._graph.node)}"
        result = whole_name or (f"{self._scope}{out}" if out else label)
        self._add(op_type, label, inputs, (result,), domain=domain, attributes=attributes)
        return result

    def nodes(
        self,
        op_type: str,
        *inputs: str,
        names: Sequence[str],
        whole_names: Sequence[str] = (),
        domain: str = "",
        **attributes: Attribute,
    ) -> tuple[str, ...]:
        """Add a node with several outputs and return the names of these tensors.

        Args:
            op_type: Operator.
            inputs: As for ``node``.
            names: Of the first outputs within the scope; an empty name leaves that output out.
            whole_names: Of the outputs after these, without the scope (graph outputs); likewise.
            domain: As for ``node``.
            attributes: As for ``node``.
        """
        label = f"{self._scope}{op_type}.{len(self._graph.node)}"
        scoped = (f"{self._scope}{name}" if name else "" for name in names)
        results = (*scoped, *whole_names)
        self._add(op_type, label, inputs, results, domain=domain, attributes=attributes)
        return results

    def parameter(self, name: str, values: NDArray[np.float32]) -> str:
        """Add a trainable parameter, or a running statistic, named within the scope."""
        full = f"{self._scope}{name}"
        self._initialise(full, TensorProto.FLOAT, values.astype("<f4", copy=False))
        return full

    def table(self, name: str, values: NDArray[np.float32]) -> str:
        """Add a table of numbers that is no parameter, called ``name`` whatever the scope."""
        self._initialise(name, TensorProto.FLOAT, values.astype("<f4", copy=False))
        return name

    def drawn(self, name: str, shape: tuple[int, ...], variance: Fraction) -> str:
        """Add a parameter of draws with mean 0.

        Args:
            name: Within the scope; together with the seed it chooses the values.
            shape: Of the parameter.
            variance: Of its elements.
        """
        return self.parameter(name, scaled(self.draws(name, shape), scale_for(variance)))

    def near(
        self,
        name: str,
        size: int,
        centre: float,
        *,
        shift: NDArray[np.float32] | None = None,
    ) -> str:
        """Add a vector of draws around a value, within 1/16 of it: biases and gains.

        Args:
            name: Within the scope.
            size: Length of the vector.
            centre: Middle of its elements.
            shift: Added to them.
        """
        values = scaled(self.draws(name, (size,)), DrawScale(1, 19)) + np.float32(centre)
        return self.parameter(name, values if shift is None else values + shift)

    def draws(self, name: str, shape: tuple[int, ...]) -> NDArray[np.int32]:
        """Integers for a parameter of that name within the scope; see ``Draws.integers``."""
        return self._draws.integers(f"{self._scope}{name}", shape)

    def choices(self, name: str, shape: tuple[int, ...], count: int) -> NDArray[np.int64]:
        """Integers from 0 up to ``count`` - 1 for a parameter; see ``Draws.choices``."""
        return self._draws.choices(f"{self._scope}{name}", shape, count)

    def integers(self, *values: int) -> str:
        """A constant int64 vector; equal ones are shared."""
        return self._constant("integers", np.array(values, dtype="<i8"), TensorProto.INT64)

    def integer(self, value: int) -> str:
        """A constant int64 of rank 0."""
        return self._constant("integer", np.array(value, dtype="<i8"), TensorProto.INT64)

    def number(self, value: float) -> str:
        """A constant float of rank 0."""
        return self._constant("number", np.array(value, dtype="<f4"), TensorProto.FLOAT)

    def numbers(self, values: Sequence[float]) -> str:
        """A constant float vector."""
        return self._constant("numbers", np.array(values, dtype="<f4"), TensorProto.FLOAT)

    def serialise(self) -> bytes:
        """The model file, byte for byte the same everywhere."""
        return bytes(self._model.SerializeToString(deterministic=True))

    def _constant(self, kind: str, values: NDArray[np.generic], element: int) -> str:
        key = (kind, values.shape, values.tobytes())
        if key not in self._constants:
            name = f"{CONSTANT_PREFIX}{kind}.{len(self._constants)}"
            self._initialise(name, element, values)
            self._constants[key] = name
        return self._constants[key]

    def _initialise(self, name: str, element: int, values: NDArray[np.generic]) -> None:
        tensor = self._graph.initializer.add()
        if self._beside is None or values.nbytes < _PAGE:
            _fill_tensor(tensor, name, element, values)
            return
        _describe_tensor(tensor, name, element, values.shape)
        self._beside.hold(tensor, np.ascontiguousarray(values))

    def _add(
        self,
        op_type: str,
        label: str,
        inputs: Sequence[str],
        outputs: Sequence[str],
        *,
        domain: str,
        attributes: dict[str, Attribute],
    ) -> None:
        node: NodeProto = self._graph.node.add()
        node.op_type = op_type
        node.name = label
        node.input.extend(inputs)
        node.output.extend(outputs)
        if domain:
            node.domain = domain
            if all(entry.domain != domain for entry in self._model.opset_import):
                self._model.opset_import.add(domain=domain, version=_DOMAIN_OPSETS[domain])
        for name in sorted(attributes):
            _fill(node.attribute.add(), name, attributes[name])


def constants_graph(name: str, tables: Mapping[str, NDArray[np.float32]]) -> GraphProto:
    """Return a graph without inputs whose outputs are constants: a branch of an ``If``.

    Args:
        name: Of the graph.
        tables: The values of its outputs, by their names.
    """
    graph = GraphProto(name=name)
    for table, values in tables.items():
        node = graph.node.add(op_type="Constant", name=f"{name}/{table}")
        node.output.append(table)
        attribute = node.attribute.add(name="value", type=AttributeProto.TENSOR)
        _fill_tensor(attribute.t, "", TensorProto.FLOAT, values.astype("<f4", copy=False))
        _declare(graph.output.add(), table, "float", values.shape)
    return graph


def _fill_tensor(tensor: TensorProto, name: str, element: int, values: NDArray[np.generic]) -> None:
    _describe_tensor(tensor, name, element, values.shape)
    tensor.raw_data = values.tobytes()


def _describe_tensor(tensor: TensorProto, name: str, element: int, shape: tuple[int, ...]) -> None:
    tensor.dims.extend(shape)
    tensor.data_type = element
    if name:
        tensor.name = name


def _declare(info: ValueInfoProto, name: str, element: str, shape: Shape) -> None:
    info.name = name
    tensor = info.type.tensor_type
    tensor.elem_type = ELEMENT_TYPES[element].number
    tensor.shape.SetInParent()  # rank 0 is a shape too
    for size in shape:
        axis = tensor.shape.dim.add()
        if isinstance(size, str):
            axis.dim_param = size
        else:
            axis.dim_value = size


def _fill(attribute: AttributeProto, name: str, value: Attribute) -> None:
    attribute.name = name
    if isinstance(value, GraphProto):
        attribute.type = AttributeProto.GRAPH
        attribute.g.CopyFrom(value)
    elif isinstance(value, str):
        attribute.type, attribute.s = AttributeProto.STRING, value.encode()
    elif isinstance(value, int):
        attribute.type, attribute.i = AttributeProto.INT, value
    elif isinstance(value, float):
        attribute.type, attribute.f = AttributeProto.FLOAT, value
    elif isinstance(value[0], str):
        attribute.type = AttributeProto.STRINGS
        attribute.strings.extend(str(item).encode() for item in value)
    elif isinstance(value[0], int):
        attribute.type = AttributeProto.INTS
        attribute.ints.extend(int(item) for item in value)
    else:
        attribute.type = AttributeProto.FLOATS
        attribute.floats.extend(float(item) for item in value)
