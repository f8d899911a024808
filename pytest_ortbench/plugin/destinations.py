"""Files and folders that the user names for a run to write to."""

from __future__ import annotations

import os
from collections.abc import Collection
from pathlib import Path
from tempfile import TemporaryFile

from pytest_ortbench.core.whole_file import replace_file
from pytest_ortbench.plugin.options import ROWS, Options
from pytest_ortbench.report.ci.summary import unfinished_summary
from pytest_ortbench.store.writable import (
    refuse_to_replace,
    require_writable_below,
    require_writable_file,
    unwritable,
)

_FOLDER = "Name a writable folder"


def refuse_unwritable(options: Options, read: Collection[Path]) -> None:
    """Refuse files and folders of the user's choice that nothing can be written to.

    Args:
        options: As they were read.
        read: Files that the run reads: none of them may be written over.

    Raises:
        UsageError: with option, path and reason.
    """
    for row in ROWS:
        value = getattr(options, row.field)
        if not row.writes or not value:
            continue
        path, place = Path(value), options.place_of(row.field)
        if row.writes == "file":
            require_writable_file(path, place)
            refuse_to_replace(path, read, place)
        elif row.writes == "folder":
            require_writable_below(path, path, place, _FOLDER)
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
        raise unwritable(path, error, options.place_of("summary")) from error


def job_summary() -> Path | None:
    """Return the file that GitHub Actions shows as the summary of a job, where there is one."""
    name = os.environ.get("GITHUB_STEP_SUMMARY")
    return Path(name) if name else None


def is_job_summary(path: Path) -> bool:
    """Whether a file is that one, which other steps of the job append to, too."""
    shown = job_summary()
    return shown is not None and shown.resolve() == path.resolve()


def _try_folder(folder: Path, place: str) -> None:
    """Make a folder that others write to, and find out that it takes a file."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise unwritable(folder, error, place, _FOLDER) from error
