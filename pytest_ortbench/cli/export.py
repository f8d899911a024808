"""``ortbench export``: one flat row a case, for spreadsheets and scripts."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TypeAlias

import click

from pytest_ortbench.analysis.rows import COLUMNS
from pytest_ortbench.cli.arguments import (
    epilog,
    filter_option,
    load_run,
    output_option,
    results_option,
)
from pytest_ortbench.cli.files import save
from pytest_ortbench.cli.selection import parse_condition, select
from pytest_ortbench.cli.terminal import ExitCode, say, warn, write
from pytest_ortbench.core.errors import UsageError
from pytest_ortbench.core.run import Run
from pytest_ortbench.core.secrets import without_places
from pytest_ortbench.report.csv import render_csv
from pytest_ortbench.report.escape import markdown, markdown_row
from pytest_ortbench.schema.document import encode_run

#: Flat rows, of one or several runs.
Rows: TypeAlias = "Sequence[Mapping[str, int | float | str | None]]"


@click.command(
    epilog=epilog(
        "ortbench export latest > rows.csv",
        "ortbench export machine-*/run.json --format=json --output=rows.json",
        "ortbench export latest --format=md --filter=status=measured",
        "ortbench export latest --format=run --redact --output=shared.json",
    )
)
@click.argument("runs", metavar="RUN...", nargs=-1, required=True)
@click.option(
    "--format",
    "form",
    type=click.Choice(["csv", "json", "md", "run"]),
    default="csv",
    show_default=True,
    help="csv (safe to open in a spreadsheet), json (a list of objects), md (a table), run (the "
    "document of one run).",
)
@click.option(
    "--redact",
    is_flag=True,
    help="Leave out host name, user names and folders; secrets are always left out.",
)
@filter_option
@output_option
@results_option
def command(
    runs: tuple[str, ...],
    form: str,
    redact: bool,
    filters: tuple[str, ...],
    output: Path | None,
    results: Path,
) -> int:
    """Write one flat row for every case of every RUN, whatever became of it.

    All numbers are in SI units; a cell is empty (null) where nothing was measured, never 0. The
    columns host and run_id tell several runs apart.
    """
    conditions = [parse_condition(text) for text in filters]
    loaded = [load_run(spec, results) for spec in runs]
    if redact:
        for host in dict.fromkeys(host for run in loaded for host in run.hosts):
            loaded = [without_places(run, host) for run in loaded]
    if form == "run":
        return _document(loaded, output)
    chosen = [select(run, conditions) for run in loaded]
    every = [entry.row for shown in chosen for entry in shown.entries]
    text = _FORMATS[form](every)
    if output is None:
        write(text)
    else:
        save(text, output)
        say(f"{output}: {len(every)} rows")
    if not every:
        warn("ortbench: no case matches --filter" if filters else "ortbench: no run has a case")
        return ExitCode.NOTHING
    return ExitCode.FINE


def _document(runs: Sequence[Run], output: Path | None) -> int:
    if len(runs) != 1:
        raise UsageError(
            f"this format is for one run, but {len(runs)} are named",
            place="--format=run",
            hint="Name one run. For several runs, write --format=csv, --format=json or --format=md",
        )
    text = encode_run(runs[0]).decode()
    if output is None:
        write(text)
    else:
        save(text, output)
        say(f"{output}: {len(runs[0].cases)} cases")
    return ExitCode.FINE


def _csv(rows: Rows) -> str:
    return render_csv(rows)


def _json(rows: Rows) -> str:
    import json

    # ASCII only: no character that an encoding lacks, and, but for DEL, none that controls.
    return json.dumps(rows, indent=2, allow_nan=False).replace("\x7f", "\\u007f") + "\n"


def _markdown(rows: Rows) -> str:
    def line(cells: Iterable[str]) -> str:
        return markdown_row(cells) + "\n"

    def text(value: int | float | str | None) -> str:
        return "" if value is None else markdown(value) if isinstance(value, str) else repr(value)

    table = [line(COLUMNS), line("---" for _ in COLUMNS)]
    return "".join(table) + "".join(line(text(row[name]) for name in COLUMNS) for row in rows)


_FORMATS: dict[str, Callable[[Rows], str]] = {
    "csv": _csv,
    "json": _json,
    "md": _markdown,
}
