"""A section of the page in which each case has a block that unfolds."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockTable:
    """A table within a block: its cells are escaped.

    Attributes:
        headings: Of the columns.
        rows: As many cells each.
        right: Columns that hold numbers.
    """

    headings: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    right: frozenset[int]


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseBlock:
    """What a pass found on one case.

    Attributes:
        name: The case.
        summary: The answer in one sentence; or why there is none.
        facts: What it is measured against.
        hints: What follows from it.
        tables: Each with its caption.
    """

    name: str
    summary: str
    facts: tuple[str, ...] = ()
    hints: tuple[str, ...] = ()
    tables: tuple[tuple[str, BlockTable], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class PageSection:
    """What a pass found on all cases of a run.

    Attributes:
        blocks_are: What the blocks are called, ``profiles``; also the anchor of links to it.
        link: What such a link says.
        title: Its heading.
        about: What the blocks say.
        blocks: One for each case.
        left_out: How many cases have none, since a page of them all pleases no browser.
        opened: How many blocks are open; the others unfold.
    """

    blocks_are: str
    link: str
    title: str
    about: str
    blocks: tuple[CaseBlock, ...]
    left_out: int
    opened: int = 2
