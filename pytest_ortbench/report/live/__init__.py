"""The page of a run in progress: how far it is, and a line for each finished case.

Import this package inside functions: it brings jinja2.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from importlib import resources

from pytest_ortbench.analysis.candidates import speed_metric
from pytest_ortbench.core.metrics import METRICS
from pytest_ortbench.core.run import Run
from pytest_ortbench.core.units import format_amount
from pytest_ortbench.report.entries import Entry, shown_run
from pytest_ortbench.report.escape import one_line
from pytest_ortbench.report.one_page import render_page


@dataclass(frozen=True, slots=True)
class LiveRow:
    """One finished case, as it stands in a line.

    Attributes:
        case: Its id, with the runtime where the run has several.
        metric: The metric that its speed is given in; empty without a number.
        value: That number with its unit; empty without one.
        failure: Kind of the failure; empty where there is none.
        message: What failed; empty where nothing did.
        flags: Its validity flags.
    """

    case: str
    metric: str = ""
    value: str = ""
    failure: str = ""
    message: str = ""
    flags: tuple[str, ...] = ()


def live_rows(run: Run, *, first: int = 0) -> list[LiveRow]:
    """Return a row for each finished case.

    Args:
        run: Any run, finished or not.
        first: Index of the first case that is wanted.
    """
    several = len({result.case.runtime.label for result in run.cases}) > 1
    cases = run.cases[first:]
    entries = shown_run(replace(run, cases=cases)).entries if cases else ()
    return [_row(entry, several=several) for entry in entries]


def render_live(run: Run, *, written_s: float | None) -> str:
    """Return the page of a run.

    Args:
        run: Any run, finished or not.
        written_s: Seconds since its journal was written to; ``None`` for a finished run.
    """
    return render_page(
        _text("page.html.j2"),
        style=_text("style.css"),
        script="",
        run=run,
        title=one_line(run.run_id),
        host=one_line(run.machine.host),
        rows=live_rows(run),
        written=None if written_s is None else format_amount(written_s, "s"),
    )


def _row(entry: Entry, *, several: bool) -> LiveRow:
    case, failure = entry.result.case, entry.result.failure
    name = one_line(case.case_id)
    if several:
        name += f"+{one_line(case.runtime.label)}"
    name += case.provider.role_note
    if failure is not None:
        return LiveRow(name, failure=failure.kind, message=one_line(failure.message))
    metric = speed_metric(case)
    quantity = entry.quantity(metric)
    if quantity is None:
        return LiveRow(name, flags=tuple(entry.flags))
    value = format_amount(quantity.value, METRICS[metric].unit)
    return LiveRow(name, metric=metric, value=value, flags=tuple(entry.flags))


def _text(name: str) -> str:
    return resources.files(__name__).joinpath(name).read_text(encoding="utf-8")
