"""What the links of a chain of providers ran, in words and as amounts."""

from __future__ import annotations

from pytest_ortbench.core.links import LinkPlacement
from pytest_ortbench.core.outcome import CaseResult, Placement
from pytest_ortbench.core.placement import is_whole


def nodes_by_link(placement: Placement) -> dict[str, int]:
    """Return the computing nodes that each link of a chain executed, by how it is written.

    Args:
        placement: Of any case; one that is no chain, or whose profile shows no whole run, has none.
    """
    if not is_whole(placement):
        return {}
    return {link.label: placement.executed.get(link.provider, 0) for link in placement.links}


def idle_in(placement: Placement | None) -> tuple[LinkPlacement, ...]:
    """Return the links of a chain that computed nothing, with the reason."""
    links = () if placement is None else placement.links
    return tuple(link for link in links if link.idle)


def idle_words(link: LinkPlacement) -> str:
    """Say why a link computed nothing, and which order would use it.

    Args:
        link: One with a reason.
    """
    if link.idle == "taken":
        return (
            f"an earlier link took the nodes of {link.label}; {link.order} gives it {link.executed}"
        )
    if link.idle == "none":
        return f"{link.label} takes no node of this model, whatever is behind it"
    return (
        f"it is not known whether {link.label} would take nodes ahead of the others: {link.reason}"
    )


def chain_words(result: CaseResult) -> str:
    """Say what each link of a chain ran; empty for a case without one.

    Args:
        result: Of any case.
    """
    placement = result.placement
    counts = {} if placement is None else nodes_by_link(placement)
    if not counts:
        return ""
    nodes = ", ".join(f"{label} {count}" for label, count in counts.items())
    reasons = "".join(f"; {idle_words(link)}" for link in idle_in(placement))
    fused = " (a fused partition is one)" if placement is not None and placement.partitions else ""
    return f"computing nodes by link{fused}: {nodes}{reasons}"
