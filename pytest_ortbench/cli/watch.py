"""``ortbench watch``: a run while it measures, from its journal."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path

import click

from pytest_ortbench.analysis.candidates import speed_metric
from pytest_ortbench.cli.arguments import epilog, results_option
from pytest_ortbench.cli.terminal import ExitCode, say, warn
from pytest_ortbench.core.errors import DocumentError, UsageError
from pytest_ortbench.core.metrics import METRICS
from pytest_ortbench.core.run import LATEST, Run
from pytest_ortbench.core.units import format_amount
from pytest_ortbench.report.entries import Entry, shown_run
from pytest_ortbench.report.escape import one_line
from pytest_ortbench.store.documents import list_runs, load, resolve_run
from pytest_ortbench.store.folder import DOCUMENT, JOURNAL

#: Seconds between two looks: a line of a journal is written once a case, which takes seconds.
EVERY_S = 1.0


@click.command(
    epilog=epilog("ortbench watch", "ortbench watch --once", "ortbench watch RUN --results=DIR")
)
@click.argument("run", default=LATEST, metavar="[RUN]")
@click.option("--once", is_flag=True, help="Show what is there, and end.")
@results_option
def command(run: str, once: bool, results: Path) -> int:
    """Show each case of RUN when it is finished, and end with the run.

    RUN is the newest one, finished or not, if none is named. A run that was killed looks like one
    whose next case takes long: how long ago the last one was written stands there.
    """
    path = _newest(results) if run == LATEST else resolve_run(run, results)
    told = 0
    while True:
        current = _read(path)
        fresh = current.cases[told:]
        for entry in shown_run(replace(current, cases=fresh)).entries if fresh else ():
            told += 1
            say(_line(entry, told, current))
        if current.finished_at is not None:
            say(f"{one_line(current.run_id)} is finished: {told} of {current.expected} cases")
            return ExitCode.FINE
        if once:
            ago_s = max(0.0, time.time() - path.stat().st_mtime)
            say(
                f"{one_line(current.run_id)}: {told} of {current.expected} cases, the last line "
                f"was written {format_amount(ago_s, 's')} ago"
            )
            return ExitCode.FINE
        time.sleep(EVERY_S)


def _newest(results: Path) -> Path:
    """Return the newest run that can be read, finished or not.

    Raises:
        UsageError: if there is none.
    """
    for stored in list_runs(results):
        if stored.state in ("finished", "unfinished"):
            return stored.path
        warn(f"note: {stored.path} was skipped: {stored.problem}")
    raise UsageError(
        "the folder contains no run",
        place=str(results),
        hint="Start a run, or name the folder that has one: --results=DIR",
    )


def _read(path: Path) -> Run:
    """Read a run: its document, which takes the place of the journal at the end, if it is there."""
    document = path.with_name(DOCUMENT)
    if path.name != JOURNAL:
        return load(path)
    try:
        return load(document if document.exists() else path)
    except DocumentError:
        # It was removed between the two looks.
        return load(document)


def _line(entry: Entry, number: int, run: Run) -> str:
    case, failure = entry.result.case, entry.result.failure
    start = f"[{number}/{run.expected}] {one_line(case.case_id)}"
    if len({other.case.runtime.label for other in run.cases}) > 1:
        start += f"+{one_line(case.runtime.label)}"
    start += case.provider.role_note
    if failure is not None:
        return f"{start}: {failure.kind}: {one_line(failure.message)}"
    metric = speed_metric(case)
    quantity = entry.quantity(metric)
    number_text = (
        "not measured"
        if quantity is None
        else f"{metric} {format_amount(quantity.value, METRICS[metric].unit)}"
    )
    flags = " ".join(entry.flags)
    return f"{start}: {number_text}{f'  {flags}' if flags else ''}"
