"""Writer of small ONNX models, without the onnx package: the measured interpreter has none.

Field numbers are those of onnx.proto; the encoding is protobuf's.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pytest_ortbench.core.element_types import ELEMENT_TYPES

if TYPE_CHECKING:
    from numpy.typing import NDArray

#: An old one, which every runtime that we support knows.
_IR_VERSION = 6


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """One node of the default domain, without attributes."""

    op: str
    inputs: Sequence[str]
    output: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Value:
    """An input or output: its element type in ONNX Runtime's spelling (``float``), its shape."""

    name: str
    element: str
    shape: Sequence[int]


def write_model(
    nodes: Iterable[Node],
    inputs: Iterable[Value],
    outputs: Iterable[Value],
    weights: dict[str, tuple[str, NDArray[Any]]],
    *,
    opset: int,
) -> bytes:
    """Return a serialised model.

    Args:
        nodes: In the order in which they run.
        inputs: Of the graph.
        outputs: Of the graph.
        weights: Element type and values of each constant, by name.
        opset: Version of the default operator set.
    """
    graph = b"".join(
        (
            *(_message(1, _node(node)) for node in nodes),
            _text(2, "g"),
            *(_message(5, _tensor(name, *weight)) for name, weight in weights.items()),
            *(_message(11, _value(value)) for value in inputs),
            *(_message(12, _value(value)) for value in outputs),
        )
    )
    return _number(1, _IR_VERSION) + _message(7, graph) + _message(8, _number(2, opset))


def _node(node: Node) -> bytes:
    inputs = b"".join(_text(1, name) for name in node.inputs)
    return inputs + _text(2, node.output) + _text(3, node.output) + _text(4, node.op)


def _tensor(name: str, element: str, values: NDArray[Any]) -> bytes:
    dims = b"".join(_number(1, size) for size in values.shape)
    kind = _number(2, ELEMENT_TYPES[element].number)
    return dims + kind + _text(8, name) + _message(9, values.tobytes())


def _value(value: Value) -> bytes:
    dims = b"".join(_message(1, _number(1, size)) for size in value.shape)
    tensor = _number(1, ELEMENT_TYPES[value.element].number) + _message(2, dims)
    return _text(1, value.name) + _message(2, _message(1, tensor))


def _text(field: int, text: str) -> bytes:
    return _message(field, text.encode())


def _message(field: int, content: bytes) -> bytes:
    return _varint(field << 3 | 2) + _varint(len(content)) + content


def _number(field: int, number: int) -> bytes:
    return _varint(field << 3) + _varint(number)


def _varint(number: int) -> bytes:
    parts = bytearray()
    while number > 0x7F:
        parts.append(number & 0x7F | 0x80)
        number >>= 7
    parts.append(number)
    return bytes(parts)
