"""Whether what the user names can be written to, found out before anything is measured."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from pytest_ortbench.core.errors import DocumentError, UsageError
from pytest_ortbench.store.folder import check_writable

_FILE = "Name a file in a writable folder"


def require_writable_file(path: Path, place: str) -> None:
    """Refuse a file that nothing can be written to.

    Args:
        path: As the user named it. A pipe or ``/dev/stdout`` takes what is written and needs no
            folder.
        place: What named it.

    Raises:
        UsageError: with option, path and reason.
    """
    try:
        if path.exists() and not path.is_file():
            return
        # A file may be a link to one that is still to be made. A folder may not: what it leads to
        # may be a drive that is not there now.
        target = path.resolve() if path.is_symlink() else path.absolute()
        path.resolve()
    except (OSError, RuntimeError) as error:  # not to be entered; links in a circle
        raise unwritable(path, error, place) from error
    require_writable_below(path, target.parent, place, _FILE)


def refuse_to_replace(path: Path, read: Iterable[Path], place: str) -> None:
    """Refuse a file that is read in the same run: to write to it would lose it.

    Args:
        path: As the user named it.
        read: What is read.
        place: What named it.

    Raises:
        UsageError: with option, path and reason.
    """
    if is_read(path, read):
        reason = "it is one of the files that this command reads, and would be overwritten"
        raise _refused(path, reason, place, "Name another file")


def is_read(path: Path, read: Iterable[Path]) -> bool:
    """Whether a path leads to one of the files that are read.

    Args:
        path: Any.
        read: What is read.
    """
    return any(_is_same_file(path, source) for source in read)


def _is_same_file(path: Path, other: Path) -> bool:
    try:
        return path.samefile(other)
    except (OSError, RuntimeError, ValueError):  # one of them is not there, or no path
        return False


def require_writable_below(path: Path, folder: Path, place: str, hint: str) -> None:
    """Refuse a path whose folder takes nothing.

    Args:
        path: As the user named it.
        folder: Where it lies; it need not be there yet.
        place: What named it.
        hint: The next step.

    Raises:
        UsageError: with option, path and reason.
    """
    try:
        check_writable(folder)
    except DocumentError as error:
        raise _refused(path, error.message, place, hint) from error


def unwritable(path: Path, error: Exception, place: str, hint: str = _FILE) -> UsageError:
    """Return the error of a path that can't be written to.

    Args:
        path: As the user named it.
        error: What the file system said.
        place: What named it.
        hint: The next step.
    """
    reason = error.strerror if isinstance(error, OSError) else None
    return _refused(path, reason or str(error), place, hint)


def _refused(path: Path, reason: str, place: str, hint: str) -> UsageError:
    return UsageError(f"can't write to {str(path)!r}: {reason}", place=place, hint=hint)
