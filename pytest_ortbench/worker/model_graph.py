"""The nodes of a model file, read without the onnx package: the measured interpreter has none.

A profile names nodes and operators; which of them compute an output, and from which domain they
come, only the graph tells. Field numbers are those of onnx.proto.
"""

from __future__ import annotations

import mmap
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from pytest_ortbench.worker.protobuf import fields

_MODEL_GRAPH, _MODEL_FUNCTION = 7, 25
_GRAPH_NODE, _GRAPH_OUTPUT, _VALUE_NAME = 1, 12, 1
_NODE_INPUT, _NODE_OUTPUT, _NODE_NAME, _NODE_OP, _NODE_ATTRIBUTE, _NODE_DOMAIN = 1, 2, 3, 4, 5, 7
_ATTRIBUTE_GRAPH, _ATTRIBUTE_GRAPHS = 6, 11
_FUNCTION_NAME, _FUNCTION_OUTPUT, _FUNCTION_NODE, _FUNCTION_DOMAIN = 1, 5, 7, 10

_DEFAULT_DOMAINS = ("", "ai.onnx")


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphNode:
    """One node as the file has it.

    Attributes:
        name: Its name; empty where it has none.
        op: Operator type.
        domain: Domain of the operator, empty for the default one.
        label: What ONNX Runtime calls it: its name, or the operator and its number in the graph.
        inputs: Names of what it reads.
        outputs: Names of what it writes.
        bodies: Its subgraphs.
    """

    name: str
    op: str
    domain: str
    label: str
    inputs: tuple[str, ...] = ()
    outputs: tuple[str, ...] = ()
    bodies: tuple[Graph, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Graph:
    """Nodes, and the names of what they compute for the outside: of a graph, or of a function."""

    nodes: tuple[GraphNode, ...]
    outputs: tuple[str, ...]

    def all_nodes(self) -> Iterator[GraphNode]:
        """Yield the nodes, those of subgraphs too."""
        for node in self.nodes:
            yield node
            for body in node.bodies:
                yield from body.all_nodes()


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelGraph:
    """The graph of a model, and its local functions by domain and name."""

    graph: Graph
    functions: Mapping[tuple[str, str], Graph] = field(default_factory=dict)

    def foreign_nodes(self) -> Iterator[GraphNode]:
        """Yield the nodes of other domains than the default one, but for calls of functions."""
        for node in self.graph.all_nodes():
            if not self._is_default(node) and not self._is_call(node):
                yield node

    def foreign_operators(self) -> frozenset[str]:
        """Operators that the model takes from other domains than the default one, and only there.

        Calls of its own functions are none: what runs are the nodes of their bodies.
        """
        foreign: set[str] = set()
        default: set[str] = set()
        for graph in (self.graph, *self.functions.values()):
            for node in graph.all_nodes():
                if not self._is_call(node):
                    (default if self._is_default(node) else foreign).add(node.op)
        return frozenset(foreign - default)

    def ends(self, outputs: Iterable[str]) -> tuple[GraphNode, ...]:
        """Return the nodes that compute these outputs, in bodies and functions where those do.

        Identity passes on what another node computed. A node of a function has the label that it
        gets where the function is called.
        """
        ending: dict[int, GraphNode] = {}
        waiting = [(_Scope(self.graph), name) for name in outputs]
        while waiting:
            scope, name = waiting.pop()
            made = scope.maker(name)
            if made is None:
                continue
            node, scope = made
            function = self.functions.get((node.domain, node.op))
            position = node.outputs.index(name)
            if node.op == "Identity" and self._is_default(node):
                waiting += [(scope, read) for read in node.inputs[:1]]
            elif function is not None:
                inner = _Scope(function, prefix=f"{scope.prefix}_inlfunc_{node.op}_")
                waiting += [(inner, made) for made in function.outputs[position : position + 1]]
            elif node.bodies:
                # The first output of a loop's body is whether it goes on.
                at = position + (node.op == "Loop")
                waiting += [
                    (_Scope(body, outer=scope, prefix=scope.prefix), made)
                    for body in node.bodies
                    for made in body.outputs[at : at + 1]
                ]
            else:
                ending.setdefault(id(node), scope.labelled(node))
        return tuple(ending.values())

    def _is_call(self, node: GraphNode) -> bool:
        return (node.domain, node.op) in self.functions

    @staticmethod
    def _is_default(node: GraphNode) -> bool:
        return node.domain in _DEFAULT_DOMAINS


class _Scope:
    """A graph with the graphs around it, whose values it may use."""

    def __init__(self, graph: Graph, *, outer: _Scope | None = None, prefix: str = "") -> None:
        self._made = {name: node for node in graph.nodes for name in node.outputs if name}
        self._outer = outer
        self.prefix = prefix

    def maker(self, name: str) -> tuple[GraphNode, _Scope] | None:
        """The node that makes a value, with the scope that it stands in; ``None`` for inputs."""
        scope: _Scope | None = self
        while scope is not None:
            node = scope._made.get(name)
            if node is not None:
                return node, scope
            scope = scope._outer
        return None

    def labelled(self, node: GraphNode) -> GraphNode:
        """The node under the label that it has in this scope."""
        if not self.prefix:
            return node
        return GraphNode(
            name=node.name, op=node.op, domain=node.domain, label=f"{self.prefix}{node.name}"
        )


def read_graph(model: str | bytes) -> ModelGraph | None:
    """Read the nodes of a model; weights are passed over.

    Args:
        model: Path of the file, or its bytes.

    Returns:
        ``None`` for what is no ONNX file, as one in ONNX Runtime's own format.
    """
    try:
        if isinstance(model, bytes):
            return _model(memoryview(model))
        with (
            Path(model).open("rb") as stream,
            mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ) as content,
        ):
            view = memoryview(content)
            try:
                return _model(view)
            finally:
                view.release()
    except (OSError, ValueError, RecursionError, BufferError):  # the last: closed half-read
        return None


