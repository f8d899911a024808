"""What stands between the table and the answer: one block for each pass that a run holds."""

from __future__ import annotations

from collections.abc import Sequence

from pytest_ortbench.passes.registry import PASSES
from pytest_ortbench.report.entries import Entry, ShownRun
from pytest_ortbench.report.escape import encodable
from pytest_ortbench.report.page_section import PageSection
from pytest_ortbench.report.pass_table import PassTable, table_lines
from pytest_ortbench.report.scaling import scaling_lines
from pytest_ortbench.report.tuning import tuning_tables

#: Passes as they are shown.
_IN_ORDER = sorted(PASSES, key=lambda entry: entry.report_rank)


def pass_tables(shown: ShownRun) -> tuple[PassTable, ...]:
    """Return that of tuned cases, and the tables of all passes that have some, pass by pass."""
    of_passes = (
        table for entry in _IN_ORDER if entry.tables for table in entry.load(entry.tables)(shown)
    )
    return (*tuning_tables(shown), *of_passes)


def pass_sentences(shown: ShownRun) -> tuple[str, ...]:
    """Return what passes without a table found, a sentence a case."""
    return tuple(line for line in _pass_lines(shown, encoding="utf-8") if line)


def block_lines(shown: ShownRun, *, encoding: str = "utf-8") -> list[str]:
    """Return the lines of every pass beside the standard one, each block after a blank line.

    Args:
        shown: Any run.
        encoding: Of the stream that the lines go to.
    """
    lines = [*scaling_lines(shown, encoding=encoding), *_pass_lines(shown, encoding=encoding)]
    tables = [line for table in pass_tables(shown) for line in table_lines(table)]
    return [*lines, *(encodable(line, encoding) for line in tables)]


def detail_lines(shown: ShownRun, *, width: int, encoding: str = "utf-8") -> list[str]:
    """Return what passes say of each case in many lines, below all tables.

    Args:
        shown: Any run.
        width: Characters that a line may have.
        encoding: Of the stream that the lines go to.
    """
    return [
        line
        for entry in _IN_ORDER
        if entry.details
        for line in entry.load(entry.details)(shown, width=width, encoding=encoding)
    ]


def pass_sections(shown: Sequence[Entry]) -> tuple[PageSection, ...]:
    """Return the sections of the page that passes have of their own."""
    sections = [entry.load(entry.section)(shown) for entry in _IN_ORDER if entry.section]
    return tuple(section for section in sections if section is not None)


def _pass_lines(shown: ShownRun, *, encoding: str) -> list[str]:
    return [
        line
        for entry in _IN_ORDER
        if entry.lines
        for line in entry.load(entry.lines)(shown, encoding=encoding)
    ]
