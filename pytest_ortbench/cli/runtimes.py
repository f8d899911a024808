"""``ortbench runtimes``: the interpreters that can be measured by name, made and removed."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

import click

from pytest_ortbench.cli.arguments import epilog
from pytest_ortbench.cli.terminal import ExitCode, say, table, warn
from pytest_ortbench.core.errors import UsageError, did_you_mean
from pytest_ortbench.core.units import format_amount
from pytest_ortbench.models.cache import cache_folder
from pytest_ortbench.runtimes.config import configured_runtimes
from pytest_ortbench.runtimes.environments import Environments
from pytest_ortbench.runtimes.installed import installed
from pytest_ortbench.runtimes.project_file import entry_to_write
from pytest_ortbench.runtimes.resolve import RUNTIMES_FOLDER, choose_runtimes

if TYPE_CHECKING:
    from pytest_ortbench.runtimes.environments import Environment


@click.group(
    invoke_without_command=True,
    epilog=epilog(
        "ortbench runtimes",
        "ortbench runtimes create onnxruntime-openvino==1.24.1 onnxruntime==1.20.1",
        "ortbench runtimes remove onnxruntime-1.20.1",
        "pytest MODEL.onnx --ort-runtimes=current,onnxruntime==1.20.1",
    ),
)
@click.pass_context
def command(context: click.Context) -> int:
    """List, create and remove the runtimes that --ort-runtimes can name.

    A runtime is an interpreter with ONNX Runtime: the current one, an environment made from a
    requirement list, or a command that the project has configured.
    """
    if context.invoked_subcommand is None:
        return _list()
    return ExitCode.FINE


@command.command("list", epilog=epilog("ortbench runtimes list"))
def list_runtimes() -> int:
    """List the runtimes that are there: current, configured ones, environments that were made."""
    return _list()


@command.command(
    epilog=epilog(
        "ortbench runtimes create onnxruntime==1.30.0+onnxruntime-qnn",
        "ortbench runtimes create auto",
    )
)
@click.argument("specs", metavar="SPEC...", nargs=-1, required=True)
def create(specs: tuple[str, ...]) -> int:
    """Make environments now, so that measuring in them needs no network later.

    SPEC is what --ort-runtimes takes: requirements joined by +, a configured name, or auto.
    """
    chosen = choose_runtimes(
        specs, root=Path.cwd(), environments=_environments, notify=warn, place="SPEC"
    )
    for runtime in chosen.runtimes:
        failure = chosen.failures.get(runtime.label)
        if failure is None:
            say(f"{runtime.label}: {' '.join(runtime.command)}")
        else:
            warn(f"ortbench: {failure.message}. {failure.hint}".rstrip(". "))
    for skip in chosen.skips:
        warn(f"ortbench: left out {skip.what}: {skip.reason}")
    return ExitCode.NOTHING if chosen.failures else ExitCode.FINE


@command.command(
    epilog=epilog("ortbench runtimes remove onnxruntime-1.20.1", "ortbench runtimes remove --all")
)
@click.argument("labels", metavar="LABEL...", nargs=-1)
@click.option("--all", "everything", is_flag=True, help="All environments that were created.")
def remove(labels: tuple[str, ...], everything: bool) -> int:
    """Remove environments that were made; they are made again when they are asked for."""
    if labels and everything:
        named = ", ".join(map(repr, labels))
        raise UsageError(
            f"{named} and --all are both given",
            place="LABEL",
            hint=f"To remove only {named}, leave --all out. To remove all environments that were "
            f"made, leave {named} out",
        )
    environments = _environments()
    made = environments.all()
    names = {environment.manifest.label for environment in made}
    nothing = (
        f"There are no environments in {cache_folder() / RUNTIMES_FOLDER}, so nothing to remove"
    )
    if not labels and not everything:
        raise UsageError(
            "no runtime is named",
            place="LABEL",
            hint=f"Name an environment, e.g. 'ortbench runtimes remove {min(names)}'. To remove "
            "all of them, write --all"
            if names
            else nothing,
        )
    for label in labels:
        if label not in names:
            raise UsageError(
                f"ortbench did not make {label!r}, and removes only environments that it made"
                if label == "current" or label in configured_runtimes(Path.cwd())
                else f"the environment {label!r} does not exist",
                place="LABEL",
                hint=_not_removable(label, names) or nothing,
            )
    for environment in made:
        if everything or environment.manifest.label in labels:
            try:
                environments.remove(environment)
            except OSError as error:
                warn(f"ortbench: {environment.folder} can't be removed: {error.strerror or error}")
                return ExitCode.WRONG_CALL
            manifest = environment.manifest
            say(
                f"removed {manifest.label}, Python {manifest.python}: "
                f"{format_amount(manifest.size_bytes, 'bytes')}"
            )
    return ExitCode.FINE


def _not_removable(label: str, names: Iterable[str]) -> str:
    """Return the next step for a label of no environment that was made; empty if there is none."""
    if label in configured_runtimes(Path.cwd()):
        written = entry_to_write(Path.cwd(), "runtimes", label)
        return f"To take it out of the list, remove {written}"
    if label == "current":
        made = min(names, default="")
        return f"Name an environment, e.g. 'ortbench runtimes remove {made}'" if made else ""
    return did_you_mean(label, names) if names else ""


def _environments() -> Environments:
    return Environments(cache_folder() / RUNTIMES_FOLDER, notify=warn)


def _list() -> int:
    environments = _environments()
    rows = [_current()]
    for runtime in configured_runtimes(Path.cwd()).values():
        requirements = "+".join(runtime.requirements.requirements) if runtime.requirements else ""
        words = [
            *runtime.command,
            *([runtime.python] if runtime.python and not requirements else []),
        ]
        rows.append(
            [runtime.name, "configured", "-", "-", " ".join(filter(None, (*words, requirements)))]
        )
    rows += [_made(environment) for environment in environments.all()]
    say(table(rows, header=["label", "ONNX Runtime", "Python", "size", "what it is"]))
    say(f"environments are kept in {environments.folder}")
    return ExitCode.FINE


def _current() -> list[str]:
    import platform
    import sys

    installed_here = ", ".join(runtime.requirement for runtime in installed().runtimes)
    return ["current", installed_here or "none", platform.python_version(), "-", sys.executable]


def _made(environment: Environment) -> list[str]:
    manifest = environment.manifest
    asked = ", ".join(dict.fromkeys(request.partition(" for ")[0] for request in manifest.requests))
    return [
        manifest.label,
        manifest.onnxruntime,
        manifest.python,
        format_amount(manifest.size_bytes, "bytes"),
        f"{asked}; numpy {manifest.numpy}; made {manifest.created_at[:10]}",
    ]
