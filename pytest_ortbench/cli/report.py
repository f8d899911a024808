"""``ortbench report``: one page to look at, of one run or of several side by side."""

from __future__ import annotations

from pathlib import Path

import click

from pytest_ortbench.cli.arguments import epilog, load_run, results_option
from pytest_ortbench.cli.terminal import ExitCode, say, warn

#: Name of the page beside a run document, and of a comparison in the current folder.
PAGE, COMPARISON = "report.html", "comparison.html"


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
    help="Write the page here; by default beside the run document.",
)
@results_option
def command(runs: tuple[str, ...], output: Path | None, results: Path) -> int:
    """Write the HTML report of RUN, the newest finished one if none is named; several RUNs give
    their comparison.

    The page is one file that needs no network. ortbench compare has more to choose from.
    """
    from pytest_ortbench.cli.files import save

    if len(runs) > 1:
        from pytest_ortbench.cli.compare import load_facts
        from pytest_ortbench.report.figures.fleet import pictures
        from pytest_ortbench.report.fleet.html import render_html
        from pytest_ortbench.report.fleet.view import build_view

        view = build_view(load_facts(runs, results))
        path = output or Path(COMPARISON)
        save(render_html(view, pictures=pictures(view)), path)
        lines = list(view.answer)
    else:
        from pytest_ortbench.report.answers import answer_lines
        from pytest_ortbench.report.html import render_html as render_run
        from pytest_ortbench.store.documents import resolve_run

        spec = runs[0] if runs else "latest"
        run = load_run(spec, results)
        if not run.cases:
            warn("ortbench: the run holds no case")
            return ExitCode.NOTHING
        path = output or resolve_run(spec, results).parent / PAGE
        save(render_run(run), path)
        lines = answer_lines(run)
    for line in lines:
        say(line)
    say(f"report: {path}")
    return ExitCode.FINE
