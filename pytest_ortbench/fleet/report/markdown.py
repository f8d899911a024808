"""A comparison as Markdown, for an issue, a wiki or the summary of a CI job."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from pytest_ortbench.fleet.report.view import (
    HOLE,
    CellText,
    ComparisonView,
    Insert,
    Section,
    cell_texts,
    counted_text,
    overall_mark,
    overall_text,
)
from pytest_ortbench.report.escape import markdown, markdown_row

#: A table with more rows is read by programs: the CSV has all of them.
ROWS = 200


def render_comparison_markdown(view: ComparisonView) -> str:
    """Write the answer first, then the sides, the tables, and what to mind."""
    parts = [
        [f"## {markdown(view.title)}"],
        [f"- {markdown(sentence)}" for sentence in view.answer],
        *([] if view.is_of_one else _overview(view)),
        *(part for block in view.blocks for part in _block(block)),
        *(part for section in view.sections for part in _section(section)),
        *(_block(view.by_yardstick) if view.by_yardstick else []),
        [f"- No number: {markdown(text)}" for text in view.holes],
        [f"- {markdown(text)}" for text in view.unsaid_warnings],
    ]
    return "\n\n".join("\n".join(part) for part in parts if part) + "\n"


def _overview(view: ComparisonView) -> list[list[str]]:
    """The sides over all cases, and what that comes to."""
    main = view.over_all
    return [
        _table(
            [
                view.axis,
                *(["what it is"] if view.abouts else []),
                f"{'cases' if main is view.main else 'workloads'} that can be compared",
                "geometric mean",
                "",
            ],
            [
                [
                    side.label,
                    *([view.about(index)] if view.abouts else []),
                    counted_text(main, index),
                    overall_text(main, index),
                    overall_mark(main, index),
                ]
                for index, side in enumerate(main.sides)
            ],
            right=(2, 3) if view.abouts else (1, 2),
        ),
        [
            markdown(
                f"Ratio: contender ÷ baseline ({view.baseline}), with its 95 % interval. "
                + view.counts
                + (f" Every side: {view.shared}." if view.shared else "")
            )
        ],
        [f"- {markdown(sentence)}" for sentence in view.aside],
    ]


def _block(block: Insert) -> list[list[str]]:
    return [
        [f"### {markdown(block.heading)}"],
        _table(block.headings, block.rows, right=block.right) if block.rows else [],
        [f"- {markdown(text)}" for text in block.sentences],
    ]


def _section(section: Section) -> list[list[str]]:
    matrix = section.matrix
    headings = ["model", "case", *(side.label for side in matrix.sides)]
    shown = matrix.rows[:ROWS]
    table = _table(
        headings,
        [
            [row.model, row.label, *(cell_text(cell) for cell in cell_texts(row, matrix))]
            for row in shown
        ],
        right=range(2, len(headings)),
    )
    if len(shown) < len(matrix.rows):
        table += ["", f"… and {len(matrix.rows) - len(shown)} more rows; the CSV has them."]
    return [[f"### {markdown(section.heading)}"], [markdown(section.about)], table]


def cell_text(cell: CellText) -> str:
    """Write one cell: number, variant, ratio, and whether it is best or a tie."""
    if not cell.number:
        return HOLE
    variant = f"({cell.variant})" if cell.variant else ""
    # A number that must not be compared keeps its reason beside it.
    note = f"[{cell.note}]" if cell.note else ""
    return " ".join(filter(None, (cell.number, variant, cell.ratio, cell.mark, note)))


def _table(
    headings: Sequence[str], rows: Iterable[Sequence[str]], *, right: Iterable[int]
) -> list[str]:
    numbers = set(right)
    rule = ["---:" if index in numbers else "---" for index in range(len(headings))]
    return [
        markdown_row(map(markdown, headings)),
        markdown_row(rule),
        *(markdown_row(map(markdown, row)) for row in rows),
    ]
