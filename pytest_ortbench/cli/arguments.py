"""Arguments and options that several commands share."""

from __future__ import annotations

import gc
import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import click

from pytest_ortbench.cli.files import note_read
from pytest_ortbench.cli.terminal import warn
from pytest_ortbench.core.errors import UsageError
from pytest_ortbench.core.run import Run
from pytest_ortbench.models.resolve import BrokenModel, resolve_models
from pytest_ortbench.models.sources import named_source
from pytest_ortbench.store.documents import read_run

_F = TypeVar("_F", bound=Callable[..., object])

#: Where run ids and ``latest`` are looked up.
results_option = click.option(
    "--results",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path("results"),
    show_default=True,
    help="Folder of the stored runs.",
)

output_option = click.option(
    "--output",
    "-o",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Write to this file instead of the terminal.",
)

#: Also by the name that hints of pytest's runs give it.
custom_ops_option = click.option(
    "--custom-ops",
    "--ort-custom-ops",
    "custom_ops",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    multiple=True,
    help="A library of custom operators, as for --ort-custom-ops; repeatable.",
)

filter_option = click.option(
    "--filter",
    "filters",
    metavar="TEXT",
    multiple=True,
    help="Only cases with this in their id, or COLUMN=VALUE, COLUMN!=VALUE. Repeatable.",
)


#: The option of commands, and that of pytest, which plans name.
PROVIDERS, _OF_PYTEST = "--providers", "--ort-providers"


@contextmanager
def naming_providers(option: str = PROVIDERS) -> Iterator[None]:
    """Tell an error of the providers of a plan at the option of the command.

    Args:
        option: What the command calls it.

    Raises:
        UsageError: as the plan raises it.
    """
    try:
        yield
    except UsageError as error:
        if error.place != _OF_PYTEST:
            raise
        raise UsageError(error.message, place=option, hint=error.hint) from error


class FiniteRange(click.FloatRange):
    """A range of numbers without ``nan`` and ``inf``, which click's own lets through."""

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        """Read a number of the range; anything else is a wrong call."""
        number = float(super().convert(value, param, ctx))
        if not math.isfinite(number):
            self.fail(f"{value} is not a finite number.", param, ctx)
        return number


def epilog(*examples: str) -> str:
    """Return the examples at the end of a command's help, each on its line."""
    return "\b\nExamples:\n" + "\n".join(f"  {example}" for example in examples)


def load_run(spec: str, results: Path) -> Run:
    """Load one run by what the user calls it; what can't be read of it is said on standard error.

    Raises:
        UsageError: if there is no such run.
        DocumentError: if it can't be read.
    """
    with _uncollected():
        loaded = read_run(spec, results)
    note_read(loaded.path)
    for note in loaded.notes:
        warn(f"note: {note}")
    if loaded.run.finished_at is None:
        done = f"{len(loaded.run.cases)} of {loaded.run.expected} cases"
        warn(f"note: {loaded.run.run_id} was not finished: it contains {done}")
    return loaded.run


@contextmanager
def _uncollected() -> Iterator[None]:
    """Keep the collector of cycles away from a document: it has none, and many objects.

    A fifth of the time of a report of 2,000 cases went into walking it again and again.
    """
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        if enabled:
            gc.enable()


def words_for_pytest(model: str) -> list[str]:
    """Return the arguments by which pytest measures a model.

    Args:
        model: As a command takes it: a file, or a name such as ``zoo:silero-vad``.
    """
    # Pytest takes brackets and colons in an argument for a test of the file.
    is_plain = Path(model).exists() and not set(model) & set("[:")
    return [model] if is_plain else ["--pyargs", "pytest_ortbench.suites", f"--ort-models={model}"]


def require_model(model: str) -> None:
    """Look for the model of a command before anything else, and tell errors at its place.

    Args:
        model: As the user wrote it.

    Raises:
        OrtbenchError: if it is not there or can't be read.
    """
    source = named_source(model, Path.cwd())
    if source is not None and not source.refusal:
        return  # it is exported later, where the interpreter is known
    for found in resolve_models([model], root=Path.cwd(), notify=warn, place="MODEL"):
        if isinstance(found, BrokenModel):
            raise found.error
