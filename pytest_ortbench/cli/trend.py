"""``ortbench trend``: where the latency of a case changed over many stored runs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from pytest_ortbench.analysis.history import FEWEST_IN_ALL, histories, series_names
from pytest_ortbench.cli.arguments import epilog
from pytest_ortbench.cli.files import writing
from pytest_ortbench.cli.terminal import ExitCode, say, warn
from pytest_ortbench.core.errors import OrtbenchError
from pytest_ortbench.core.units import counted
from pytest_ortbench.core.whole_file import replace_file
from pytest_ortbench.gate.numbers.same_models import models_of, named_alike
from pytest_ortbench.store.documents import foreign_note, list_runs, load

if TYPE_CHECKING:
    from pytest_ortbench.analysis.history import Series

#: What changed on the machine between the runs before a step and those after it, by the field.
_CHANGED_TOO = {
    "memory": "the speed of the machine's memory",
    "handover": "the way between the machine's CPUs",
    "model_cpus": "the number of CPUs that the model kept busy",
    "yardstick_cpus": "the number of CPUs that the yardstick kept busy",
}


@click.command(epilog=epilog("ortbench trend results", "ortbench trend results --plot=trend.png"))
@click.argument(
    "folder",
    metavar="DIR",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path("results"),
)
@click.option(
    "--plot",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Draw the series to this file (.png or .svg).",
)
def command(folder: Path, plot: Path | None) -> int:
    """Find change points in the runs of DIR, on ratios to reference work of the same run.

    That is the yardstick, which took turns with the model; where no run of a case has one, it is
    the canary. A run that lacked CPUs has no ratio to a yardstick, and is left out and counted.

    A run whose flags leave no verdict does not count. Where the machine was in another state before
    a change than after it, the change is taken from runs in like states, and must be 5 % at least;
    where there are none, the line says what changed on the machine.

    Each machine is a series of its own. A change point is a question, never a failure: the exit
    code is 0 whatever is found.
    """
    runs = []
    entries = list_runs(folder)
    if note := foreign_note(entries):
        warn(f"note: {note}")
    for stored in entries:
        if stored.state != "finished":
            continue
        try:
            runs.append(load(stored.path))
        except OrtbenchError as error:
            warn(f"note: {error}")
    newest = models_of(max(runs, key=lambda run: run.started_at)) if runs else {}
    series = histories(named_alike(run, newest) for run in runs)
    if not series:
        warn(f"note: {folder} does not contain a finished run with a yardstick or a canary yet")
        return ExitCode.FINE
    for entry, name in zip(series, series_names(series), strict=True):
        count = counted(len(entry.points), "run")
        if entry.left_out:
            count_out = counted(entry.left_out, "run")
            warn(f"note: {name}: {count_out} left out: no ratio to the yardstick")
        if entry.blurred:
            flags = sorted({flag for point in entry.points for flag in point.blurring})
            count_flagged = f"{entry.blurred} of {count}"
            warn(f"note: {name}: {count_flagged} do not count, for their {', '.join(flags)}")
        if not entry.is_searched:
            say(f"{name}: {count}, too few to find changes: {FEWEST_IN_ALL} are needed")
        elif not entry.steps:
            say(f"{name}: no change in {count}")
        for step in entry.steps:
            point = entry.points[step.index]
            revision = f", commit {point.commit[:12]}" if point.commit else ""
            say(
                f"{name}: {100 * step.change:+.1f} % since "
                f"{point.started_at}{revision} ({point.run_id})"
                + (f"; {_CHANGED_TOO[step.unlike]} changed, too" if step.unlike else "")
            )
    if plot is not None:
        _draw(series, plot)
        say(f"plot: {plot}")
    return ExitCode.FINE


def _draw(series: Sequence[Series], plot: Path) -> None:
    from pytest_ortbench.report.figures import render
    from pytest_ortbench.report.figures.trend import trend

    made = trend(series)
    assert made is not None
    data = render(made, plot.suffix.lower().removeprefix(".") or "png", place="--plot")
    with writing(plot, option="--plot", what="the figure"):
        replace_file(plot, data)
