"""The commands by name, and the one place where errors become a line and an exit code.

``ortbench --help`` must be quick, so a command's module is imported when the command is called;
its line in the help stands here.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Sequence
from typing import NamedTuple

import click

from pytest_ortbench.cli.terminal import ExitCode, ReaderGone, silence, warn
from pytest_ortbench.core.errors import (
    OrtbenchError,
    UsageError,
    did_you_mean,
    lacks_room,
    says,
)
from pytest_ortbench.core.placing import placed
from pytest_ortbench.core.stop_signals import stopped_by_signals
from pytest_ortbench.core.version import VERSION
from pytest_ortbench.passes.registry import PASSES


class CommandEntry(NamedTuple):
    """A command: the module that it lives in, and what its line in the help says."""

    module: str
    help: str


_OWN: dict[str, CommandEntry] = {
    "quick": CommandEntry("quick", "Measure a model, and open the page of what was found."),
    "init": CommandEntry("init", "Write a suite and a CI job for the models of a repository."),
    "doctor": CommandEntry("doctor", "Show what is installed, what runs, and what adds noise."),
    "providers": CommandEntry("providers", "Show which execution providers run on this machine."),
    "selfcheck": CommandEntry(
        "selfcheck", "Check this machine's measurements against independent ones."
    ),
    "models": CommandEntry("models", "List, fetch and inspect models."),
    "convert": CommandEntry(
        "convert", "Export a source to ONNX: a function or a framework's file."
    ),
    "serve": CommandEntry("serve", "Serve a model by the Open Inference Protocol over HTTP."),
    "runtimes": CommandEntry("runtimes", "List, create and remove runtimes."),
    "watch": CommandEntry("watch", "Show a run while it measures, case by case."),
    "metrics": CommandEntry("metrics", "Serve the newest numbers to Prometheus."),
    "show": CommandEntry("show", "Show the table of a stored run."),
    "export": CommandEntry("export", "Write one row per case as CSV, JSON or Markdown."),
    "report": CommandEntry("report", "Write an HTML page of one run or several."),
    "plot": CommandEntry("plot", "Write the figures of one run or several to files."),
    "badge": CommandEntry("badge", "Write a badge with one number, for shields.io."),
    "compare": CommandEntry(
        "compare", "Compare runs side by side: machines, runtimes, providers, times."
    ),
    "fleet": CommandEntry("fleet", "Run a suite on many machines, and compare them."),
    "merge": CommandEntry("merge", "Merge several runs of one machine into one document."),
    "bisect": CommandEntry("bisect", "Find the first runtime in which a model got worse."),
    "trend": CommandEntry("trend", "Find where latency changed over many stored runs."),
    "gate": CommandEntry("gate", "Compare two stored runs for regressions; test the gate itself."),
    "accept": CommandEntry("accept", "Accept a regression or a removal that is intended."),
    "comment": CommandEntry("comment", "Write a run's summary as a comment on a pull request."),
    "accuracy": CommandEntry("accuracy", "Find where a precision loses accuracy, node by node."),
    "schema": CommandEntry(
        "schema", "Print the JSON Schema of documents, or check them against it."
    ),
}

#: Every command by name, in the order of the help; those of passes stand where these say.
COMMANDS: dict[str, CommandEntry] = dict(
    placed(
        (
            (name, entry._replace(module=f"{__package__}.{entry.module}"))
            for name, entry in _OWN.items()
        ),
        (
            (
                owner.command.place,
                (owner.name, CommandEntry(f"{owner.folder}.command", owner.command.help)),
            )
            for owner in PASSES
            if owner.command is not None
        ),
        lambda command: command[0],
    )
)


class LazyCommands(click.Group):
    """A group whose commands are imported when they are called."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        """Return the names in the order of the help."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        """Import the module of a command and return it."""
        entry = COMMANDS.get(cmd_name)
        if entry is None:
            return None
        module = importlib.import_module(entry.module)
        command: click.Command = module.command
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command, or say which one may have been meant."""
        if args and args[0] not in COMMANDS and not args[0].startswith("-"):
            ctx.fail(f"No such command {args[0]!r}. {did_you_mean(args[0], COMMANDS)}")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        """Write the list of commands without importing any."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, entry.help) for name, entry in COMMANDS.items()])


EPILOG = """\b
Exit codes: 0 success, 1 a limit failed, 2 the call is wrong, 3 nothing could be measured or shown.

\b
Examples:
  ortbench doctor
  ortbench show latest
  ortbench export latest --format=csv --output=rows.csv
"""


@click.group(
    cls=LazyCommands, context_settings={"help_option_names": ["-h", "--help"]}, epilog=EPILOG
)
@click.version_option(VERSION, message="pytest-ortbench %(version)s")
def application() -> None:
    """Look at what pytest-ortbench measured, and at the machine that it measures on.

    RUN is 'latest' (the newest finished run), a run id, the folder of a run, or a file.
    """


def run(arguments: Sequence[str]) -> int:
    """Run one call of the tool and return its exit code."""
    try:
        with stopped_by_signals():
            code = application.main(list(arguments), prog_name="ortbench", standalone_mode=False)
        return code if isinstance(code, int) else ExitCode.FINE
    except ReaderGone:
        silence()
        return ExitCode.FINE
    except OrtbenchError as error:
        _tell(error)
    except OSError as error:
        if not lacks_room(error):
            raise
        _tell(_no_room(error))
    except click.Abort:
        return ExitCode.INTERRUPTED
    except click.ClickException as error:
        error.show(sys.stderr)
    return ExitCode.WRONG_CALL


def _tell(error: OrtbenchError) -> None:
    # One line, whatever a native message inside of it looks like.
    warn(f"ortbench: {' '.join(str(error).split())}")


def _no_room(error: OSError) -> UsageError:
    named = f"the file {error.filename}" if error.filename else "a file, or the output,"
    return UsageError(
        f"{named} can't be written. {says('The system', error.strerror or str(error))}",
        hint="Free space on the disk, and run the command again. Temporary files can go to another "
        "disk: name a folder of it in the environment variable TMPDIR",
    )
