"""``ortbench report``: one page to look at, of one run or of several side by side."""

from __future__ import annotations

from pathlib import Path

import click

from pytest_ortbench.cli.arguments import epilog, load_run, results_option
from pytest_ortbench.cli.terminal import ExitCode, say, warn

#: Name of the page beside a run document, and of a comparison in the current folder.
PAGE, COMPARISON = "report.html", "comparison.html"
#: Beyond this many runs only their comparison is written, since each page takes seconds.
MOST_PAGES = 10


@click.command(
    epilog=epilog(
        "ortbench report",
        "ortbench report latest --output=report.html",
        "ortbench report lab-1/run.json lab-2/run.json --output=machines.html",
    )
)
@click.argument("runs", metavar="[RUN...]", nargs=-1)
@click.option(
    "--output",
    "-o",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Write the page (of several RUNs: the comparison) here; by default beside the run "
    "document, a comparison in the current folder.",
)
@results_option
def command(runs: tuple[str, ...], output: Path | None, results: Path) -> int:
    """Write the HTML report of RUN, the newest finished one if none is named; of several RUNs
    their comparison, and beside each document its own report.

    A page is one file that needs no network. ortbench compare has more to choose from.
    """
    if len(runs) < 2:
        return _one(runs[0] if runs else "latest", output, results)
    from pytest_ortbench.cli.compare import load_facts
    from pytest_ortbench.cli.files import save
    from pytest_ortbench.report.figures.fleet import pictures
    from pytest_ortbench.report.fleet.html import render_html
    from pytest_ortbench.report.fleet.view import build_view

    view = build_view(load_facts(runs, results))
    path = output or Path(COMPARISON)
    save(render_html(view, pictures=pictures(view)), path)
    pages = _pages(runs, results)
    for line in view.answer:
        say(line)
    say(f"comparison: {path}")
    for page in pages:
        say(f"report: {page}")
    return ExitCode.FINE


def _one(spec: str, output: Path | None, results: Path) -> int:
    from pytest_ortbench.cli.files import save
    from pytest_ortbench.report.answers import answer_lines
    from pytest_ortbench.report.entries import entries
    from pytest_ortbench.report.html import render_html
    from pytest_ortbench.store.documents import resolve_run

    run = load_run(spec, results)
    if not run.cases:
        warn("ortbench: the run holds no case")
        return ExitCode.NOTHING
    path = output or _beside(resolve_run(spec, results))
    shown = entries(run)
    save(render_html(run, shown=shown), path)
    for line in answer_lines(run, summaries=[entry.summary for entry in shown]):
        say(line)
    say(f"report: {path}")
    return ExitCode.FINE


def _pages(runs: tuple[str, ...], results: Path) -> list[Path]:
    """Write the page of each run; those without a case have none."""
    from pytest_ortbench.cli.compare import machine_and_run
    from pytest_ortbench.cli.files import save
    from pytest_ortbench.report.html import render_html
    from pytest_ortbench.store.documents import resolve_run

    specs = dict.fromkeys(machine_and_run(named)[1] for named in runs)
    if len(specs) > MOST_PAGES:
        warn(
            f"note: {len(specs)} runs are more than {MOST_PAGES}, so only their comparison is "
            "written; ortbench report RUN writes the page of one"
        )
        return []
    written: list[Path] = []
    for spec in specs:
        run = load_run(spec, results)
        if run.cases:
            written.append(_beside(resolve_run(spec, results)))
            save(render_html(run), written[-1])
    return written


def _beside(document: Path) -> Path:
    """``report.html`` beside ``run.json``, ``desk.html`` beside ``desk.json``."""
    folder = document.parent
    plain = document.stem in ("run", "journal")
    return folder / PAGE if plain else folder / f"{document.stem}.html"
