"""What each link of a chain of providers ran, and why one of them ran nothing. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from pytest_ortbench.core.case import Provider

#: Why a link computed nothing.
IDLE_CAUSES: dict[str, str] = {
    "": "it computed, or no whole profile says otherwise",
    "taken": "an earlier link took its nodes",
    "none": "it takes no node of this model",
    "unknown": "it is not known whether it would take nodes ahead of the others",
}

_Link = TypeVar("_Link")


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkPlacement:
    """What one link of a chain ran, from the profiled run of its case.

    Attributes:
        provider: ONNX Runtime's name of its provider.
        label: The link as it is written: ``openvino:CPU``.
        partitions: Fused subgraphs on it.
        nodes: Nodes of the graph assigned to it, by the assignment interface; ``None`` where the
            runtime does not tell.
        idle: A key of :data:`IDLE_CAUSES`.
        order: Another order of the chain, in which it computes; empty where none is known.
        executed: Computing nodes that it executed in that order; ``None`` without one.
        reason: Why it is not known whether it would compute; empty where it is.
    """

    provider: str
    label: str
    partitions: int = 0
    nodes: int | None = None
    idle: str = ""
    order: str = ""
    executed: int | None = None
    reason: str = ""


def earlier_places(
    links: Sequence[Provider], place: int, executed: Mapping[str, int]
) -> Iterator[int]:
    """Return where an idle link may stand to take nodes: ahead of an earlier link that computed.

    Args:
        links: The chain.
        place: Of the idle link.
        executed: Computing nodes by the name of their provider.

    Yields:
        Places, that of the nearest such link first.
    """
    return (index for index in reversed(range(place)) if executed.get(links[index].name))


def reordered(links: Sequence[_Link], place: int, to: int) -> tuple[_Link, ...]:
    """Return the links with one of them at an earlier place.

    Args:
        links: The chain.
        place: Of the link that moves.
        to: Where it stands then.
    """
    rest = (*links[:place], *links[place + 1 :])
    return (*rest[:to], links[place], *rest[to:])
