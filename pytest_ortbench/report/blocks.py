"""What stands between the table and the answer: a block for each pass, one for compiled models."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from pytest_ortbench.core.case import Case, Key
from pytest_ortbench.core.compilation import Compilation
from pytest_ortbench.core.units import counted, format_amount
from pytest_ortbench.passes.registry import PASSES
from pytest_ortbench.report.entries import Entry, ShownRun
from pytest_ortbench.report.escape import encodable, one_line
from pytest_ortbench.report.page_section import PageSection
from pytest_ortbench.report.pass_table import PassTable, table_lines
from pytest_ortbench.report.scaling import scaling_lines
from pytest_ortbench.report.tuning import tuning_tables

#: Passes as they are shown.
_IN_ORDER = sorted(PASSES, key=lambda entry: entry.report_rank)

#: What compiling ahead took and gave, beside the plain model where that was measured, too.
_COMPILED = ("case", "compile", "create", "create plain", "size", "size plain")


def pass_tables(shown: ShownRun) -> tuple[PassTable, ...]:
    """Return those of compiled and of tuned cases, and the tables of all passes that have some."""
    of_passes = (
        table for entry in _IN_ORDER if entry.tables for table in entry.load(entry.tables)(shown)
    )
    return (*compiled_tables(shown), *tuning_tables(shown), *of_passes)


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


def compiled_tables(shown: ShownRun) -> tuple[PassTable, ...]:
    """Return one table of all cases that were compiled ahead; nothing where there is none."""
    entries = {entry.result.case.key: entry for entry in shown.entries}
    compiled = [
        (entry, made)
        for entry in shown.entries
        if (made := entry.result.case.variant.compilation) is not None
    ]
    if not compiled:
        return ()
    return (
        PassTable(
            title="compiled ahead, once, in a process of its own",
            headings=_COMPILED,
            rows=tuple(_row(shown, entries, entry, made) for entry, made in compiled),
            remarks=tuple(
                _remark(shown.name_of(entry.result.case), made) for entry, made in compiled
            ),
        ),
    )


def _row(
    shown: ShownRun, entries: Mapping[Key, Entry], entry: Entry, made: Compilation
) -> tuple[str, ...]:
    plain = entries.get(_plain(entry.result.case).key)
    return (
        one_line(shown.name_of(entry.result.case)),
        format_amount(made.compile_ns * 1e-9, "s"),
        _created(entry),
        "-" if plain is None else _created(plain),
        format_amount(made.size_bytes, "bytes"),
        format_amount(made.source_bytes, "bytes"),
    )


def _plain(case: Case) -> Case:
    """The case of the same model as it is."""
    return replace(case, compiled=False, knobs={**case.knobs, "compiled": "off"})


def _created(entry: Entry) -> str:
    quantity = entry.summary.quantities.get("session_create")
    return "-" if quantity is None else format_amount(quantity.value, "s")


def _remark(name: str, made: Compilation) -> str:
    left = "every node" if not made.other_nodes else f"all but {counted(made.other_nodes, 'node')}"
    parts = counted(made.compiled_nodes, "part")
    return one_line(f"{name}: {left} in {parts}, by {made.way}, {made.made_at[:10]}")
