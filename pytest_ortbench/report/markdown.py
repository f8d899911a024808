"""Cases and their failures in Markdown, line by line."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pytest_ortbench.report import legend
from pytest_ortbench.report.case_tables import CaseTable
from pytest_ortbench.report.cells import texts
from pytest_ortbench.report.column import Column
from pytest_ortbench.report.entries import ShownRun, by_model
from pytest_ortbench.report.escape import markdown, markdown_row


def table_head(columns: Sequence[Column]) -> Iterator[str]:
    """Yield the headings of a table of cases, and the rule below them."""
    yield markdown_row([markdown(heading) for heading in ("model", *_headings(columns))])
    yield markdown_row(["---", *("---:" if column.right else "---" for column in columns)])


def _headings(columns: Sequence[Column]) -> Iterator[str]:
    return (column.heading for column in columns)


def case_rows(table: CaseTable) -> Iterator[str]:
    """Yield a row of the table for each case."""
    for group in table.groups:
        for cells in texts(group, table.columns, table.groups):
            row = [group.model.name, *(cells[column.key] for column in table.columns)]
            yield markdown_row([markdown(cell) for cell in row])


def failure_lines(shown: ShownRun) -> Iterator[str]:
    """Yield a line for the cases of a model that failed alike: which, how, and what to do."""
    for group in by_model(shown.entries):
        for failure in legend.failure_groups(group.entries):
            names = legend.named([entry.label for entry in failure.entries])
            yield (
                f"- {markdown(group.model.name)}: {markdown(names)}: "
                f"**{failure.status}**: {markdown(failure.sentence)}"
            )
