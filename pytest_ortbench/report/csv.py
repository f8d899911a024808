"""Flat rows as CSV that a spreadsheet can open without running anything."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping, Sequence

from pytest_ortbench.analysis.rows import COLUMNS, Cell
from pytest_ortbench.report.escape import csv_text


def render_csv(rows: Sequence[Mapping[str, Cell]]) -> str:
    """Write rows as CSV with a heading line, also where there is no row.

    Numbers are written so that they read back equal (SI units); an empty field is a number that
    was not measured. Text that a spreadsheet would take for a formula gets a ``'`` in front, and
    control characters are spelt out.

    Args:
        rows: As :func:`pytest_ortbench.analysis.rows.row` gives them, of any number of runs.

    Returns:
        Lines that end in a line feed.
    """
    return csv_lines(COLUMNS, ([_field(row[column]) for column in COLUMNS] for row in rows))


def csv_lines(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Return a heading line and rows of fields that are inert already."""
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(rows)
    return stream.getvalue()


def _field(cell: Cell) -> str:
    if cell is None:
        return ""
    return csv_text(cell) if isinstance(cell, str) else repr(cell)
