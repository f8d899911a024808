"""``ortbench report``: one page to look at, of one run or of several side by side."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import click

from pytest_ortbench.cli.arguments import epilog, load_run, results_option
from pytest_ortbench.cli.compare import load_facts, machine_and_run
from pytest_ortbench.cli.files import save
from pytest_ortbench.cli.terminal import ExitCode, say, tell, warn
from pytest_ortbench.core.command_line import in_shell
from pytest_ortbench.core.errors import UsageError
from pytest_ortbench.fleet.report.cards import comparison_sheet
from pytest_ortbench.fleet.report.html import render_comparison_html
from pytest_ortbench.fleet.report.view import build_view
from pytest_ortbench.report.answers import answer_lines
from pytest_ortbench.report.cards.sheet import run_sheet
from pytest_ortbench.report.entries import ShownRun, shown_run
from pytest_ortbench.report.figures.sheet import sheet_pdf
from pytest_ortbench.report.html import render_html
from pytest_ortbench.store.documents import resolve_run

#: Name of the page beside a run document, and of a comparison in the current folder.
PAGE, COMPARISON = "report.html", "comparison.html"
#: Models that are answered for in the terminal; the page has all.
MODELS = 8
#: Beyond this many runs only their comparison is written, since each page takes seconds.
MOST_PAGES = 10


def _of_compare(_: click.Context, __: click.Parameter, value: str | None) -> None:
    """Refuse the option of another command, which makes the page about a purchase."""
    if value is not None:
        raise UsageError(
            "'ortbench report' shows no costs of machines",
            place="--machines",
            hint="Leave --machines out. To see costs, run 'ortbench compare RUN RUN "
            f"{in_shell([f'--machines={value}'])} --rate=500/s --p99=50ms', where each RUN is the "
            "run of another machine",
        )


@click.command(
    epilog=epilog(
        "ortbench report",
        "ortbench report latest --output=report.html",
        "ortbench report lab-1/run.json lab-2/run.json --output=machines.html",
        "ortbench report --one-page --output=decision.pdf",
    )
)
@click.argument("runs", metavar="[RUN...]", nargs=-1)
@click.option(
    "--output",
    "-o",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Write the page (of several RUNs: the comparison) here; by default beside the run "
    "document, a comparison in the current folder. The pages of several RUNs go beside their "
    "comparison.",
)
@click.option(
    "--one-page",
    is_flag=True,
    help="Write a PDF of exactly one page instead: the answer for each model, for whoever decides.",
)
@click.option("--machines", hidden=True, expose_value=False, callback=_of_compare)
@results_option
def command(runs: tuple[str, ...], output: Path | None, one_page: bool, results: Path) -> int:
    """Write the HTML report of RUN, the newest finished one if none is named; of several RUNs
    their comparison, and beside it the report of each: comparison-NAME.html.

    A page is one file that needs no network. ortbench compare has more to choose from; with prices
    it writes the page about a purchase: ortbench compare … --machines=… --output=decision.pdf.
    """
    if one_page:
        return _sheet(runs, output, results)
    if len(runs) < 2:
        return _one(runs[0] if runs else "latest", output, results)
    from pytest_ortbench.fleet.report.figures import pictures

    pages = _Pages(runs)
    view = build_view(load_facts(runs, results, on_run=pages.add if pages.wanted else None))
    path = output or Path(COMPARISON)
    save(render_comparison_html(view, pictures=pictures(view)), path)
    written = pages.write(results, path)
    tell(view.answer)
    say(f"comparison: {path}")
    for page in written:
        say(f"report: {page}")
    return ExitCode.FINE


def _one(spec: str, output: Path | None, results: Path) -> int:
    run = load_run(spec, results)
    if not run.cases:
        warn("ortbench: the run contains no case")
        return ExitCode.NOTHING
    path = output or _beside(resolve_run(spec, results))
    shown = shown_run(run)
    save(render_html(shown), path)
    tell(answer_lines(shown, models=MODELS))
    say(f"report: {path}")
    return ExitCode.FINE


def _sheet(runs: Sequence[str], output: Path | None, results: Path) -> int:
    """Write the page for whoever decides."""
    if len(runs) > 1:
        path = output or Path(COMPARISON).with_suffix(".pdf")
        page = comparison_sheet(build_view(load_facts(runs, results)))
    else:
        spec = runs[0] if runs else "latest"
        run = load_run(spec, results)
        if not run.cases:
            warn("ortbench: the run contains no case")
            return ExitCode.NOTHING
        path = output or _beside(resolve_run(spec, results)).with_suffix(".pdf")
        page = run_sheet(shown_run(run))
    save(sheet_pdf(page), path)
    say(f"page: {path}")
    return ExitCode.FINE


class _Pages:
    """The pages of several runs, drawn while these are read for their comparison.

    Args:
        runs: What the user calls them.

    Attributes:
        wanted: Whether they are few enough for pages.
    """

    def __init__(self, runs: Sequence[str]) -> None:
        self._names: dict[str, str] = {}
        for named in runs:
            name, spec = machine_and_run(named)
            self._names[spec] = self._names.get(spec) or name
        self._drawn: dict[str, str] = {}
        self.wanted = len(self._names) <= MOST_PAGES

    def add(self, named: str, shown: ShownRun) -> None:
        """Draw the page of a run; one without a case has none."""
        _, spec = machine_and_run(named)
        if shown.entries and spec not in self._drawn:
            self._drawn[spec] = render_html(shown)

    def write(self, results: Path, comparison: Path) -> list[Path]:
        """Write the pages beside the comparison.

        Never beside the documents, which may be somebody else's, or read-only.
        """
        if not self.wanted:
            warn(
                f"note: {len(self._names)} runs are more than {MOST_PAGES}, so only their "
                "comparison is written; 'ortbench report RUN' writes the report of one run"
            )
        written: list[Path] = []
        for spec, text in self._drawn.items():
            name = self._names[spec] or _name_of(resolve_run(spec, results))
            path = _page_of(name, comparison, written)
            written.append(path)
            save(text, path)
        return written


def _name_of(document: Path) -> str:
    """``desk`` for ``desk.json``, the folder's name for ``desk/run.json``."""
    document = document.absolute()
    return document.parent.name if document.stem in ("run", "journal") else document.stem


def _page_of(name: str, comparison: Path, taken: list[Path]) -> Path:
    """``machines-desk.html`` beside ``machines.html``, numbered where that is taken."""
    safe = re.sub(r"[^\w.+-]+", "-", name).strip("-.") or "run"
    path = comparison.with_name(f"{comparison.stem}-{safe}.html")
    number = 2
    while path in taken:
        path = comparison.with_name(f"{comparison.stem}-{safe}-{number}.html")
        number += 1
    return path


def _beside(document: Path) -> Path:
    """``report.html`` beside ``run.json``, ``desk.html`` beside ``desk.json``."""
    folder = document.parent
    plain = document.stem in ("run", "journal")
    return folder / PAGE if plain else folder / f"{document.stem}.html"
