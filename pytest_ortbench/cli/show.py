"""``ortbench show``: the table of a stored run."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from pytest_ortbench.cli.arguments import epilog, load_run, results_option
from pytest_ortbench.cli.selection import parse_condition, select, table_columns
from pytest_ortbench.cli.terminal import ExitCode, colour, encoding, say, tell, warn, width
from pytest_ortbench.gate.report.lines import gate_lines
from pytest_ortbench.report.answers import answer_lines, inaccurate_lines, unjudged_lines
from pytest_ortbench.report.blocks import block_lines, detail_lines
from pytest_ortbench.report.certificates import run_lines
from pytest_ortbench.report.precisions import precision_lines
from pytest_ortbench.report.table import render_table

if TYPE_CHECKING:
    from pytest_ortbench.core.run import Run


@click.command(
    epilog=epilog(
        "ortbench show",
        "ortbench show latest --filter=provider=cuda --sort=latency_p50",
        "ortbench show run.json --columns=p50,p99,cpu --sort=-items",
    )
)
@click.argument("run", default="latest", metavar="[RUN]")
@click.option(
    "--sort",
    metavar="COLUMN",
    default="",
    help="Column to sort by; -COLUMN puts the largest first.",
)
@click.option(
    "--filter",
    "filters",
    metavar="TEXT",
    multiple=True,
    help="Only cases with this in their id, or COLUMN=VALUE, COLUMN!=VALUE (* for any text). "
    "Repeatable: all must hold.",
)
@click.option("--columns", metavar="A,B", default="", help="Show these columns.")
@results_option
def command(run: str, sort: str, filters: tuple[str, ...], columns: str, results: Path) -> int:
    """Show RUN as a table; the newest finished one if none is named.

    Columns go by their key (p50, items, rss, …), by the name of a metric (latency_p50) or by
    their name in ortbench export (latency_p50_s).
    """
    conditions = [parse_condition(text) for text in filters]
    named = table_columns(columns)
    shown = select(load_run(run, results), conditions, sort)
    chosen = shown.run
    if not chosen.cases:
        warn("ortbench: no case matches --filter" if filters else "ortbench: the run has no case")
        for skip in chosen.skips:
            warn(f"left out: {skip.what}: {skip.reason}")
        return ExitCode.NOTHING
    coloured = colour()
    text = render_table(shown, width=width(), color=coloured, encoding=encoding(), columns=named)
    say(text.rstrip("\n"), styled=coloured)
    for line in precision_lines(shown, width=width(), encoding=encoding()):
        say(line)
    for line in block_lines(shown, encoding=encoding()):
        say(line)
    for line in detail_lines(shown, width=width(), encoding=encoding()):
        say(line)
    for line in gate_lines(_gated(chosen, everything=not filters), encoding=encoding()):
        say(line)
    for line in run_lines(chosen, encoding=encoding()):
        say(line)
    if not filters:
        # Of a part of the cases, the fastest is no answer.
        say("")
        tell(answer_lines(shown))
    else:
        tell([*inaccurate_lines(shown), *unjudged_lines(shown)])
    return ExitCode.FINE


def _gated(chosen: Run, *, everything: bool) -> Run:
    """With the verdicts on the chosen cases; on all of them also those on cases that vanished."""
    if everything:
        return chosen
    shown = {result.case.key for result in chosen.cases}
    verdicts = tuple(
        verdict for verdict in chosen.gate if (verdict.case_id, verdict.runtime) in shown
    )
    return replace(chosen, gate=verdicts)
