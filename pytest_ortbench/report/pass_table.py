"""A small table of what a pass found on a case: the page lays it out, the terminal prints it."""

from __future__ import annotations

from dataclasses import dataclass

from pytest_ortbench.analysis.paired_ratio import PairedRatio
from pytest_ortbench.analysis.sentences import digits_for
from pytest_ortbench.core.units import significant


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


#: Headings of :func:`ratio_cells`.
RATIO_HEADINGS = ("ratio", "95 % interval", "rounds")


def ratio_cells(found: PairedRatio) -> tuple[str, str, str]:
    """Return the cells of a ratio: ``×1.50``, its interval, its rounds."""
    digits = digits_for(found.value, found.low, found.high)
    low, high = (significant(end, digits) for end in (found.low, found.high))
    return f"×{significant(found.value, digits)}", f"[{low}, {high}]", str(found.rounds)


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
