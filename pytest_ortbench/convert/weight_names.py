"""A weight's name stands for one weight: names that branches share are told apart.

The half-precision converter looks at all graphs at once and knows a weight by its bare name, where
graphs that do not see each other (the branches of an If) may call different weights the same.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import TYPE_CHECKING

from pytest_ortbench.convert.graph import all_graphs

if TYPE_CHECKING:
    import onnx


def tell_apart(model: onnx.ModelProto) -> None:
    """Rename float weights of inner graphs whose names mean something else elsewhere, too.

    Args:
        model: Constants are initialisers already. Nodes that read a renamed weight, in its graph
            and in those inside it, follow.
    """
    from onnx import TensorProto

    main, *inner = all_graphs(model.graph)
    meanings = Counter(name for graph in (main, *inner) for name in _defined(graph))
    for number, graph in enumerate(inner, start=1):
        renamed = {}
        for tensor in graph.initializer:
            if tensor.data_type == TensorProto.FLOAT and meanings[tensor.name] > 1:
                renamed[tensor.name] = _free(f"{tensor.name}/{graph.name}", number, meanings)
        if renamed:
            _rename(graph, renamed)


def _defined(graph: onnx.GraphProto) -> set[str]:
    """Names that mean a value of this graph."""
    values = {value.name for value in graph.input}
    values |= {tensor.name for tensor in graph.initializer}
    values |= {tensor.values.name for tensor in graph.sparse_initializer}
    return values | {name for node in graph.node for name in node.output if name}


def _free(wanted: str, number: int, meanings: Counter[str]) -> str:
    """A name that nothing has: as wanted, or with the graph's number and more behind it."""
    name = wanted
    while meanings[name]:
        name = f"{name}/{number}"
    meanings[name] = 1
    return name


def _rename(graph: onnx.GraphProto, renamed: Mapping[str, str]) -> None:
    """Write other names where a graph, or one inside it that does not hide them, uses these."""
    for value in (*graph.initializer, *graph.input, *graph.output, *graph.value_info):
        value.name = renamed.get(value.name, value.name)
    for node in graph.node:
        for index, name in enumerate(node.input):
            node.input[index] = renamed.get(name, name)
        for attribute in node.attribute:
            held = [attribute.g] if attribute.HasField("g") else []
            for below in (*held, *attribute.graphs):
                hidden = _defined(below)
                left = {old: new for old, new in renamed.items() if old not in hidden}
                if left:
                    _rename(below, left)
