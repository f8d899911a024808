"""``ortbench compare``: many runs side by side, and what machines cost for a load."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from pytest_ortbench.cli.arguments import epilog, output_option, results_option
from pytest_ortbench.cli.terminal import ExitCode, colour, encoding, say, warn, width, write

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pytest_ortbench.analysis.fleet.facts import RunFacts
    from pytest_ortbench.report.fleet.view import View

#: More documents than this are compared with a tool for tables: ortbench export.
MOST_RUNS = 50


@click.command(
    epilog=epilog(
        "ortbench compare lab-1/run.json lab-2/run.json edge-3/run.json",
        "ortbench compare latest --by=provider --metric=throughput",
        "ortbench compare machines/*/run.json --format=html --output=machines.html",
        "ortbench compare machines/*/run.json --machines=machines.toml --rate=500 --p99=50ms",
    )
)
@click.argument("runs", metavar="RUN...", nargs=-1, required=True)
@click.option(
    "--by",
    "axis",
    type=click.Choice(["machine", "runtime", "provider", "precision", "time"]),
    help="What the columns are; by default what differs between the runs.",
)
@click.option(
    "--metric",
    default="latency_p50",
    show_default=True,
    help="What is compared: latency_p50, throughput, peak_rss, energy_per_inference, …",
)
@click.option(
    "--baseline", default="", help="Column that ratios refer to; by default that of the first RUN."
)
@click.option(
    "--filter",
    "filters",
    metavar="TEXT",
    multiple=True,
    help="Only cases with this in their id, or COLUMN=VALUE, COLUMN!=VALUE. Repeatable.",
)
@click.option(
    "--format",
    "form",
    type=click.Choice(["table", "md", "csv", "html"]),
    default="table",
    show_default=True,
    help="table (for the terminal), md, csv (every cell, SI units), html (one page).",
)
@click.option(
    "--plots",
    type=click.Path(path_type=Path, file_okay=False),
    help="Write the figures as PNG and SVG into this folder.",
)
@click.option("--rows", default=40, show_default=True, help="Rows of a table here; 0: all.")
@output_option
@results_option
def command(
    runs: tuple[str, ...],
    axis: str | None,
    metric: str,
    baseline: str,
    filters: tuple[str, ...],
    form: str,
    plots: Path | None,
    rows: int,
    output: Path | None,
    results: Path,
) -> int:
    """Compare RUNs, as ratios to the first: machines, runtimes, providers, or points in time.

    Only what may be compared is ranked: measured, accuracy passed, not emulated, with the same
    batch size, inputs and I/O mode. A gap inside the intervals is called a tie, a case that a side
    lacks stays a hole.
    """
    from pytest_ortbench.report.fleet.view import build_view

    facts = _load(runs, results, filters, metric)
    if not any(run.cases for run in facts):
        warn("ortbench: there is no such case" if filters else "ortbench: no run holds a case")
        return ExitCode.NOTHING
    view = build_view(facts, axis=axis or "", metric=metric, baseline=baseline)
    if plots is not None:
        from pytest_ortbench.report.figures.fleet import write_figures

        for path in write_figures(view, plots):
            warn(f"plot: {path}")
    text = _render(view, form, rows, to_file=output is not None)
    if output is None:
        styled = form == "table" and colour()
        (say(text.rstrip("\n"), styled=styled) if form == "table" else write(text))
        return ExitCode.FINE
    from pytest_ortbench.cli.files import save

    save(text, output)
    for line in view.answer:
        say(line)
    say(f"{output}: {len(facts)} runs")
    return ExitCode.FINE


def _load(
    runs: Sequence[str], results: Path, filters: Sequence[str], metric: str
) -> list[RunFacts]:
    """Read one run after the other and keep what is compared, so that fifty fit into memory."""
    from pytest_ortbench.analysis.fleet.facts import reduce_run
    from pytest_ortbench.cli.arguments import load_run
    from pytest_ortbench.cli.selection import parse_condition, select
    from pytest_ortbench.core.errors import UsageError

    if len(runs) > MOST_RUNS:
        raise UsageError(
            f"{len(runs)} runs are more than {MOST_RUNS}",
            place="ortbench compare",
            hint="ortbench export writes the rows of any number of runs",
        )
    conditions = [parse_condition(text) for text in filters]
    percentiles = metric in ("latency_p90", "latency_p95", "latency_p99")
    found: dict[str, RunFacts] = {}
    for spec in runs:
        run = load_run(spec, results)
        if conditions:
            run = select(run, conditions)
        if run.run_id in found:
            warn(f"note: {run.run_id} is named twice and counts once")
            continue
        found[run.run_id] = reduce_run(run, percentiles=percentiles)
    return list(found.values())


def _render(view: View, form: str, rows: int, *, to_file: bool) -> str:
    if form == "md":
        from pytest_ortbench.report.fleet.markdown import render_markdown

        return render_markdown(view)
    if form == "csv":
        from pytest_ortbench.report.fleet.csv import render_csv

        return render_csv(view)
    if form == "html":
        from pytest_ortbench.report.figures.fleet import pictures
        from pytest_ortbench.report.fleet.html import render_html

        return render_html(view, pictures=pictures(view))
    from pytest_ortbench.report.fleet.table import render_table

    return render_table(
        view,
        width=width(),
        color=colour() and not to_file,
        encoding="utf-8" if to_file else encoding(),
        rows=rows,
    )
