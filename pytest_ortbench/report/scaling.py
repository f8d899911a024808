"""The scaling over callers and sessions as lines."""

from __future__ import annotations

from pytest_ortbench.analysis.scaling import Scaling, ScalingPoint, scalings
from pytest_ortbench.core.units import counted, format_amount, significant
from pytest_ortbench.report.entries import ShownRun
from pytest_ortbench.report.escape import encodable, one_line

_HEADINGS = (
    "sessions",
    "callers each",
    "call",
    "spinning",
    "threads in all",
    "items/s",
    "efficiency",
    "p50",
    "CPU/inf",
    "peak RSS",
)


def scaling_lines(shown: ShownRun, *, encoding: str = "utf-8") -> list[str]:
    """Return a small table for each scaling of a run, with a blank line before each.

    Args:
        shown: Any run.
        encoding: Of the stream that the lines go to.
    """
    lines: list[str] = []
    several = len({result.case.runtime.label for result in shown.run.cases}) > 1
    for scaling in scalings(shown.run, shown.summaries):
        lines += ["", _heading(scaling, runtime=several), *_table(scaling)]
    return [encodable(line, encoding) for line in lines]


def _heading(scaling: Scaling, *, runtime: bool) -> str:
    where = f"+{scaling.runtime}" if runtime else ""
    ranked = [point for point in scaling.points if not point.barred]
    if not ranked:
        return f"{one_line(scaling.name)}{where}: nothing can be ranked"
    best = max(ranked, key=lambda point: point.throughput.value)
    return (
        f"{one_line(scaling.name)}{where}: highest throughput {_rate(best)} with "
        f"{counted(best.sessions, 'session')} of {counted(best.concurrency, 'caller')}{_how(best)}"
    )


def _table(scaling: Scaling) -> list[str]:
    rows = [_HEADINGS, *(_cells(point) for point in scaling.points)]
    # What is the same in all points, and was not asked for, is no column.
    shown = [
        column
        for column, heading in enumerate(_HEADINGS)
        if heading not in ("call", "spinning") or len({row[column] for row in rows[1:]}) > 1
    ]
    widths = {column: max(len(row[column]) for row in rows) for column in shown}
    return ["  " + "  ".join(row[column].rjust(widths[column]) for column in shown) for row in rows]


def _cells(point: ScalingPoint) -> tuple[str, ...]:
    return (
        str(point.sessions),
        str(point.concurrency),
        point.call,
        point.spin or "default",
        str(point.total_threads),
        # The heading names the unit: a column of rates has no other one.
        significant(point.throughput.value),
        f"{100 * point.efficiency:.0f} %",
        "-" if point.latency is None else format_amount(point.latency.value, "s"),
        "-" if point.cpu_s is None else format_amount(point.cpu_s, "s"),
        "-" if point.peak_rss is None else format_amount(point.peak_rss, "bytes"),
    )


def _how(point: ScalingPoint) -> str:
    """What differs from the usual way of calling."""
    call = ", run_async" if point.call == "async" else ""
    return f"{call}, spinning {point.spin}" if point.spin else call


def _rate(point: ScalingPoint) -> str:
    return format_amount(point.throughput.value, "1/s")
