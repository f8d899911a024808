"""The files of a run that CI services show, and its annotations."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from pytest_ortbench.core.complaint import Complaint
from pytest_ortbench.core.whole_file import append_whole, replace_file
from pytest_ortbench.plugin.destinations import is_job_summary
from pytest_ortbench.report.ci.annotations import annotation_lines
from pytest_ortbench.report.ci.code_quality import render_code_quality
from pytest_ortbench.report.ci.metrics_report import render_metrics_report
from pytest_ortbench.report.ci.run_verdict import gate_complaints
from pytest_ortbench.report.ci.summary import (
    COMMENT_ROOM,
    JOB_ROOM,
    run_summary,
    summary_without_cases,
)

if TYPE_CHECKING:
    from pytest_ortbench.plugin.bench import Bench


def complaints_of(bench: Bench) -> list[Complaint]:
    """Return everything that is wrong with a run, verdicts of its gate first."""
    told = bench.complaints.told(bench.outcomes.failed)
    if bench.finished is None:
        return told
    gate = gate_complaints(
        bench.finished,
        strict=bench.options.gate_strict,
        path_of=lambda key: bench.complaints.file_of(bench.planned.get(key)),
    )
    return [*gate, *told]


def annotations_of(bench: Bench) -> list[str]:
    """Return the lines that GitHub Actions takes for annotations."""
    return annotation_lines(complaints_of(bench))


def write_comment(bench: Bench, path: Path) -> None:
    """Write the summary of a run, for a comment: an earlier one is replaced."""
    replace_file(path, run_summary(bench.shown, complaints_of(bench)).encode())
    bench.files.append(("summary", path))


def write_job_summary(bench: Bench, path: Path) -> None:
    """Append the summary to what the step wrote before, in the room that this leaves."""
    taken = path.stat().st_size if path.is_file() else 0
    room = max(COMMENT_ROOM, JOB_ROOM - taken)
    append_whole(path, run_summary(bench.shown, complaints_of(bench), room=room).encode())


def write_without_cases(bench: Bench, path: Path) -> None:
    """Write that nothing was measured."""
    reasons = [complaint.text for complaint in complaints_of(bench)]
    write = append_whole if is_job_summary(path) else replace_file
    write(path, summary_without_cases(reasons).encode())
    bench.files.append(("summary", path))


def write_code_quality(bench: Bench, path: Path) -> None:
    """Write GitLab's report of code quality."""
    replace_file(path, render_code_quality(complaints_of(bench)).encode())
    bench.files.append(("code quality", path))


def write_metrics_report(bench: Bench, path: Path) -> None:
    """Write GitLab's metrics report."""
    replace_file(path, render_metrics_report(bench.shown).encode())
    bench.files.append(("metrics report", path))
