"""A comparison in the terminal: sides, tables, what to mind, and the answer as the last lines."""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

from pytest_ortbench.fleet.report.view import (
    HOLE,
    NOISY,
    CellText,
    ComparisonView,
    Insert,
    Section,
    cell_texts,
    counted_text,
    overall_mark,
    overall_text,
)
from pytest_ortbench.report.escape import encodable, one_line

if TYPE_CHECKING:
    from rich.table import Table
    from rich.text import Text

    from pytest_ortbench.fleet.numbers.matrix import Matrix

#: Rows of one table; more scroll away the answer.
ROWS = 40
#: Characters that a side needs with intervals, with the ratio alone, and the row labels.
WIDE, NARROW, LABELS = 38, 11, 34

#: A cell of a table of costs is folded only beyond this.
CELL = 28
#: Columns of such a table that name a row, and blanks between columns.
NAMES, GAP = 2, 2

_STYLES = {"best": "bold green", "tie": "green", NOISY: "", "": ""}


def render_comparison_table(
    view: ComparisonView,
    *,
    width: int,
    color: bool,
    encoding: str = "utf-8",
    rows: int = ROWS,
    wrap: bool = True,
) -> str:
    """Render a comparison.

    Args:
        view: The comparison.
        width: Characters that a line may have.
        color: Whether to emit ANSI colours.
        encoding: Of the stream that it goes to.
        rows: Most rows of one table; 0 for all.
        wrap: Whether sentences are wrapped, too; else each is one line.
    """
    from rich.console import Console

    stream = io.StringIO()
    console = Console(
        file=stream,
        width=max(width, 60),
        force_terminal=color,
        color_system="standard" if color else None,
        highlight=False,
        markup=False,
        emoji=False,
        legacy_windows=False,
        _environ={},
    )

    def plain(text: str) -> str:
        return encodable(one_line(text), encoding)

    console.print(plain(view.title), style="bold")
    if view.shared:
        console.print(plain(f"every side: {view.shared}"), style="dim")
    if not view.is_of_one:
        console.print(_sides(view, encoding))
    for aside in view.aside:
        console.print(plain(aside), style="dim", soft_wrap=not wrap)
    for section in view.sections:
        console.print()
        console.print(plain(section.heading), style="bold")
        # Sides for which there is no room beside each other stand below, again with the baseline.
        groups, wide = _fitting(section.matrix, max(width, 60))
        for number, group in enumerate(groups):
            if number:
                console.print()
            console.print(_rows(section, group, rows, encoding, wide=wide))
        left_out = len(section.matrix.rows) - rows if rows else 0
        if left_out > 0:
            console.print(plain(f"and {left_out} more rows; --rows=0 shows them"), style="dim")
    for block in (*view.blocks, *filter(None, [view.by_yardstick])):
        console.print()
        console.print(plain(block.heading), style="bold")
        for columns in _bands(block, max(width, 60)) if block.rows else ():
            console.print(_block(block, columns, encoding))
        for text in block.sentences:
            console.print(plain(text), style="dim", soft_wrap=not wrap)
    console.print()
    note = (
        f"Ratios: contender ÷ baseline ({view.baseline}), 95 % interval in brackets. * best, = no "
        f"clear difference from the best, {HOLE} no number, (…) a number that must not be "
        "compared; a number without × has no baseline."
    )
    ratios = () if view.is_of_one else (view.counts, note)
    for text in (*ratios, *(f"no number: {hole}" for hole in view.holes), *view.unsaid_warnings):
        console.print(plain(text), soft_wrap=not wrap)
    console.print()
    for text in view.answer:
        console.print(plain(text), soft_wrap=not wrap)
    lines = [line.rstrip() for line in stream.getvalue().splitlines()]
    return "\n".join(lines) + "\n"


def _column_width(block: Insert, column: int) -> int:
    """What the cells of a column need; its heading may take several lines."""
    words = block.headings[column].split()
    cells = [row[column] for row in block.rows]
    return min(CELL, max(map(len, (*words, *cells)), default=0))


