"""``ortbench badge``: one number of a run, as shields.io reads it."""

from __future__ import annotations

from pathlib import Path

import click

from pytest_ortbench.cli.arguments import epilog, load_run, output_option, results_option
from pytest_ortbench.cli.terminal import ExitCode, say


@click.command(
    epilog=epilog(
        "ortbench badge latest mobilenet_v2 --output=badge.json",
        "ortbench badge latest mobilenet_v2/int8-static/cpu/b1 --metric=latency_p50",
    )
)
@click.argument("run")
@click.argument("name", metavar="MODEL|CASE")
@click.option(
    "--metric", default="latency_p50", show_default=True, help="Number of a CASE that is shown."
)
@output_option
@results_option
def command(run: str, name: str, metric: str, output: Path | None, results: Path) -> int:
    """Write the JSON of a badge: the fastest variant of a MODEL, or one number of a CASE.

    Publish the file and point https://img.shields.io/endpoint?url=… at it.
    """
    from pytest_ortbench.report.badge import render_badge, render_case_badge

    loaded = load_run(run, results)
    models = {result.case.model.name for result in loaded.cases}
    is_case = any(result.case.case_id == name for result in loaded.cases)
    if is_case or (name not in models and "/" in name):
        text = render_case_badge(loaded, name, metric)
    else:
        text = render_badge(loaded, name)
    if output is None:
        say(text)
        return ExitCode.FINE
    from pytest_ortbench.cli.files import save

    save(text + "\n", output)
    say(f"{output}: {text}")
    return ExitCode.FINE
