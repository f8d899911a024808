"""The summary of a run in Markdown: a comment on a pull request, or the summary of a job."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from pytest_ortbench.core.acceptance import FILE_NAME, accept_command
from pytest_ortbench.core.complaint import GATE, RUN, Complaint
from pytest_ortbench.core.gate import SUBJECTS
from pytest_ortbench.core.metrics import METRICS
from pytest_ortbench.core.units import counted
from pytest_ortbench.gate.numbers.sentences import unnamed_notes
from pytest_ortbench.gate.report.lines import (
    count_lines,
    gate_row_markdown,
    gate_rows,
    gate_table_head,
    runtimes_of,
)
from pytest_ortbench.passes.registry import PASSES
from pytest_ortbench.report import legend
from pytest_ortbench.report.answers import answer_lines
from pytest_ortbench.report.case_tables import case_tables
from pytest_ortbench.report.ci.fitting import SummaryPart, fitted
from pytest_ortbench.report.ci.run_verdict import Outcome, verdict_of
from pytest_ortbench.report.entries import ShownRun
from pytest_ortbench.report.escape import cut, markdown
from pytest_ortbench.report.flag_notes import flag_notes
from pytest_ortbench.report.markdown import case_rows, failure_lines, table_head
from pytest_ortbench.report.precisions import precision_markdown
from pytest_ortbench.report.shards import shard_lines

#: The first line of every summary: whoever updates a comment finds it by this.
MARKER = "<!-- pytest-ortbench -->"

#: GitHub takes 65,536 characters in a comment.
COMMENT_ROOM = 65_000
#: A job summary may have 1 MiB a step.
JOB_ROOM = 1_000_000

#: What is wrong is told up to so many characters of each; the log has it whole.
_LONGEST = 700
#: A name in a table.
_LONGEST_CELL = 300

_MARKS: dict[Outcome, str] = {
    "failed": "❌",
    "nothing": "❌",
    "interrupted": "⚠️",
    "undecided": "⚠️",
    "partly": "⚠️",
    "passed": "✅",
    "measured": "✅",
}


def run_summary(
    shown: ShownRun, complaints: Sequence[Complaint] = (), *, room: int = COMMENT_ROOM
) -> str:
    """Write what a reviewer wants to know of a run: the verdict, what changed, the rest closed.

    Args:
        shown: The run.
        complaints: What is wrong with it.
        room: Bytes that the text may have.
    """
    run = shown.run
    verdict = verdict_of(run, complaints)
    start = _start(verdict.outcome, verdict.headline)
    end = markdown(f"Run {run.run_id}, pytest-ortbench {run.ortbench_version}.") + "\n"
    return fitted(start, _sections(shown, complaints), end, room=room)


def summary_without_cases(reasons: Sequence[str]) -> str:
    """Write the summary of a run that ended before a case was measured.

    Args:
        reasons: Why, as far as that is known.
    """
    start = _start("nothing", "ONNX models: nothing was measured")
    rows = tuple(f"- {_told(reason)}" for reason in reasons)
    note = "The output of pytest says more.\n"
    return fitted(start, [SummaryPart(rows=rows)] if rows else [], note, room=COMMENT_ROOM)


def unfinished_summary() -> str:
    """Write what stands in the file while a run lasts, and stays if the run is killed."""
    start = _start("interrupted", "ONNX models: the run has not ended")
    return f"{start}\nIt is still running, or it was killed before it could write its results.\n"


def _start(outcome: Outcome, headline: str) -> str:
    return f"{MARKER}\n## {_MARKS[outcome]} {markdown(cut(headline, _LONGEST))}\n"


def _told(text: str) -> str:
    """A message as one line of Markdown."""
    return markdown(cut(" ".join(text.split()), _LONGEST))


def _sections(shown: ShownRun, complaints: Sequence[Complaint]) -> Iterator[SummaryPart]:
    run = shown.run
    rows = gate_rows(run)
    head = tuple(gate_table_head())
    news = tuple(gate_row_markdown(row) for row in rows if row.is_news)
    quiet = tuple(gate_row_markdown(row) for row in rows if not row.is_news)
    if news:
        yield SummaryPart(head=head, rows=news, most=0.4)
    wrong = _complaint_lines(complaints, run.run_id)
    if wrong:
        yield SummaryPart(rows=wrong, most=0.6)
    counts = tuple(map(_told, count_lines(run.gate, runtimes_of(run))))
    if counts:
        yield SummaryPart(rows=counts, most=0.5)
    unnamed = tuple(map(_told, unnamed_notes(run.unnamed)))
    if unnamed:
        yield SummaryPart(rows=unnamed, most=0.3)
    if quiet:
        title = f"No worse: {counted(len(quiet), 'verdict')}"
        yield SummaryPart(title=title, head=head, rows=quiet)
    answers = tuple(f"- {_told(line)}" for line in answer_lines(shown))
    if answers:
        # What a gate has to say is what changed; without one, the answers are the news.
        yield SummaryPart(
            title="Which variant is recommended" if rows else "", rows=answers, most=0.5
        )
    for table in case_tables(shown.entries):
        if table.entries:
            name = table.name or counted(len(table.entries), "case")
            yield SummaryPart(
                title=f"All numbers: {name}",
                head=tuple(table_head(table.columns)),
                rows=tuple(case_rows(table)),
            )
    for owner in PASSES:
        text = owner.load(owner.markdown)(shown) if owner.markdown else ""
        if text.strip():
            yield SummaryPart(title=f"Results of {owner.name}", rows=tuple(text.splitlines()))
    precisions = precision_markdown(shown)
    if precisions:
        yield SummaryPart(title="Precisions", rows=tuple(precisions.splitlines()))
    failures = tuple(failure_lines(shown))
    if failures:
        yield SummaryPart(title=f"Not measured: {counted(len(failures), 'reason')}", rows=failures)
    notes = tuple(_notes(shown))
    if notes:
        yield SummaryPart(title="Flags, and what was left out", rows=notes)
    yield SummaryPart(title="How it was measured", rows=tuple(_origin(shown)))


def _complaint_lines(complaints: Sequence[Complaint], run_id: str) -> tuple[str, ...]:
    """What is wrong, by case, what fails first; tests that say the same of a case are one line.

    What the run says of a case that no test carried, its gate need not say again.
    """
    if any(complaint.is_unreached and complaint.kind == RUN for complaint in complaints):
        complaints = [one for one in complaints if not (one.is_unreached and one.kind == GATE)]
    by_case: dict[tuple[bool, str], Counter[str]] = {}
    for complaint in sorted(complaints, key=lambda entry: not entry.fails):
        name = complaint.case or complaint.test
        by_case.setdefault((complaint.fails, name), Counter())[complaint.text] += 1
    lines: list[str] = []
    for (fails, name), texts in by_case.items():
        start = "- " if fails else "- Warning: "
        told = [
            _told(text) + (f" ({times} tests)" if times > 1 else "")
            for text, times in texts.items()
        ]
        if not name:
            lines += [f"{start}{text}" for text in told]
            continue
        start += f"**{markdown(cut(name, _LONGEST_CELL))}**:"
        if len(told) == 1:
            lines.append(f"{start} {told[0]}")
        else:
            lines += [start, *(f"  - {text}" for text in told)]
    found = [
        complaint
        for complaint in complaints
        if complaint.kind == GATE and complaint.fails and not complaint.is_unreached
    ]
    if found:
        lines += [
            "",
            f"If it is meant: `{_accepting(found, run_id)}`, and commit `{FILE_NAME}`. The run is "
            "among the files that the job kept: put its folder into your folder of results, or "
            "write the path of its `run.json` behind `--run=`.",
        ]
    return tuple(lines)


def _accepting(found: Sequence[Complaint], run_id: str) -> str:
    """The command that accepts what a gate found: of one case as it is typed, else its form."""
    abouts = {complaint.about for complaint in found}
    cases = {complaint.case for complaint in found}
    case, about = found[0].case, found[0].about
    if len(cases) > 1 or not case or "`" in case:
        return accept_command("CASE", run=run_id)
    is_one = len(abouts) == 1 and (about in METRICS or about in SUBJECTS)
    return accept_command(case, about if is_one else "", run=run_id)


def _notes(shown: ShownRun) -> Iterator[str]:
    for note in flag_notes(shown.entries):
        yield f"- **{markdown(note.kind.name)}** {markdown(note.sentence)}"
    for line in legend.skip_lines(shown.run):
        yield f"- Left out: {_told(line)}"


def _origin(shown: ShownRun) -> Iterator[str]:
    run = shown.run
    for table in case_tables(shown.entries):
        for group in table.groups:
            about = legend.model_line(group)
            if about:
                yield f"- {markdown(cut(group.model.name, _LONGEST_CELL))}: {_told(about)}"
    sentences = (
        *legend.includes(shown.entries),
        f"Machine {legend.machine_line(run)}.",
        *(f"Shard {line}." for line in shard_lines(run)),
        *(
            f"Runtime {legend.runtime_line(label, info, run.machine.host)}."
            for label, info in run.runtimes.items()
        ),
        *(f"{line}." for line in legend.engine_lines(shown.entries)),
        *(f"{line}." for line in legend.chain_lines(shown.entries)),
        *(f"{line}." for line in legend.fixed_lines(shown.entries)),
    )
    for sentence in sentences:
        yield f"- {_told(sentence)}"
