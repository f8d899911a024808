"""Where the time of each profiled case goes, as blocks of the page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pytest_ortbench.analysis.bottlenecks import hints
from pytest_ortbench.report.entries import Entry
from pytest_ortbench.report.escape import one_line
from pytest_ortbench.report.operator_profile import (
    ProfileTable,
    is_empty,
    node_table,
    operator_table,
    rate_facts,
    summary_of,
)

#: Cases with a block of their own; more make a page that no browser likes.
PROFILES = 100
#: Blocks that are open; the others unfold.
OPEN = 2
#: Rows of both tables.
TYPES, NODES = 8, 6


@dataclass(frozen=True, slots=True, kw_only=True)
class ProfileBlock:
    """The profile of one case.

    Attributes:
        name: The case.
        summary: How long a run took, and what copies and casts take of it; or why there is none.
        facts: What was achieved, and what the provider can.
        hints: What bounds it.
        tables: By operator type and by node, each with its caption.
    """

    name: str
    summary: str
    facts: tuple[str, ...] = ()
    hints: tuple[str, ...] = ()
    tables: tuple[tuple[str, ProfileTable], ...] = ()


def profile_blocks(shown: Sequence[Entry]) -> tuple[ProfileBlock, ...]:
    """Return a block for each case that was profiled, in their order."""
    return tuple(_block(entry) for entry in shown if entry.result.profile is not None)


def _block(entry: Entry) -> ProfileBlock:
    profile = entry.result.profile
    assert profile is not None
    name = one_line(f"{entry.result.case.model.name}/{entry.label}")
    if is_empty(profile):
        return ProfileBlock(name=name, summary=summary_of(profile))
    return ProfileBlock(
        name=name,
        summary=summary_of(profile),
        facts=tuple(one_line(fact) for fact in rate_facts(profile)),
        hints=tuple(one_line(hint) for hint in hints(profile)),
        tables=(
            ("By operator type", operator_table(profile, TYPES)),
            ("Slowest nodes", node_table(profile, NODES)),
        ),
    )
