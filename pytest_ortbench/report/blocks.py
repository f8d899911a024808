"""What stands between the table and the answer: one block for each pass that a run holds."""

from __future__ import annotations

from pytest_ortbench.report.energy import energy_lines
from pytest_ortbench.report.entries import ShownRun
from pytest_ortbench.report.escape import encodable
from pytest_ortbench.report.load import load_tables
from pytest_ortbench.report.pass_table import PassTable, table_lines
from pytest_ortbench.passes.processes.report import process_tables
from pytest_ortbench.report.scaling import scaling_lines
from pytest_ortbench.passes.soak.report import soak_lines
from pytest_ortbench.report.stages import stage_tables
from pytest_ortbench.passes.startup.report import start_up_tables

_SENTENCES = (energy_lines, soak_lines)
_BLOCKS = (scaling_lines, *_SENTENCES)
_TABLES = (process_tables, start_up_tables, load_tables, stage_tables)


def pass_tables(shown: ShownRun) -> tuple[PassTable, ...]:
    """Return the tables of all passes that have some, pass by pass."""
    return tuple(table for tables_of in _TABLES for table in tables_of(shown))


def pass_sentences(shown: ShownRun) -> tuple[str, ...]:
    """Return what passes without a table found: energy and soaks, a sentence a case."""
    found = [line for lines_of in _SENTENCES for line in lines_of(shown)]
    return tuple(line for line in found if line)


def block_lines(shown: ShownRun, *, encoding: str = "utf-8") -> list[str]:
    """Return the lines of every pass beside the standard one, each block after a blank line.

    Args:
        shown: Any run.
        encoding: Of the stream that the lines go to.
    """
    lines = [line for lines_of in _BLOCKS for line in lines_of(shown, encoding=encoding)]
    tables = [line for table in pass_tables(shown) for line in table_lines(table)]
    return [*lines, *(encodable(line, encoding) for line in tables)]
