"""Which stored run ``--ort-baseline`` means; a first run has none yet, which is no error."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from pytest_ortbench.core.errors import UsageError
from pytest_ortbench.store.documents import LATEST, list_runs, resolve_run
from pytest_ortbench.store.folder import DOCUMENT


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """The document of a baseline.

    Attributes:
        path: Where it lies; ``None`` where nothing was recorded yet.
        passed_over: Newer runs that are no baseline, since they failed a gate themselves.
    """

    path: Path | None
    passed_over: tuple[str, ...] = ()


def find_baseline(spec: str, results: Path, *, base: Path, place: str) -> Found:
    """Find the document of a baseline.

    Args:
        spec: ``latest``, a run id, a run's folder or file, or a folder of runs (its newest
            finished one).
        results: The results folder.
        base: Folder that relative paths start at.
        place: Where it was written, for messages.

    Returns:
        The document; none where nothing was recorded yet: no finished run in the results folder,
        an empty folder, or a folder that is still to be made (written with a slash). Of several
        runs it is the newest one that did not fail a gate itself: what got worse stays worse,
        however often it is measured again.

    Raises:
        UsageError: if a certain run was named and is not there, or a newer one than the newest
            that can be read can't be.
    """
    if spec == LATEST:
        return _newest(results, place)
    path = base / spec
    if path.is_dir():
        whole = (path / DOCUMENT).is_file()
        return Found(path=path / DOCUMENT) if whole else _newest(path, place)
    if path.is_file():
        return Found(path=path)
    if spec.endswith(("/", "\\")):
        return Found(path=None)
    try:
        return Found(path=resolve_run(spec, results))
    except UsageError as error:
        hint = f"{error.hint}. A folder that is still to be filled is written with a slash: {spec}/"
        raise UsageError(error.message, place=place, hint=hint) from error


def _newest(folder: Path, place: str) -> Found:
    passed_over: list[str] = []
    for run in list_runs(folder):
        if run.state == "unreadable" and run.path.name == DOCUMENT:
            raise UsageError(
                f"the newest run, {run.path}, can't be read: {run.problem}",
                place=place,
                hint="Move it away, or name the run that is meant",
            )
        if run.state != "finished":
            continue
        if not run.gate_failed:
            return Found(path=run.path, passed_over=tuple(passed_over))
        passed_over.append(run.run_id)
    return Found(path=None, passed_over=tuple(passed_over))
