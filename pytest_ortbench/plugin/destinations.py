"""Files and folders that the user names for a run to write to."""

from __future__ import annotations

import os
from pathlib import Path
from tempfile import TemporaryFile

from pytest_ortbench.core.errors import DocumentError, UsageError
from pytest_ortbench.core.whole_file import replace_file
from pytest_ortbench.plugin.options import ROWS, Options
from pytest_ortbench.report.ci.summary import unfinished_summary
from pytest_ortbench.store.folder import check_writable

_FOLDER = "Name a writable folder"
_FILE = "Name a file in a writable folder"


def refuse_unwritable(options: Options) -> None:
    """Refuse files and folders of the user's choice that nothing can be written to.

    Raises:
        UsageError: with option, path and reason.
    """
    for row in ROWS:
        value = getattr(options, row.field)
        if not row.writes or not value:
            continue
        path, place = Path(value), options.place_of(row.field)
        if row.writes == "file":
            _try_file(path, place)
        elif row.writes == "folder":
            _try_below(path, path, place, _FOLDER)
        else:
            _try_folder(path, place)


def begin_summary(options: Options) -> None:
    """Say in the file of the summary that the run has not ended: a run may be killed.

    An old one would otherwise pass for what this run found.

    Raises:
        UsageError: with option, path and reason.
    """
    path = options.summary
    if path is None or is_job_summary(path):
        return
    try:
        # A pipe would get it beside what follows.
        if path.is_file() or not path.exists():
            replace_file(path, unfinished_summary().encode())
    except OSError as error:
        place = options.place_of("summary")
        raise _refused(path, error.strerror or str(error), place, _FILE) from error


def job_summary() -> Path | None:
    """Return the file that GitHub Actions shows as the summary of a job, where there is one."""
    name = os.environ.get("GITHUB_STEP_SUMMARY")
    return Path(name) if name else None


def is_job_summary(path: Path) -> bool:
    """Whether a file is that one, which other steps of the job append to, too."""
    shown = job_summary()
    return shown is not None and shown.resolve() == path.resolve()


def _try_file(path: Path, place: str) -> None:
    try:
        # A pipe or /dev/stdout takes what is written and needs no folder.
        if path.exists() and not path.is_file():
            return
        target = path.resolve()
    except (OSError, RuntimeError) as error:  # not to be entered; links in a circle
        reason = error.strerror if isinstance(error, OSError) else None
        raise _refused(path, reason or str(error), place, _FILE) from error
    _try_below(path, target.parent, place, _FILE)


def _try_below(path: Path, folder: Path, place: str, hint: str) -> None:
    try:
        check_writable(folder)
    except DocumentError as error:
        raise _refused(path, error.message, place, hint) from error


def _try_folder(folder: Path, place: str) -> None:
    """Make a folder that others write to, and find out that it takes a file."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise _refused(folder, error.strerror or str(error), place, _FOLDER) from error


def _refused(path: Path, reason: str, place: str, hint: str) -> UsageError:
    return UsageError(f"can't write to {str(path)!r}: {reason}", place=place, hint=hint)
