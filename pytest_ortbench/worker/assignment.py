"""What ONNX Runtime's assignment interface says: a witness beside the profile, never the proof.

It is taken before kernels are fused and laid out, and knows no types; but it names the nodes inside
a compiled partition, which the profile shows as one event.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

from pytest_ortbench.core.errors import first_line

#: Session configuration entry that makes ONNX Runtime record the assignment (1.24 and newer; older
#: versions ignore it).
ENTRY = ("session.record_ep_graph_assignment_info", "1")

#: Operators that ONNX Runtime itself puts in after the assignment was taken.
INSERTED = frozenset({"Cast", "MemcpyFromHost", "MemcpyToHost", "ReorderInput", "ReorderOutput"})


@dataclass(frozen=True, slots=True, kw_only=True)
class AssignedNode:
    """One node of the graph and the provider that it was given to."""

    provider: str
    op: str
    domain: str = ""
    name: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Assignment:
    """All nodes that the interface names, or why it names none."""

    nodes: tuple[AssignedNode, ...] = ()
    reason: str = ""

    def on(self, provider: str) -> int:
        """Number of nodes that ``provider`` was given."""
        return sum(node.provider == provider for node in self.nodes)

    def foreign_operators(self) -> frozenset[str]:
        """Operator types of nodes from other domains than ONNX's default one, and only those."""
        default = {node.op for node in self.nodes if node.domain in ("", "ai.onnx")}
        return frozenset(node.op for node in self.nodes) - default

    def ops_outside(self, providers: Collection[str]) -> frozenset[str]:
        """Operator types of the nodes that other providers were given."""
        return frozenset(node.op for node in self.nodes if node.provider not in providers)


def read_assignment(session: object) -> Assignment:
    """Ask ``session`` which provider each node was given to.

    Args:
        session: An ``onnxruntime.InferenceSession`` made with :data:`ENTRY`.
    """
    ask = getattr(session, "get_provider_graph_assignment_info", None)
    if ask is None:
        return Assignment(reason="no witness: this ONNX Runtime has no assignment interface")
    try:
        subgraphs: Sequence[Any] = ask()
    except Exception as error:  # noqa: BLE001 - native errors have no common base class
        return Assignment(reason=f"no witness: {first_line(error)}")
    nodes = tuple(
        AssignedNode(
            provider=_text(subgraph, "ep_name"),
            op=_text(node, "op_type"),
            domain=_text(node, "domain"),
            name=_text(node, "name"),
        )
        for subgraph in subgraphs
        for node in subgraph.get_nodes()
    )
    if not nodes:
        return Assignment(reason="no witness: the assignment interface names no node")
    return Assignment(nodes=nodes)


def _text(owner: object, name: str) -> str:
    """A text that the interface gives; of bytes that are no UTF-8 what can be read of them."""
    try:
        return str(getattr(owner, name, ""))
    except UnicodeDecodeError as error:
        return bytes(error.object).decode("utf-8", "replace")


def witness(
    assignment: Assignment, *, providers: Collection[str], executed_outside: Collection[str]
) -> str:
    """Say whether profile and assignment tell the same story about other providers.

    Args:
        assignment: What the interface says.
        providers: The provider that was asked for, or those of a chain.
        executed_outside: Operator types that other providers executed, shape-only ones included.

    Returns:
        ``agrees``, how the two differ, or why there is no witness.
    """
    if assignment.reason:
        return assignment.reason
    assigned = assignment.ops_outside(providers)
    only_executed = sorted(set(executed_outside) - assigned - INSERTED)
    only_assigned = sorted(assigned - set(executed_outside))
    parts = []
    if only_executed:
        parts.append("executed but not assigned: " + ", ".join(only_executed))
    if only_assigned:
        parts.append(
            "assigned but not executed (fused or not reached): " + ", ".join(only_assigned)
        )
    return "differs outside the provider; " + "; ".join(parts) if parts else "agrees"
