"""What a :class:`Placement` says: fallback, partial, and the shares. Pure; used by all layers."""

from __future__ import annotations

from pytest_ortbench.core.outcome import Placement

#: The provider that takes whatever the others leave, and every graph that needs no kernel at all.
CPU = "CPUExecutionProvider"


def is_fallback(placement: Placement) -> bool:
    """Whether the asked provider executed no computing node at all.

    A graph that holds shape-only nodes alone is no fallback where the asked provider ran them, and
    a graph that holds no node at all (outputs that are constants) is none on the CPU.
    """
    if placement.executed.get(placement.provider, 0):
        return False
    if any(placement.executed.values()):
        return True
    return not placement.shape_only.get(placement.provider, 0) and placement.provider != CPU


def is_partial(placement: Placement) -> bool:
    """Whether the asked provider computed something, and another one something too."""
    return not is_fallback(placement) and bool(nodes_elsewhere(placement))


def nodes_elsewhere(placement: Placement) -> int:
    """Number of computing nodes that other providers executed."""
    return sum(
        count for provider, count in placement.executed.items() if provider != placement.provider
    )


def placement_ratio(placement: Placement) -> float | None:
    """Share of computing nodes that ran on the asked provider, 0 … 1.

    A compiled partition is one event in the profile and may hold hundreds of nodes; there the
    nodes that the assignment interface names stand for it, and where that interface is missing the
    share is unknown. Shape-only nodes elsewhere never count against the provider.

    Returns:
        The share, or ``None`` where nothing computed or the inside of a partition can't be seen.
    """
    elsewhere = nodes_elsewhere(placement)
    on_provider: int | None = placement.executed.get(placement.provider, 0)
    if placement.partitions and elsewhere and on_provider:
        on_provider = placement.nodes_on_provider
    if on_provider is None or not on_provider + elsewhere:
        return None
    return on_provider / (on_provider + elsewhere)


def time_ratio(placement: Placement) -> float | None:
    """Share of the time in node events spent on the asked provider, 0 … 1; ``None`` without time.

    Copies between devices count for the provider that makes them: on asynchronous devices they are
    where the host waits for kernels that were launched before.
    """
    total = sum(placement.time_ns.values())
    if not total:
        return None
    return placement.time_ns.get(placement.provider, 0) / total
