"""What a :class:`Placement` says: fallback, partial, and the shares. Pure; used by all layers.

What a profile does not show can't be claimed: one that broke off has no share, and a provider whose
nodes may be among those that are missing has not fallen back.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

from pytest_ortbench.core.judgement import Judgement, bad, good, unjudged
from pytest_ortbench.core.measurement import Placement
from pytest_ortbench.core.provider_kinds import CPU


def judge_placement(placement: Placement | None) -> Judgement:
    """Judge whether the asked provider ran the model.

    Returns:
        Bad for a fallback; good where a whole profile shows computing nodes on the provider, and
        its reason names what ran elsewhere; not judged without such a profile.
    """
    of = "placement"
    missing = missing_evidence(placement)
    if placement is None or missing:
        return unjudged(of, missing)
    if is_fallback(placement):
        return bad(of, f"no computing node ran on {' or '.join(required(placement))}")
    elsewhere = nodes_elsewhere(placement)
    return good(of, f"{elsewhere} computing nodes ran elsewhere" if elsewhere else "")


def missing_evidence(placement: Placement | None) -> str:
    """Say which evidence a placement lacks to be judged at all; empty if it has what is needed."""
    if placement is None:
        return "no profiled run"
    if placement.reason:
        return f"no profile: {placement.reason}"
    if placement.cut_after is not None:
        return (
            f"the profile ended after {placement.cut_after:,} events, before its first run was "
            "over, so later nodes are missing"
        )
    counts = (*placement.executed.values(), *placement.shape_only.values())
    if not all(math.isfinite(count) and count >= 0 for count in counts):
        return "the counts of nodes are not numbers"
    if not any(counts):
        return "the profile contains no node"
    return ""


def is_whole(placement: Placement) -> bool:
    """Whether the profile is there and shows all nodes of a run."""
    return placement.cut_after is None and not placement.reason


def required(placement: Placement) -> tuple[str, ...]:
    """Return the providers of which one must compute: the asked one, or those of a chain.

    A chain names the CPU for what the links ahead of it leave; where it is first, it is asked for
    like any other.
    """
    first, *others = placement.asked
    if first == CPU:
        return placement.asked
    return (first, *(name for name in others if name != CPU))


def is_fallback(placement: Placement) -> bool:
    """Whether the asked provider, or each link of a chain, executed no computing node at all.

    A graph that holds shape-only nodes alone is no fallback where the asked provider ran them, and
    a graph that holds no node at all (outputs that are constants) is none on the CPU. A profile
    that broke off tells of none.
    """
    names = required(placement)
    if not is_whole(placement) or _on(names, placement.executed):
        return False
    if any(placement.executed.values()):
        return True
    return not _on(names, placement.shape_only) and placement.provider != CPU


def is_partial(placement: Placement) -> bool:
    """Whether the asked provider computed something, and another one something too."""
    return not is_fallback(placement) and bool(nodes_elsewhere(placement))


def nodes_elsewhere(placement: Placement) -> int:
    """Number of computing nodes that other providers executed, as far as the profile goes."""
    seen = placement.executed if is_whole(placement) else placement.seen
    return sum(count for provider, count in seen.items() if provider not in placement.asked)


def idle_links(placement: Placement) -> tuple[int, ...]:
    """Return the places of the links of a chain that computed nothing; of those a profile shows.

    The CPU behind other links is not among them: the less they leave to it, the better.
    """
    if missing_evidence(placement):
        return ()
    names = required(placement)
    return tuple(
        place
        for place, link in enumerate(placement.links)
        if link.provider in names and not placement.executed.get(link.provider)
    )


def _on(names: Iterable[str], counts: Mapping[str, int]) -> int:
    return sum(counts.get(name, 0) for name in names)


def placement_ratio(placement: Placement) -> float | None:
    """Return the share of computing nodes that ran on the asked provider or links, 0 … 1.

    A compiled partition is one event in the profile and may hold hundreds of nodes; there the
    nodes that the assignment interface names stand for it, and where that interface is missing the
    share is unknown. Shape-only nodes elsewhere never count against the provider.

    Returns:
        The share, or ``None`` where nothing computed, where the inside of a partition can't be
        seen, and where the profile broke off.
    """
    if not is_whole(placement):
        return None
    elsewhere = nodes_elsewhere(placement)
    on_provider: int | None = _on(placement.asked, placement.executed)
    if placement.partitions and elsewhere and on_provider:
        on_provider = placement.nodes_on_provider
    if on_provider is None or not on_provider + elsewhere:
        return None
    return on_provider / (on_provider + elsewhere)


def time_ratio(placement: Placement) -> float | None:
    """Return the share of the time in node events spent on the asked provider or links, 0 … 1.

    ``None`` without time, and where the profile broke off.

    Copies between devices count for the provider that makes them: on asynchronous devices they are
    where the host waits for kernels that were launched before.
    """
    total = sum(placement.time_ns.values())
    if not total or not is_whole(placement):
        return None
    return _on(placement.asked, placement.time_ns) / total
