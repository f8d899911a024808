"""A comparison as CSV: one line for each case of each side, holes too."""

from __future__ import annotations

from collections.abc import Iterator

from pytest_ortbench.core.metrics import METRICS
from pytest_ortbench.fleet.numbers.matrix import Cell
from pytest_ortbench.fleet.report.view import ComparisonView
from pytest_ortbench.report.csv import csv_lines
from pytest_ortbench.report.escape import csv_text

COLUMNS = (
    "table",
    "side",
    "is_baseline",
    "model",
    "row",
    "case_id",
    "runtime",
    "run_id",
    "metric",
    "unit",
    "value",
    "low",
    "high",
    "ratio",
    "ratio_low",
    "ratio_high",
    "differs_from_baseline",
    "rank",
    "flags",
    "reason",
    # Appended.
    "role",
)


def render_comparison_csv(view: ComparisonView) -> str:
    """Write every cell as a line in SI units; an empty field is a number that is not known.

    Text that a spreadsheet would take for a formula gets a ``'`` in front.
    """
    return csv_lines(COLUMNS, _rows(view))


def _rows(view: ComparisonView) -> Iterator[list[object]]:
    for section in view.sections:
        matrix = section.matrix
        for row in matrix.rows:
            for index, (side, cell) in enumerate(zip(matrix.sides, row.cells, strict=True)):
                start = [
                    section.key,
                    csv_text(side.label),
                    int(index == matrix.baseline),
                    csv_text(row.model),
                    csv_text(row.label),
                ]
                unit = METRICS[matrix.metric].unit
                yield [*start, *_fields(cell, matrix.metric, unit)]


def _fields(cell: Cell, metric: str, unit: str) -> list[str]:
    quantity, ratio, case = cell.quantity, cell.ratio, cell.case
    rank = "best" if cell.best else "tie" if cell.tie else ""
    return [
        csv_text(case.case_id) if case else "",
        csv_text(case.runtime) if case else "",
        csv_text(cell.run_id),
        metric,
        unit,
        *(_numbers(quantity.value, quantity.low, quantity.high) if quantity else [""] * 3),
        *(_numbers(ratio.value, ratio.low, ratio.high) if ratio else [""] * 3),
        "" if ratio is None else str(int(cell.differs)),
        rank,
        " ".join(case.blurred_by) if case else "",
        csv_text(cell.reason),
        case.role if case else "",
    ]


def _numbers(*values: float | None) -> list[str]:
    return ["" if value is None else repr(float(value)) for value in values]
