"""``ortbench merge``: the shards of a suite as one run."""

from __future__ import annotations

from pathlib import Path

import click

from pytest_ortbench.cli.arguments import epilog, load_run, results_option
from pytest_ortbench.cli.terminal import ExitCode, say
from pytest_ortbench.store.folder import DOCUMENT, write_document
from pytest_ortbench.store.merge import merge_runs


@click.command(
    epilog=epilog(
        "ortbench merge shard-1/run.json shard-2/run.json --output=run.json",
        "ortbench merge 20260304T050600Z-lab-1-0a1b latest",
    )
)
@click.argument("runs", metavar="RUN RUN...", nargs=-1, required=True)
@click.option(
    "--output",
    "-o",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Write the document to this file; by default it becomes a run in the results folder.",
)
@click.option(
    "--any-host",
    is_flag=True,
    help="Accept different host names: shards of one machine that ran in containers.",
)
@results_option
def command(runs: tuple[str, ...], output: Path | None, any_host: bool, results: Path) -> int:
    """Join several runs of one machine and one commit into one document.

    A case that several of them hold counts as the newest run has it. Runs of different runtimes
    are merged where their labels tell them apart. Runs of different machines or commits are not:
    compare them (ortbench compare RUN RUN).
    """
    merged = merge_runs([load_run(spec, results) for spec in runs], any_host=any_host)
    path = output or results / merged.run_id / DOCUMENT
    write_document(merged, path)
    say(f"{path}: {len(merged.cases)} cases of {len(runs)} runs")
    return ExitCode.FINE
