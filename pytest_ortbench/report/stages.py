"""The user's stages of each case: as data that the page lays out, and as lines."""

from __future__ import annotations

from dataclasses import dataclass

from pytest_ortbench.analysis.summary import Summary, summarise
from pytest_ortbench.core.outcome import CaseResult
from pytest_ortbench.core.run import Run
from pytest_ortbench.core.stages import Stages
from pytest_ortbench.core.units import format_amount
from pytest_ortbench.report.escape import encodable, one_line

HEADINGS = ("stage", "p50", "interval", "p90", "p99")

#: Rows by the name that their metrics start with.
_ROWS = {
    "preprocess": "preprocess",
    "frame_inference": "inference",
    "postprocess": "postprocess",
    "frame": "frame",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class StageTable:
    """The stages of one case.

    Attributes:
        title: The case, the file, how many frames.
        rows: One a stage, as :data:`HEADINGS`; none if there is no number.
        remark: Frames in turn and overlapped, or why there is no number.
    """

    title: str
    rows: tuple[tuple[str, ...], ...]
    remark: str


def stage_tables(run: Run) -> tuple[StageTable, ...]:
    """Return a table for each case that stages were asked for, in their order."""
    return tuple(
        _table(result, result.stages)
        for result in run.cases
        if result.stages is not None and result.failure is None
    )


def stage_lines(run: Run, *, encoding: str = "utf-8") -> list[str]:
    """Return the same as lines, with a blank one before each table.

    Args:
        run: Any run.
        encoding: Of the stream that the lines go to.
    """
    lines: list[str] = []
    for table in stage_tables(run):
        if not table.rows:
            lines += ["", f"{table.title}: {table.remark}"]
            continue
        rows = (HEADINGS, *table.rows)
        widths = [max(len(row[column]) for row in rows) for column in range(len(HEADINGS))]
        lines += ["", table.title]
        lines += ["  " + _laid_out(row, widths) for row in rows]
        lines.append(f"  {table.remark}")
    return [encodable(line, encoding) for line in lines]


def _laid_out(row: tuple[str, ...], widths: list[int]) -> str:
    name, *cells = row
    aligned = [cell.rjust(width) for cell, width in zip(cells, widths[1:], strict=True)]
    return "  ".join([name.ljust(widths[0]), *aligned]).rstrip()


def _table(result: CaseResult, stages: Stages) -> StageTable:
    name = one_line(f"stages of {result.case.case_id} ({stages.file}")
    if not stages.workers:
        return StageTable(title=f"{name})", rows=(), remark=one_line(stages.reason))
    summary = summarise(result)
    frames = sum(worker.frame.count for worker in stages.workers)
    workers = len(stages.workers)
    by = f"{frames} frames by {workers} worker{'s' if workers != 1 else ''}"
    different = f", {stages.frames} different ones" if stages.frames > 1 else ""
    return StageTable(
        title=f"{name}, {by}{different})",
        rows=tuple(
            (text, *_cells(summary, key)) for key, text in _ROWS.items() if _known(summary, key)
        ),
        remark=_rates(summary),
    )


def _known(summary: Summary, stage: str) -> bool:
    """Whether the file has that stage; too few frames are another matter."""
    return f"{stage}_p50" in summary.quantities or summary.missing.get(
        f"{stage}_p50", ""
    ).startswith("n<")


def _cells(summary: Summary, stage: str) -> tuple[str, ...]:
    median = summary.quantities.get(f"{stage}_p50")
    interval = ""
    if median is not None and median.low is not None and median.high is not None:
        low, high = (format_amount(end, "s") for end in (median.low, median.high))
        interval = f"[{low}, {high}]"
    p50, p90, p99 = (_shown(summary, f"{stage}_{name}") for name in ("p50", "p90", "p99"))
    return p50, interval, p90, p99


def _shown(summary: Summary, name: str) -> str:
    quantity = summary.quantities.get(name)
    if quantity is None:
        return summary.missing.get(name, "-")
    return format_amount(quantity.value, quantity.unit)


def _rates(summary: Summary) -> str:
    in_turn, overlapped = (summary.quantities.get(name) for name in ("frame_rate", "pipeline_rate"))
    assert in_turn is not None
    text = f"one frame after the other: {format_amount(in_turn.value, '1/s')}"
    if overlapped is None:
        return text
    return (
        f"{text}; a thread for each stage: {format_amount(overlapped.value, '1/s')} "
        f"({overlapped.value / in_turn.value:.2f} times as many)"
    )
