"""A comparison as one self-contained page, in the look of the report of a run.

Import this module inside functions: it brings jinja2 and, for the figures, matplotlib.
"""

from __future__ import annotations

import base64
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import resources

from pytest_ortbench.core.version import VERSION
from pytest_ortbench.fleet.numbers.matrix import Cell, Matrix, Row
from pytest_ortbench.fleet.report.cards import comparison_cards
from pytest_ortbench.fleet.report.view import (
    HOLE,
    CellText,
    ComparisonView,
    cell_texts,
    counted_text,
    overall_mark,
    overall_text,
)
from pytest_ortbench.report.escape import one_line
from pytest_ortbench.report.one_page import render_page

_SHARED = "pytest_ortbench.report.html"


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownCell:
    """One cell: what it says, the value to sort by, and a note unless a neighbour has the same."""

    text: CellText
    value: str
    note: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownRow:
    """One row of a table."""

    model: str
    label: str
    cells: tuple[ShownCell, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownSide:
    """One side in the overview."""

    label: str
    about: str
    cells: str
    mean: str
    mark: str
    value: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownTable:
    """One table of the page."""

    key: str
    heading: str
    about: str
    sides: tuple[str, ...]
    baseline: int
    rows: tuple[ShownRow, ...]


def render_comparison_html(
    view: ComparisonView, *, pictures: Sequence[tuple[str, bytes]] = ()
) -> str:
    """Return the page of a comparison.

    All is inside; the content security policy allows exactly our style and script.

    Args:
        view: The comparison.
        pictures: Descriptions and SVG data of figures.
    """
    main = view.main
    return render_page(
        _text(__package__, "compare.html.j2"),
        style=_text(_SHARED, "style.css") + _text(__package__, "compare.css"),
        script=_text(_SHARED, "table.js"),
        view=view,
        answers=comparison_cards(view),
        version=VERSION,
        hole=HOLE,
        sides=_sides(view),
        counted="cases" if view.over_all is main else "workloads",
        abouts=bool(view.abouts),
        best=_table(view, 0) if len(view.sections) > 1 else None,
        cases=_table(view, -1),
        models=list(dict.fromkeys(one_line(row.model) for row in main.rows)),
        pictures=[
            (
                one_line(description),
                f"data:image/svg+xml;base64,{base64.b64encode(data).decode()}",
            )
            for description, data in pictures
        ],
        runs=[
            (one_line(run.run_id), one_line(f"{run.host}, {run.started_at}")) for run in view.runs
        ],
    )


def _text(package: str | None, name: str) -> str:
    assert package is not None
    return resources.files(package).joinpath(name).read_text(encoding="utf-8")


def _sides(view: ComparisonView) -> list[ShownSide]:
    matrix = view.over_all
    return [
        ShownSide(
            label=one_line(side.label),
            about=view.about(index),
            cells=counted_text(matrix, index),
            mean=overall_text(matrix, index),
            mark=overall_mark(matrix, index),
            value=_value(matrix, index),
        )
        for index, side in enumerate(matrix.sides)
    ]


def _value(matrix: Matrix, index: int) -> str:
    ratio = matrix.overall[index].ratio
    return "" if ratio is None else repr(ratio.value)


def _table(view: ComparisonView, index: int) -> ShownTable:
    section = view.sections[index]
    matrix = section.matrix
    return ShownTable(
        key=section.key,
        heading=section.heading,
        about=section.about,
        sides=tuple(one_line(side.label) for side in matrix.sides),
        baseline=matrix.baseline,
        rows=tuple(
            ShownRow(
                model=one_line(row.model),
                label=one_line(row.label),
                cells=_cells(row, matrix),
            )
            for row in matrix.rows
        ),
    )


def _cells(row: Row, matrix: Matrix) -> tuple[ShownCell, ...]:
    texts = cell_texts(row, matrix)
    told: set[str] = set()
    shown = []
    for text, cell in zip(texts, row.cells, strict=True):
        note = "" if text.note in told and not text.number else text.brief
        told.add(text.note)
        shown.append(ShownCell(text=text, value=_sort_value(cell), note=note))
    return tuple(shown)


def _sort_value(cell: Cell) -> str:
    """Cells sort by their number, in SI units; what must not be compared goes last."""
    return repr(cell.quantity.value) if cell.comparable and cell.quantity else ""
