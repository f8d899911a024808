"""Files that commands write: whole or not at all, with one line where that fails."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import click

from pytest_ortbench.core.errors import DocumentError, why_unwritable
from pytest_ortbench.core.whole_file import replace_file
from pytest_ortbench.store.writable import refuse_to_replace

#: The option that names what most commands write.
OUTPUT = "--output"
#: Where the command that runs notes what it reads.
_READ = f"{__name__}.read"


@contextmanager
def writing(place: Path | None, *, option: str, what: str = "") -> Iterator[None]:
    """Say of an error of the file system where it was, and which option names another place.

    Args:
        place: What is written; ``None``: what the error names.
        option: ``--output``.
        what: ``the figures``; empty where the place says it.

    Raises:
        DocumentError: if it can't be written.
    """
    try:
        yield
    except OSError as error:
        path = str(place or error.filename)
        raise DocumentError(
            f"{what} {why_unwritable(error, Path(path))}".strip(),
            place=path,
            hint=f"Name another path with {option}",
        ) from error


def note_read(path: Path) -> None:
    """Note that the command that runs reads a file, so that it does not write over it.

    Args:
        path: Of the file.
    """
    context = click.get_current_context(silent=True)
    if context is not None:
        context.meta.setdefault(_READ, []).append(path)


def save(content: str | bytes, path: Path) -> None:
    """Write bytes, or a text as UTF-8; folders that are missing are made.

    Raises:
        DocumentError: if it can't be written.
        UsageError: if the command has read the file.
    """
    context = click.get_current_context(silent=True)
    refuse_to_replace(path, context.meta.get(_READ, ()) if context is not None else (), OUTPUT)
    with writing(path, option=OUTPUT):
        replace_file(path, content.encode() if isinstance(content, str) else content)
