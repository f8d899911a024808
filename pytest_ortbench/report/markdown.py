"""The summary of a CI job, in Markdown."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from pytest_ortbench.passes.registry import PASSES
from pytest_ortbench.report import legend
from pytest_ortbench.report.answers import answer_lines
from pytest_ortbench.report.case_tables import CaseTable, case_tables
from pytest_ortbench.report.cells import texts
from pytest_ortbench.report.column import Column
from pytest_ortbench.report.entries import ShownRun, by_model
from pytest_ortbench.report.escape import markdown, markdown_row
from pytest_ortbench.report.precisions import precision_markdown

#: A job summary may have 1 MiB on GitHub, and nobody reads that much.
SUMMARY_ROWS = 500


def _cases(table: CaseTable) -> list[str]:
    rows: list[list[str]] = []
    for group in table.groups:
        for cells in texts(group, table.columns):
            rows.append([group.model.name, *(cells[column.key] for column in table.columns)])
    written = rows[:SUMMARY_ROWS]
    lines = [*_table(table.columns, written)]
    if len(written) < len(rows):
        lines += ["", f"… and {len(rows) - len(written)} more cases; the run document has them."]
    return lines


def _table(columns: Sequence[Column], rows: Iterable[Sequence[str]]) -> list[str]:
    headings = ["model", *(column.heading for column in columns)]
    rules = ["---", *("---:" if column.right else "---" for column in columns)]
    return [
        markdown_row([markdown(heading) for heading in headings]),
        markdown_row(rules),
        *(markdown_row([markdown(cell) for cell in row]) for row in rows),
    ]


def job_summary(shown: ShownRun) -> str:
    """Write what a reader of a CI job wants: the answers, the table, failures, what to mind.

    Returns:
        Markdown whose first block is the same text as the last lines in the terminal.
    """
    run = shown.run
    parts = [
        [f"## ONNX models on {markdown(run.machine.host)}"],
        [f"- {markdown(line)}" for line in answer_lines(shown)],
        # What is alike in all rows of a model stands below, with what else is said of it.
        *(_cases(table) for table in case_tables(shown.entries)),
        *(entry.load(entry.markdown)(shown).splitlines() for entry in PASSES if entry.markdown),
        precision_markdown(shown).splitlines(),
        [
            f"- {markdown(group.model.name)}: {markdown(about)}"
            for table in case_tables(shown.entries)
            for group in table.groups
            if (about := legend.model_line(group))
        ],
        _failures(shown),
        [
            f"- **{markdown(note.kind.name)}** {markdown(note.sentence)}"
            for note in legend.flag_notes(shown.entries)
        ],
        [f"- Left out: {markdown(line)}" for line in legend.skip_lines(run)],
        [
            markdown(sentence)
            for sentence in (
                *legend.includes(shown.entries),
                f"Machine {legend.machine_line(run)}.",
                *(
                    f"Runtime {legend.runtime_line(label, info, run.machine.host)}."
                    for label, info in run.runtimes.items()
                ),
                *(f"{line}." for line in legend.engine_lines(shown.entries)),
                f"Run {run.run_id}, pytest-ortbench {run.ortbench_version}.",
            )
        ],
    ]
    return "\n\n".join("\n".join(part) for part in parts if part) + "\n"


def _failures(shown: ShownRun) -> list[str]:
    lines: list[str] = []
    for group in by_model(shown.entries):
        for failure in legend.failure_groups(group.entries):
            names = legend.named([entry.label for entry in failure.entries])
            lines.append(
                f"- {markdown(group.model.name)}: {markdown(names)}: "
                f"**{failure.status}**: {markdown(failure.sentence)}"
            )
    return lines
