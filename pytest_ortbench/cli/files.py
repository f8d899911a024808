"""Files that commands write: whole or not at all, with one line where that fails."""

from __future__ import annotations

from pathlib import Path


def save(text: str, path: Path) -> None:
    """Write ``text`` as UTF-8; folders that are missing are made.

    Raises:
        DocumentError: if it can't be written.
    """
    from pytest_ortbench.core.errors import DocumentError
    from pytest_ortbench.store.journal import replace_file

    try:
        replace_file(path, text.encode())
    except OSError as error:
        raise DocumentError(
            f"can't be written: {error.strerror or error}",
            place=str(path),
            hint="Choose another path with --output",
        ) from error
