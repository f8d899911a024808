"""A small table of what a pass found on a case: the page lays it out, the terminal prints it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class PassTable:
    """What a pass found on one case.

    Attributes:
        title: The pass, the case, what stands behind the numbers.
        headings: Of the columns; the first names a row, the others hold numbers.
        rows: As many cells each; none if there is no number.
        remarks: What follows from the rows, or why there are none; one paragraph each.
    """

    title: str
    headings: tuple[str, ...] = ()
    rows: tuple[tuple[str, ...], ...] = ()
    remarks: tuple[str, ...] = ()


def table_lines(table: PassTable) -> list[str]:
    """Return a table as lines, after a blank one."""
    if not table.rows:
        return ["", f"{table.title}: {'; '.join(table.remarks)}"]
    rows = (table.headings, *table.rows)
    widths = [max(len(row[column]) for row in rows) for column in range(len(table.headings))]
    return [
        "",
        table.title,
        *(f"  {_laid_out(row, widths)}" for row in rows),
        *(f"  {remark}" for remark in table.remarks),
    ]


def _laid_out(row: tuple[str, ...], widths: list[int]) -> str:
    name, *cells = row
    aligned = [cell.rjust(width) for cell, width in zip(cells, widths[1:], strict=True)]
    return "  ".join([name.ljust(widths[0]), *aligned]).rstrip()
