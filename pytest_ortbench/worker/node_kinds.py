"""What a node of a profile is there for: to compute, to describe shapes, to copy, or to control.

Nodes that read and write small integers alone mostly compute shapes, which every provider leaves to
the CPU. They count as computing where the model is after their values: where they compute one of
its outputs, or come from another domain than the default one.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from pytest_ortbench.worker.assignment import Assignment
from pytest_ortbench.worker.model_graph import ModelGraph, read_graph
from pytest_ortbench.worker.profile_events import CONTROL_FLOW, NodeEvent, Tensor

#: Nodes that carry data between devices; ONNX Runtime puts them in itself.
COPIES = frozenset({"MemcpyFromHost", "MemcpyToHost"})

#: Types of values that describe shapes, positions and conditions where their rank is 1 at most.
_SHAPE_TYPES = frozenset({"int64", "int32", "bool"})
_SHAPE_OPS = frozenset({"Shape", "Size"})

COMPUTING, SHAPE, COPY, CONTROL = "computing", "shape", "copy", "control"


def sort_nodes(
    nodes: Iterable[NodeEvent],
    *,
    model: str | bytes | None = None,
    session: object | None = None,
    assignment: Assignment | None = None,
) -> dict[str, list[NodeEvent]]:
    """Sort the nodes of a profile by what they are there for.

    Args:
        nodes: One event a node.
        model: The profiled model, path or bytes; ``None`` where it is not at hand.
        session: The profiled session, asked for its outputs.
        assignment: What the assignment interface says, which names domains.
    """
    kinds: dict[str, list[NodeEvent]] = {COMPUTING: [], SHAPE: [], COPY: [], CONTROL: []}
    for node in nodes:
        kinds[_kind(node)].append(node)
    if kinds[SHAPE]:
        wanted = _Wanted.of(kinds, model, session, assignment)
        small, kinds[SHAPE] = kinds[SHAPE], []
        for node in small:
            kinds[COMPUTING if wanted.holds(node) else SHAPE].append(node)
    return kinds


def _kind(node: NodeEvent) -> str:
    if node.op in COPIES:
        return COPY
    if node.op in CONTROL_FLOW:
        return CONTROL
    values = node.inputs + node.outputs
    describes_shapes = bool(values) and all(_is_shape_value(value) for value in values)
    return SHAPE if node.op in _SHAPE_OPS or describes_shapes else COMPUTING


def _is_shape_value(value: Tensor) -> bool:
    return value.type in _SHAPE_TYPES and len(value.shape) <= 1


@dataclass(frozen=True, slots=True, kw_only=True)
class _Wanted:
    """Which nodes on small integers the model is after.

    Attributes:
        ends: Label and operator of nodes that compute an output or are of another domain.
        operators: Operators of nodes that do, and that the profile shows under no such label;
            and operators of other domains.
        partitions: Whether a compiled subgraph may hold one that the profile does not show at all.
        types: Types and ranks of outputs, where the graph can't be read.
    """

    ends: frozenset[tuple[str, str]] = frozenset()
    operators: frozenset[str] = frozenset()
    partitions: bool = False
    types: frozenset[tuple[str, int]] = frozenset()

    @classmethod
    def of(
        cls,
        kinds: dict[str, list[NodeEvent]],
        model: str | bytes | None,
        session: object | None,
        assignment: Assignment | None,
    ) -> _Wanted:
        graph = None if model is None else read_graph(model)
        foreign = graph.foreign_operators() if graph is not None else frozenset()
        if assignment is not None:
            foreign |= assignment.foreign_operators()
        outputs = _small_outputs(session)
        if graph is None:
            return cls(operators=foreign, types=frozenset(outputs.values()))
        return cls._of_graph(
            graph, outputs, foreign, [n for group in kinds.values() for n in group]
        )

    @classmethod
    def _of_graph(
        cls,
        graph: ModelGraph,
        outputs: Iterable[str],
        foreign: frozenset[str],
        nodes: Sequence[NodeEvent],
    ) -> _Wanted:
        ends = frozenset((node.label, node.op) for node in graph.ends(outputs))
        seen = {(node.name, node.op) for node in nodes}
        # Their names were changed, or they were fused: any node of such an operator may be it.
        missing = frozenset(op for label, op in ends if (label, op) not in seen)
        gone = missing - {op for _, op in seen}
        named = frozenset((node.label, node.op) for node in graph.foreign_nodes())
        return cls(ends=ends | named, operators=foreign | missing, partitions=bool(gone))

    def holds(self, node: NodeEvent) -> bool:
        """Whether the model is after the values of this node."""
        return (
            (node.name, node.op) in self.ends
            or node.op in self.operators
            or (self.partitions and node.partition)
            or any((value.type, len(value.shape)) in self.types for value in node.outputs)
        )


def _small_outputs(session: object | None) -> dict[str, tuple[str, int]]:
    """Type and rank of the outputs that nodes on small integers may compute, by name."""
    ask = getattr(session, "get_outputs", None)
    declared: Sequence[Any] = ask() if ask is not None else ()
    kinds = {f"tensor({kind})": kind for kind in _SHAPE_TYPES}
    return {
        str(output.name): (kinds[output.type], len(output.shape))
        for output in declared
        # One of unknown rank has none that is told.
        if output.type in kinds and len(output.shape) <= 1
    }
