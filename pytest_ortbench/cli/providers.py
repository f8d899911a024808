"""``ortbench providers``: which execution providers really run here."""

from __future__ import annotations

from datetime import datetime

import click

from pytest_ortbench.cli.arguments import epilog
from pytest_ortbench.cli.engine_survey import engine_states
from pytest_ortbench.cli.survey import ProviderState, survey
from pytest_ortbench.cli.terminal import ExitCode, say, step, table, warn
from pytest_ortbench.core.case import Runtime
from pytest_ortbench.launch.probe_memory import ProbeMemory
from pytest_ortbench.models.cache import cache_folder
from pytest_ortbench.planning.candidates import PROBES_FOLDER
from pytest_ortbench.runtimes.plugin_config import configured_plugins
from pytest_ortbench.session import Session


@click.command(
    epilog=epilog("ortbench providers", "ortbench providers --again", "ortbench providers --known")
)
@click.option("--known", is_flag=True, help="Also list those that are not in this environment.")
@click.option("--again", is_flag=True, help="Test all of them again and ignore remembered results.")
@click.option(
    "--runtimes",
    metavar="SPEC",
    multiple=True,
    default=("current",),
    help="The runtimes, as for --ort-runtimes; repeatable. [default: current]",
)
def command(known: bool, again: bool, runtimes: tuple[str, ...]) -> int:
    """List the execution providers that really run here: each is tried on tiny models.

    Other engines and frameworks that are installed follow; none of them is imported.

    ONNX Runtime's own list of available providers is a claim; a provider counts here if it
    executed a computing node. One that did is remembered until distributions, drivers or devices
    change. ortbench doctor says more.
    """
    from pathlib import Path

    codes = []
    with Session(Path.cwd(), runtimes=runtimes, notify=warn) as session:
        chosen = session.runtimes
        for runtime in chosen.runtimes:
            if len(chosen.runtimes) > 1:
                say(f"in {runtime.label}")
            failure = chosen.failures.get(runtime.label)
            if failure is None:
                codes.append(_list(session, runtime, known=known, again=again))
            else:
                warn(f"ortbench: {failure.message}. {failure.hint}".rstrip())
                codes.append(ExitCode.NOTHING)
    return ExitCode.FINE if ExitCode.FINE in codes else ExitCode.NOTHING


def _list(session: Session, runtime: Runtime, *, known: bool, again: bool) -> int:

    memory = ProbeMemory(cache_folder() / PROBES_FOLDER)
    seen = survey(
        session.launcher,
        runtime,
        memory=memory,
        plugins=configured_plugins(session.root),
        again=again,
        on_step=step,
    )
    if seen.failure is not None:
        warn(f"ortbench: {seen.failure.message}. {seen.failure.hint}".rstrip())
        return ExitCode.NOTHING
    # Packages of other interpreters can't be seen from here.
    engines = engine_states() if runtime.label == Runtime().label else ()
    states = [state for state in (*seen.providers, *engines) if known or state.state != "absent"]
    say(table([[state.alias, state.state, _about(state)] for state in states]))
    if any(state.tried_at_s is not None for state in states):
        say("--again tests remembered providers again.")
    return ExitCode.FINE if seen.running else ExitCode.NOTHING


def _about(state: ProviderState) -> str:
    """The reason, the next step, and when it was tried if that was not now."""
    text = ". ".join(part for part in (state.reason, state.hint) if part)
    if state.tried_at_s is None:
        return text
    when = datetime.fromtimestamp(state.tried_at_s).astimezone()
    return f"{text} (as of {when:%Y-%m-%d %H:%M})".lstrip()
