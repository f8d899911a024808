"""What a provider takes of a model before anything is measured: nodes, and why not all of them."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field

#: What became of a trial.
STATES: dict[str, str] = {
    "all": "the provider takes every node",
    "some": "the provider leaves nodes to others",
    "refused": "no session of the model can be made on the provider",
    "not tried": "the provider can't be tried here",
}

#: States without a session, in which nothing is known of single nodes.
WITHOUT_SESSION = ("refused", "not tried")

#: What a node that is not taken is seen to lack, by an experiment that mends it.
CAUSES: dict[str, str] = {
    "sizes": "the provider takes it where all sizes are fixed",
    "types": "the provider takes it with another type",
    "opset": "the provider takes it as an older operator set has it",
    "neighbours": "the provider takes it where it stands alone",
    "operator": "the provider takes it in no form that was tried",
    "": "not known",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class TriedNode:
    """One node of a session's graph, and where it went.

    Attributes:
        op: Its operator, with the domain in front where that is not the default one.
        name: As in the file; empty where it has none.
        provider: Full name of the provider that it was given to.
    """

    op: str
    name: str
    provider: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionTrial:
    """A session that was made to see where its nodes go.

    Attributes:
        nodes: All nodes that ONNX Runtime names.
        reason: Why it names none; empty otherwise.
    """

    nodes: tuple[TriedNode, ...] = ()
    reason: str = ""

    def on(self, provider: str) -> int:
        """Number of nodes that a provider was given."""
        return sum(node.provider == provider for node in self.nodes)

    def besides(self, providers: Collection[str]) -> list[TriedNode]:
        """Nodes that others than some providers were given."""
        return [node for node in self.nodes if node.provider not in providers]


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeTrials:
    """Files of one node each, and whether a provider took the node.

    Attributes:
        taken: By name of the file; without those that no session could be made of, or of which
            ONNX Runtime names no node.
        refused: First line of what refused the session, by name of the file.
    """

    taken: dict[str, bool]
    refused: dict[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class NotTaken:
    """Nodes of one operator that a provider leaves for one reason.

    Attributes:
        op: The operator, as in :class:`TriedNode`.
        nodes: How many.
        names: Names of the first ones, as far as they have any.
        elsewhere: Where they went: full name of the provider; empty where nothing tells.
        cause: A key of :data:`CAUSES`.
        detail: What the experiment changed: sizes, types, an operator set; else empty.
    """

    op: str
    nodes: int
    names: tuple[str, ...] = ()
    elsewhere: str = ""
    cause: str = ""
    detail: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Readiness:
    """What one provider takes of one model.

    Attributes:
        provider: Its label.
        runtime: Label of the runtime.
        state: A key of :data:`STATES`.
        taken: Number of nodes that it takes.
        total: Number of nodes.
        not_taken: The others, the most nodes first.
        told_by: ``assignment`` (ONNX Runtime names each node), or ``profile`` (a run, which counts
            operators); empty where nothing was tried.
        reason: Why there is no session; empty otherwise.
        hint: The next step, where one is known.
        by_link: Of a chain, the number of nodes that each link takes, by how it is written.
    """

    provider: str
    runtime: str
    state: str
    taken: int = 0
    total: int = 0
    not_taken: tuple[NotTaken, ...] = ()
    told_by: str = ""
    reason: str = ""
    hint: str = ""
    by_link: dict[str, int] = field(default_factory=dict)
