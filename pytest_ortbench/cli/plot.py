"""``ortbench plot``: the figures of a run, or of several side by side, as files."""

from __future__ import annotations

from pathlib import Path

import click

from pytest_ortbench.cli.arguments import epilog, load_run, results_option
from pytest_ortbench.cli.compare import load_facts
from pytest_ortbench.cli.files import writing
from pytest_ortbench.cli.terminal import ExitCode, say, warn
from pytest_ortbench.core.errors import UsageError
from pytest_ortbench.core.units import parse_duration
from pytest_ortbench.fleet.report import figures as fleet
from pytest_ortbench.fleet.report.view import build_view
from pytest_ortbench.report import figures
from pytest_ortbench.report.entries import shown_run
from pytest_ortbench.store.documents import resolve_run

#: Folder of the figures beside a run document, and of a comparison in the current folder.
PLOTS, COMPARISON = "plots", "comparison-plots"


@click.command(
    epilog=epilog(
        "ortbench plot",
        "ortbench plot latest --output=plots --format=svg --p99=20ms",
        "ortbench plot lab-1/run.json lab-2/run.json",
    )
)
@click.argument("runs", metavar="[RUN...]", nargs=-1)
@click.option(
    "--output",
    "-o",
    type=click.Path(path_type=Path, file_okay=False),
    help="Folder of the figures; by default plots/ beside the run document.",
)
@click.option(
    "--format",
    "formats",
    type=click.Choice(["png", "svg"]),
    multiple=True,
    default=("png", "svg"),
    show_default=True,
    help="Repeatable.",
)
@click.option("--slo", metavar="TIME", help="Limit on latency p50, drawn as a line: 50ms.")
@click.option("--p99", metavar="TIME", help="Limit on latency p99, drawn as a line: 50ms.")
@results_option
def command(
    runs: tuple[str, ...],
    output: Path | None,
    formats: tuple[str, ...],
    slo: str | None,
    p99: str | None,
    results: Path,
) -> int:
    """Draw the figures of RUN, the newest finished one if none is named, or of several compared."""
    if slo is not None and p99 is not None:
        raise UsageError(
            "both options are given, but a figure shows one latency limit",
            place="--slo, --p99",
            hint="Leave --slo or --p99 out",
        )
    if len(runs) > 1 and (slo is not None or p99 is not None):
        option = "--slo" if p99 is None else "--p99"
        raise UsageError(
            "a latency limit is drawn in the figures of one run, not in those of a comparison",
            place=option,
            hint=f"To draw the limit, name one RUN. To compare runs, leave {option} out",
        )
    limit = _limit("latency_p99", "--p99", p99) or _limit("latency_p50", "--slo", slo)

    with writing(output, option="--output", what="the figures"):
        written = _draw(runs, output, formats, limit, results)
    for path in written:
        say(f"plot: {path}")
    if not written:
        warn("ortbench: there is nothing to draw: no case was measured")
        return ExitCode.NOTHING
    return ExitCode.FINE


def _limit(metric: str, flag: str, text: str | None) -> tuple[str, float] | None:
    """A percentile and what it must keep, in seconds."""
    return None if text is None else (metric, parse_duration(text, place=flag))


def _draw(
    runs: tuple[str, ...],
    output: Path | None,
    formats: tuple[str, ...],
    limit: tuple[str, float] | None,
    results: Path,
) -> list[Path]:
    if len(runs) > 1:
        folder = output or Path(COMPARISON)
        view = build_view(load_facts(runs, results))
        return fleet.write_comparison_figures(view, folder, formats=formats)
    from pytest_ortbench.report.figures.slo import Slo

    spec = runs[0] if runs else "latest"
    run = load_run(spec, results)
    folder = output or resolve_run(spec, results).parent / PLOTS
    slo = None if limit is None else Slo(metric=limit[0], latency_s=limit[1])
    return figures.write_figures(shown_run(run).entries, folder, formats=formats, slo=slo)
