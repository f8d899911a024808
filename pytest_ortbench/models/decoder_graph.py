"""What the graph of a decoder shows: shared buffers, the length of its tables, a causal order."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pytest_ortbench.models.attention import GROUPED, SPARSE, window_of
from pytest_ortbench.models.cache_pairs import CachePair
from pytest_ortbench.models.inspection import all_graphs, all_nodes, op_name, subgraphs

if TYPE_CHECKING:
    import onnx

#: Where operators read the cosines of positions, by operator.
_COSINES = {
    GROUPED: 7,
    SPARSE: 7,
    "com.microsoft::RotaryEmbedding": 2,
    "RotaryEmbedding": 1,
}
#: Where GroupQueryAttention reads the keys of its cache; their values follow.
_PAST = 3
#: Attributes that let a token see those before it alone.
_CAUSAL = {
    "com.microsoft::Attention": "unidirectional",
    "com.microsoft::MultiHeadAttention": "unidirectional",
    "Attention": "is_causal",
}
#: Operators that make positions of a text, each with the input that says how far they go.
_COUNTS = {"Range": 1, "CumSum": 0}
#: Which input of Slice says where it ends.
_END = 2
#: Operators behind which positions are still positions.
_KEEPS = frozenset({"Identity", "Cast", "Unsqueeze", "Squeeze", "Reshape", "Expand", "Slice"})
#: Likewise, where the other operand is stored.
_SHIFTS = frozenset({"Add", "Sub"})
#: Operators that hand a table on, perhaps a part of it.
_HANDS_ON = frozenset({"Identity", "Cast", "Slice", "Unsqueeze", "Squeeze"})
_DEEPEST = 6


@dataclass(frozen=True, slots=True, kw_only=True)
class DecoderGraph:
    """What a graph shows of how it reads text.

    Attributes:
        shares_buffers: Whether the whole cache goes straight into operators that may write the new
            keys and values into the buffer of the old ones.
        positions: The most positions that its tables hold, 0 where it has none.
        positions_from: The table, for people.
        is_causal: Whether an operator lets a token see those before it alone.
        flowing: Inputs of a cache with the outputs that go on with them, by what it does with them.
        windows: Tokens that are kept of an input of a cache, by name, where earlier ones go.
    """

    shares_buffers: bool = False
    positions: int = 0
    positions_from: str = ""
    is_causal: bool = False
    flowing: tuple[tuple[str, str], ...] = ()
    windows: Mapping[str, int] = field(default_factory=dict)


def decoder_graph(
    proto: onnx.ModelProto,
    pairs: Iterable[CachePair],
    flowing: tuple[tuple[str, str], ...] = (),
) -> DecoderGraph:
    """Look at a graph as that of a decoder.

    Args:
        proto: The model. Content of its weights is not needed.
        pairs: Its cache.
        flowing: What of a cache it hands on, see :func:`.cache_flow.flowing_pairs`.
    """
    nodes = list(all_nodes(proto))
    sizes, makers = _tables(proto, nodes), _makers(nodes)
    rows = {
        name: count
        for node in nodes
        for name in _cosines(node)
        if (count := _longest(name, sizes, makers, 0))
    }
    rows |= {
        node.input[0]: sizes[node.input[0]]
        for node in nodes
        if node.input and sizes.get(node.input[0]) and _takes_positions(node, sizes, makers)
    }
    table = min(rows, key=lambda name: rows[name], default="")
    return DecoderGraph(
        shares_buffers=_shares_buffers(proto, nodes, tuple(pairs)),
        positions=rows.get(table, 0),
        positions_from=f"rows of {table!r}" if table else "",
        is_causal=any(_is_causal(node) for node in nodes),
        flowing=flowing,
        windows={
            name: window
            for node in nodes
            if (window := window_of(node))
            for name in node.input[_PAST : _PAST + 2]
        },
    )


def _cosines(node: onnx.NodeProto) -> list[str]:
    place = _COSINES.get(op_name(node))
    return [] if place is None else [name for name in node.input[place : place + 1] if name]


def _is_causal(node: onnx.NodeProto) -> bool:
    op = op_name(node)
    if op in (GROUPED, SPARSE, "Trilu"):
        return True
    return any(item.name == _CAUSAL.get(op) and item.i for item in node.attribute)


def _tables(proto: onnx.ModelProto, nodes: Iterable[onnx.NodeProto]) -> dict[str, int]:
    """Rows of everything that is stored, by name."""
    rows: dict[str, int] = {}
    for graph in all_graphs(proto):
        for tensor in graph.initializer:
            rows[tensor.name] = tensor.dims[0] if tensor.dims else 0
    for node in nodes:
        for item in node.attribute:
            if node.op_type == "Constant" and item.HasField("t"):
                rows[node.output[0]] = item.t.dims[0] if item.t.dims else 0
    return rows


def _makers(nodes: Iterable[onnx.NodeProto]) -> dict[str, onnx.NodeProto]:
    return {name: node for node in nodes for name in node.output}


def _longest(
    name: str, sizes: Mapping[str, int], makers: Mapping[str, onnx.NodeProto], depth: int
) -> int:
    """Rows of a table; of tables that are chosen between, those of the longest."""
    node = makers.get(name)
    if name in sizes or node is None or depth > _DEEPEST:
        return sizes.get(name, 0)
    if node.op_type == "If":
        place = list(node.output).index(name)
        names = [graph.output[place].name for graph in subgraphs(node)]
    elif node.op_type == "Where":
        names = list(node.input[1:3])
    elif node.op_type in _HANDS_ON:
        names = [node.input[0]]
    else:
        return 0
    return max((_longest(other, sizes, makers, depth + 1) for other in names), default=0)


def _takes_positions(
    node: onnx.NodeProto, sizes: Mapping[str, int], makers: Mapping[str, onnx.NodeProto]
) -> bool:
    """Whether a node takes the rows of a stored table that belong to the tokens of a text."""
    if node.op_type == "Gather":
        is_rows = not any(item.name == "axis" and item.i for item in node.attribute)
        return is_rows and _is_position(node.input[1], sizes, makers, 0)
    # A part whose end is computed; a mask has further axes in front.
    is_cut = node.op_type == "Slice" and len(node.input) > _END and sizes[node.input[0]] > 1
    return is_cut and node.input[_END] not in sizes and node.input[_END] in makers


def _is_position(
    name: str, sizes: Mapping[str, int], makers: Mapping[str, onnx.NodeProto], depth: int
) -> bool:
    """Whether a value counts the tokens of a text; a count that is stored is of no text."""
    node = makers.get(name)
    if node is None or depth > _DEEPEST:
        return False
    if node.op_type in _COUNTS:
        return node.input[_COUNTS[node.op_type]] not in sizes
    if node.op_type in _SHIFTS:
        counted = [other for other in node.input if other not in sizes]
        return len(counted) == 1 and _is_position(counted[0], sizes, makers, depth + 1)
    return node.op_type in _KEEPS and _is_position(node.input[0], sizes, makers, depth + 1)


def _shares_buffers(
    proto: onnx.ModelProto, nodes: Iterable[onnx.NodeProto], pairs: tuple[CachePair, ...]
) -> bool:
    """Whether one operator reads each past, writes its present, and nothing else looks at them."""
    readers: dict[str, list[tuple[onnx.NodeProto, int]]] = {}
    for node in nodes:
        for place, name in enumerate(node.input):
            readers.setdefault(name, []).append((node, place))
    given = [output.name for graph in all_graphs(proto) for output in graph.output]
    for pair in pairs:
        reading = readers.get(pair.past.name, [])
        if len(reading) != 1 or pair.past.name in given or pair.present.name in readers:
            return False
        node, place = reading[0]
        writes = node.output[place - 2] if len(node.output) > place - 2 >= 1 else ""
        if op_name(node) not in (GROUPED, SPARSE) or writes != pair.present.name:
            return False
    return bool(pairs)
