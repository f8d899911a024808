"""``ortbench badge``: one number of a run as a picture, or as shields.io reads it."""

from __future__ import annotations

from pathlib import Path

import click

from pytest_ortbench.cli.arguments import epilog, load_run, output_option, results_option
from pytest_ortbench.cli.files import save
from pytest_ortbench.cli.terminal import ExitCode, say
from pytest_ortbench.core.command_line import in_shell
from pytest_ortbench.core.errors import UsageError
from pytest_ortbench.report.badge import case_badge, model_badge, render_json, render_svg
from pytest_ortbench.report.entries import shown_run


@click.command(
    epilog=epilog(
        "ortbench badge latest mobilenet_v2 --output=badge.svg",
        "ortbench badge latest mobilenet_v2 --output=badge.json",
        "ortbench badge latest mobilenet_v2/int8-static/cpu/b1 --metric=latency_p50",
    )
)
@click.argument("run")
@click.argument("name", metavar="MODEL|CASE")
@click.option(
    "--metric", default="latency_p50", show_default=True, help="The metric of CASE that is shown."
)
@click.option(
    "--format",
    "form",
    type=click.Choice(["json", "svg"]),
    help="svg (a picture) or json (for shields.io); by default the suffix of --output decides, "
    "and json in the terminal.",
)
@output_option
@results_option
def command(
    run: str, name: str, metric: str, form: str | None, output: Path | None, results: Path
) -> int:
    """Write a badge: the fastest variant of a MODEL, or one number of a CASE.

    An SVG is a picture to link to. For JSON, publish the file and point
    https://img.shields.io/endpoint?url=… at it.
    """
    form = form or _form_of(output)
    loaded = load_run(run, results)
    models = {result.case.model.name for result in loaded.cases}
    is_case = any(result.case.case_id == name for result in loaded.cases)
    if is_case or (name not in models and "/" in name):
        badge = case_badge(loaded, name, metric)
    else:
        badge = model_badge(shown_run(loaded), name)
    text = (render_svg(badge) if form == "svg" else render_json(badge)).rstrip("\n")
    if output is None:
        say(text)
        return ExitCode.FINE

    save(text + "\n", output)
    say(f"{output}: {badge.label}: {badge.message}")
    return ExitCode.FINE


def _form_of(output: Path | None) -> str:
    """What a file is to hold, by how its name ends; the terminal gets JSON.

    Raises:
        UsageError: if the name promises something else: a viewer would say that x.png is broken.
    """
    if output is None:
        return "json"
    form = output.suffix.lower().removeprefix(".")
    if form not in ("svg", "json"):
        raise UsageError(
            f"a badge can't be written as {output.suffix or 'a file without a suffix'}",
            place=f"--output={output}",
            hint="Name a file that ends in .svg or .json, e.g. "
            + in_shell([f"--output={output.with_suffix('.svg')}"]),
        )
    return form
