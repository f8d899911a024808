"""Several processes at a time as a table."""

from __future__ import annotations

from pytest_ortbench.analysis.judgements import is_barred, judgements_of
from pytest_ortbench.core.outcome import CaseResult
from pytest_ortbench.core.units import format_amount, significant
from pytest_ortbench.passes.processes.numbers import ProcessScaling, process_scaling
from pytest_ortbench.report.entries import ShownRun
from pytest_ortbench.report.escape import one_line
from pytest_ortbench.report.pass_table import PassTable

_HEADINGS = (
    "processes",
    "threads in all",
    "items/s",
    "efficiency",
    "p50",
    "CPU/inf",
    "peak RSS of all",
)


def process_tables(shown: ShownRun) -> tuple[PassTable, ...]:
    """Return a table for each case that was measured in several processes, in their order."""
    return tuple(
        _table(result, shown.name_of(result.case))
        for result in shown.run.cases
        if result.processes and result.failure is None
    )


def _table(result: CaseResult, case: str) -> PassTable:
    points = process_scaling(result)
    measured = [point for point in points if not point.reason]
    title = one_line(f"processes of {case}")
    if measured and is_barred(result, judgements_of(result)):
        title += ": not ranked, as the case itself is not"
    elif measured:
        best = max(measured, key=lambda point: point.rate)
        count = f"{best.processes} process{'es' if best.processes != 1 else ''}"
        title += f": highest throughput {format_amount(best.rate, '1/s')} with {count}"
    return PassTable(
        title=title,
        headings=_HEADINGS,
        rows=tuple(_row(point) for point in measured),
        remarks=(
            *(
                ["1 process: measured again for this table, so it differs from the row of the case"]
                if any(point.processes == 1 for point in measured)
                else []
            ),
            *(
                one_line(f"{point.processes} processes: {point.reason}")
                for point in points
                if point.reason
            ),
        ),
    )


def _row(point: ProcessScaling) -> tuple[str, ...]:
    return (
        str(point.processes),
        str(point.total_threads),
        # The heading names the unit: a column of rates has no other one.
        significant(point.rate),
        f"{100 * point.efficiency:.0f} %",
        format_amount(point.latency_s, "s"),
        format_amount(point.cpu_s, "s"),
        "-" if point.peak_bytes is None else format_amount(point.peak_bytes, "bytes"),
    )
