"""``ortbench providers``: which execution providers really run here."""

from __future__ import annotations

from contextlib import closing

import click

from pytest_ortbench.cli.arguments import epilog
from pytest_ortbench.cli.terminal import ExitCode, say, step, table, warn


@click.command(epilog=epilog("ortbench providers", "ortbench providers --known"))
@click.option("--known", is_flag=True, help="Also those that are not in this environment.")
def command(known: bool) -> int:
    """List the execution providers that really run here: each is tried on tiny models.

    ONNX Runtime's own list of available providers is a claim; a provider counts here if it
    executed a computing node. ortbench doctor says more.
    """
    from pytest_ortbench.cli.survey import survey
    from pytest_ortbench.core.case import Runtime
    from pytest_ortbench.launch.launcher import ProcessLauncher

    with closing(ProcessLauncher()) as launcher:
        seen = survey(launcher, Runtime(), on_step=step)
    if seen.failure is not None:
        warn(f"ortbench: {seen.failure.message}. {seen.failure.hint}".rstrip())
        return ExitCode.NOTHING
    states = [each for each in seen.providers if known or each.state != "absent"]
    say(table([[each.alias, each.state, each.reason] for each in states]))
    return ExitCode.FINE if seen.running else ExitCode.NOTHING
