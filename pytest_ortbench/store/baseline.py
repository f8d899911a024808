"""Which stored run ``--ort-baseline`` means; a first run has none yet, which is no error."""

from __future__ import annotations

from pathlib import Path

from pytest_ortbench.core.errors import UsageError
from pytest_ortbench.store.documents import LATEST, list_runs, resolve_run
from pytest_ortbench.store.folder import DOCUMENT


def find_baseline(spec: str, results: Path, *, base: Path, place: str) -> Path | None:
    """Find the document of a baseline.

    Args:
        spec: ``latest``, a run id, a run's folder or file, or a folder of runs (its newest
            finished one).
        results: The results folder.
        base: Folder that relative paths start at.
        place: Where it was written, for messages.

    Returns:
        The document; ``None`` where nothing was recorded yet: no finished run in the results
        folder, an empty folder, or a folder that is still to be made (written with a slash).

    Raises:
        UsageError: if a certain run was named and is not there.
    """
    if spec == LATEST:
        return _newest(results)
    path = base / spec
    if path.is_dir():
        return path / DOCUMENT if (path / DOCUMENT).is_file() else _newest(path)
    if path.is_file():
        return path
    if spec.endswith(("/", "\\")):
        return None
    try:
        return resolve_run(spec, results)
    except UsageError as error:
        hint = f"{error.hint}. A folder that is still to be filled is written with a slash: {spec}/"
        raise UsageError(error.message, place=place, hint=hint) from error


def _newest(folder: Path) -> Path | None:
    return next((run.path for run in list_runs(folder) if run.state == "finished"), None)