def _model(content: memoryview) -> ModelGraph | None:
    graph: Graph | None = None
    functions: dict[tuple[str, str], Graph] = {}
    for number, _, value in fields(content):
        if isinstance(value, int):
            continue
        if number == _MODEL_GRAPH:
            graph = _graph(value)
        elif number == _MODEL_FUNCTION:
            key, body = _function(value)
            functions[key] = body
        value.release()
    return None if graph is None else ModelGraph(graph=graph, functions=functions)


def _graph(content: memoryview) -> Graph:
    nodes: list[GraphNode] = []
    outputs: list[str] = []
    numbered = 0
    for number, _, value in fields(content):
        if isinstance(value, int):
            continue
        if number == _GRAPH_NODE:
            node = _node(value, numbered)
            nodes.append(node)
            # ONNX Runtime takes constants out before it numbers the others.
            numbered += node.op != "Constant"
        elif number == _GRAPH_OUTPUT:
            outputs += _texts(value, _VALUE_NAME)
        value.release()
    return Graph(nodes=tuple(nodes), outputs=tuple(outputs))


def _function(content: memoryview) -> tuple[tuple[str, str], Graph]:
    name = domain = ""
    nodes: list[GraphNode] = []
    outputs: list[str] = []
    for number, _, value in fields(content):
        if isinstance(value, int):
            continue
        if number == _FUNCTION_NAME:
            name = _text(value)
        elif number == _FUNCTION_DOMAIN:
            domain = _text(value)
        elif number == _FUNCTION_OUTPUT:
            outputs.append(_text(value))
        elif number == _FUNCTION_NODE:
            nodes.append(_node(value, len(nodes)))
        value.release()
    return (domain, name), Graph(nodes=tuple(nodes), outputs=tuple(outputs))


def _node(content: memoryview, index: int) -> GraphNode:
    name = op = domain = ""
    inputs: list[str] = []
    outputs: list[str] = []
    bodies: list[Graph] = []
    for number, _, value in fields(content):
        if isinstance(value, int):
            continue
        if number == _NODE_INPUT:
            inputs.append(_text(value))
        elif number == _NODE_OUTPUT:
            outputs.append(_text(value))
        elif number == _NODE_NAME:
            name = _text(value)
        elif number == _NODE_OP:
            op = _text(value)
        elif number == _NODE_DOMAIN:
            domain = _text(value)
        elif number == _NODE_ATTRIBUTE:
            bodies += _bodies(value)
        value.release()
    return GraphNode(
        name=name,
        op=op,
        domain=domain,
        label=name or f"{op}_{index}",
        inputs=tuple(inputs),
        outputs=tuple(outputs),
        bodies=tuple(bodies),
    )


def _bodies(attribute: memoryview) -> Iterator[Graph]:
    for number, _, value in fields(attribute):
        if isinstance(value, int):
            continue
        if number in (_ATTRIBUTE_GRAPH, _ATTRIBUTE_GRAPHS):
            yield _graph(value)
        value.release()


def _texts(content: memoryview, wanted: int) -> Iterator[str]:
    for number, _, value in fields(content):
        if isinstance(value, int):
            continue
        if number == wanted:
            yield _text(value)
        value.release()


def _text(value: memoryview) -> str:
    return bytes(value).decode("utf-8", "replace")
