"""The user's stages of each case as a table."""

from __future__ import annotations

from pytest_ortbench.analysis.summary import Summary
from pytest_ortbench.core.interval import bounds_text
from pytest_ortbench.core.units import counted, format_amount, significant
from pytest_ortbench.passes.stages.facts import Stages
from pytest_ortbench.report.entries import ShownRun
from pytest_ortbench.report.escape import one_line
from pytest_ortbench.report.pass_table import PassTable
from pytest_ortbench.report.python_profile import profile_tables

HEADINGS = ("stage", "p50", "95 % interval", "p90", "p99")

#: Rows by the name that their metrics start with.
_ROWS = {
    "preprocess": "preprocess",
    "frame_inference": "inference",
    "postprocess": "postprocess",
    "frame": "frame",
}


def stage_tables(shown: ShownRun) -> tuple[PassTable, ...]:
    """Return tables of each case that stages were asked for, in their order."""
    return tuple(
        table
        for entry in shown.entries
        if (result := entry.result).stages is not None and result.failure is None
        for table in _tables(result.stages, entry.summary, shown.name_of(result.case))
    )


def _tables(stages: Stages, summary: Summary, case: str) -> tuple[PassTable, ...]:
    profiles = profile_tables(stages.python, f"the stages of {case} ({stages.file})", "frame")
    return (_table(stages, summary, case), *profiles)


def _table(stages: Stages, summary: Summary, case: str) -> PassTable:
    name = one_line(f"stages of {case} ({stages.file}")
    if not stages.workers:
        return PassTable(title=f"{name})", remarks=(one_line(stages.reason),))
    frames = sum(worker.frame.count for worker in stages.workers)
    different = f" ({stages.frames} different ones)" if stages.frames > 1 else ""
    by = f"{frames} frames{different} in {counted(len(stages.workers), 'worker process', 'es')}"
    return PassTable(
        title=f"{name}, {by})",
        headings=HEADINGS,
        rows=tuple(
            (text, *_cells(summary, key)) for key, text in _ROWS.items() if _known(summary, key)
        ),
        remarks=(_rates(summary),),
    )


def _known(summary: Summary, stage: str) -> bool:
    """Whether the file has that stage; too few frames are another matter."""
    return f"{stage}_p50" in {*summary.quantities, *summary.needed}


def _cells(summary: Summary, stage: str) -> tuple[str, ...]:
    median = summary.quantities.get(f"{stage}_p50")
    interval = ""
    if median is not None:
        interval = bounds_text(
            median.value, median.low, median.high, lambda value: format_amount(value, "s")
        )
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
    text = f"frames per second: {significant(in_turn.value)} one after the other"
    if overlapped is None:
        return text
    return (
        f"{text}; {significant(overlapped.value)} with a thread for each stage "
        f"({overlapped.value / in_turn.value:.2f} times as many)"
    )