def _bands(block: Insert, width: int) -> list[list[int]]:
    """Columns that have room beside each other; each further band begins with the machine again."""
    bands: list[list[int]] = [[]]
    used = 0
    for column in range(len(block.headings)):
        room = _column_width(block, column) + GAP
        if used + room > width and len(bands[-1]) > NAMES:
            bands.append(list(range(NAMES)))
            used = sum(_column_width(block, name) + GAP for name in range(NAMES))
        bands[-1].append(column)
        used += room
    return bands


def _block(block: Insert, columns: Sequence[int], encoding: str) -> Table:
    table = _table()
    for index in columns:
        justify: Literal["left", "right"] = "right" if index in block.right else "left"
        # A word that is too long goes on in the next line; nothing is cut.
        table.add_column(
            _text(block.headings[index], encoding),
            justify=justify,
            overflow="fold",
            width=_column_width(block, index),
        )
    for row in block.rows:
        style = _STYLES.get(row[0], "")
        table.add_row(*(_text(row[index], encoding, style) for index in columns))
    return table


def _sides(view: ComparisonView, encoding: str) -> Table:
    matrix = view.over_all
    table = _table()
    table.add_column(view.axis, overflow="fold")
    table.add_column(
        "comparable cases" if matrix is view.main else "comparable workloads",
        justify="right",
        no_wrap=True,
    )
    table.add_column("geometric mean", no_wrap=True)
    table.add_column("")
    abouts = view.abouts
    if abouts:
        table.add_column("what it is", ratio=1)
    for index, side in enumerate(matrix.sides):
        mark = overall_mark(matrix, index)
        table.add_row(
            _text(side.label, encoding, _STYLES[mark]),
            counted_text(matrix, index),
            _text(overall_text(matrix, index), encoding, _STYLES[mark]),
            _text(mark, encoding, _STYLES[mark]),
            *([_text(abouts[index], encoding, "dim")] if abouts else []),
        )
    return table


def _rows(
    section: Section, shown: Sequence[int], limit: int, encoding: str, *, wide: bool
) -> Table:
    matrix = section.matrix
    table = _table()
    table.add_column("model", overflow="fold")
    table.add_column("case", overflow="fold")
    for index in shown:
        table.add_column(_text(matrix.sides[index].label, encoding), justify="right")
    for row in matrix.rows[: limit or None]:
        texts = cell_texts(row, matrix)
        table.add_row(
            _text(row.model, encoding),
            _text(row.label, encoding),
            *(
                _cell(texts[index], encoding, wide=wide, base=index == matrix.baseline)
                for index in shown
            ),
        )
    return table


def _fitting(matrix: Matrix, width: int) -> tuple[list[list[int]], bool]:
    """Which sides there is room for beside each other, and whether with their intervals."""
    room = width - LABELS
    wide = (len(matrix.sides) - 1) * WIDE + NARROW <= room
    fitting = len(matrix.sides) if wide else max(2, room // NARROW)
    # The baseline always stands in the table: the ratios of the others refer to it.
    others = [index for index in range(len(matrix.sides)) if index != matrix.baseline]
    beside = max(1, fitting - 1)
    groups = [
        sorted([matrix.baseline, *others[start : start + beside]])
        for start in range(0, len(others), beside)
    ]
    return groups or [[matrix.baseline]], wide


def _cell(cell: CellText, encoding: str, *, wide: bool, base: bool) -> Text:
    if not cell.number:
        return _text(HOLE, encoding, "dim")
    if cell.barred:
        return _text(f"({cell.number})", encoding, "dim")
    mark = {"best": " *", "tie": " =", NOISY: " ="}.get(cell.mark, "  ")
    if not wide:
        # Without a baseline there is no ratio, but the number was measured all the same.
        number = cell.number if base else cell.short or cell.number
        return _text(number + mark, encoding, _STYLES[cell.mark])
    lines = " ".join(filter(None, (cell.number, cell.ratio)))
    text = _text(lines + mark, encoding, _STYLES[cell.mark])
    if cell.variant:
        text.append("\n" + encodable(cell.variant, encoding) + "  ", "dim")
    return text


def _text(text: str, encoding: str, style: str = "") -> Text:
    from rich.text import Text

    return Text(encodable(one_line(text), encoding), style)


def _table() -> Table:
    from rich.table import Table

    return Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
