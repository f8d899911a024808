"""Files that commands write: whole or not at all, with one line where that fails."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pytest_ortbench.core.errors import DocumentError
from pytest_ortbench.core.whole_file import replace_file


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
        raise DocumentError(
            f"{what} can't be written: {error.strerror or error}".strip(),
            place=str(place or error.filename),
            hint=f"Choose another place with {option}",
        ) from error


def save(content: str | bytes, path: Path) -> None:
    """Write bytes, or a text as UTF-8; folders that are missing are made.

    Raises:
        DocumentError: if it can't be written.
    """
    with writing(path, option="--output"):
        replace_file(path, content.encode() if isinstance(content, str) else content)
