"""Which input of a cache goes on in which output, by what the graph does with it.

Names may say anything: an operator that reads keys of earlier tokens and gives those of all, or
what is appended to an input and given out, is a cache for certain.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

from pytest_ortbench.models.attention import GROUPED, SPARSE
from pytest_ortbench.models.inspection import op_name

if TYPE_CHECKING:
    import onnx

#: Where operators read a cache and give it back, by operator: places of inputs and of outputs.
_KEEPS_CACHE: dict[str, tuple[tuple[int, int], ...]] = {
    GROUPED: ((3, 1), (4, 2)),
    SPARSE: ((3, 1), (4, 2)),
    "com.microsoft::MultiHeadAttention": ((6, 1), (7, 2)),
    "com.microsoft::DecoderMaskedMultiHeadAttention": ((5, 1), (6, 2)),
    "com.microsoft::Attention": ((4, 1),),
    "Attention": ((4, 1), (5, 2)),
}
#: Operators behind which a cache is still itself.
_SAME = frozenset({"Identity", "Cast"})
#: Axes of a tensor of keys or values.
_RANKS = (3, 4, 5)
_REAL = (1, 10, 11, 16)  # float, float16, double, bfloat16


def flowing_pairs(proto: onnx.ModelProto) -> tuple[tuple[str, str], ...]:
    """Return the inputs of a cache, each with the output that goes on with it.

    An input that goes on in several outputs, or an output that comes of several inputs, is none.

    Args:
        proto: The model. Content of its weights is not needed.
    """
    graph = proto.graph
    nodes = list(graph.node)
    origins = _renamed(nodes)
    inputs = {value.name for value in graph.input if _is_keys(value)}
    results = {_origin(value.name, origins): value.name for value in graph.output}
    pairs = [
        (_origin(before, origins), results[after])
        for node in nodes
        for before, after in _kept(node)
        if after in results and _origin(before, origins) in inputs
    ]
    return tuple(
        pair
        for pair in pairs
        if [past for past, _ in pairs].count(pair[0]) == 1
        and [present for _, present in pairs].count(pair[1]) == 1
    )


def _is_keys(value: onnx.ValueInfoProto) -> bool:
    kind = value.type.tensor_type
    return kind.elem_type in _REAL and len(kind.shape.dim) in _RANKS


def _renamed(nodes: Iterable[onnx.NodeProto]) -> dict[str, str]:
    """By names of values those that they are copies of."""
    return {
        node.output[0]: node.input[0]
        for node in nodes
        if op_name(node) in _SAME and node.input and node.output
    }


def _origin(name: str, origins: Mapping[str, str]) -> str:
    seen = {name}
    while name in origins and origins[name] not in seen:
        name = origins[name]
        seen.add(name)
    return name


def _kept(node: onnx.NodeProto) -> Iterator[tuple[str, str]]:
    """Yield each value of a node that holds earlier tokens, with what holds all of them."""
    if node.op_type == "Concat" and len(node.input) == 2:
        yield node.input[0], node.output[0]
    for place, given in _KEEPS_CACHE.get(op_name(node), ()):
        before = node.input[place] if place < len(node.input) else ""
        after = node.output[given] if given < len(node.output) else ""
        if before and after:
            yield before, after
