"""The newest result of each case over the runs of a folder, read again where a file changed."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from pytest_ortbench.core.errors import DocumentError
from pytest_ortbench.core.run import Run
from pytest_ortbench.store.documents import StoredRun, list_runs, load


@dataclass(frozen=True, slots=True)
class _Read:
    """A run as it was read, and what its file was then."""

    stamp: tuple[int, int]
    run: Run | None


class NewestResults:
    """Follows the runs of a folder, finished or not.

    Args:
        folder: The results folder.
        most: Runs that are looked at, from the newest on.
    """

    def __init__(self, folder: Path, *, most: int) -> None:
        self._folder, self._most = folder, most
        self._known: dict[Path, _Read] = {}

    def runs(self) -> list[Run]:
        """Return the newest runs, each with the cases that no newer one of its machine has."""
        stored = list_runs(self._folder)[: self._most]
        self._known = {run.path: self._read(run) for run in stored}
        seen: set[tuple[str, tuple[str, str]]] = set()
        newest: list[Run] = []
        for entry in self._known.values():
            run = entry.run
            if run is None:
                continue
            host = run.machine.host
            fresh = tuple(result for result in run.cases if (host, result.case.key) not in seen)
            seen.update((host, result.case.key) for result in fresh)
            newest.append(replace(run, cases=fresh))
        return newest

    def _read(self, stored: StoredRun) -> _Read:
        """Read a run, or take it as it was read; ``None`` stands for one that can't be."""
        try:
            status = stored.path.stat()
            stamp = (status.st_mtime_ns, status.st_size)
            known = self._known.get(stored.path)
            if known is not None and known.stamp == stamp:
                return known
            return _Read(stamp, load(stored.path))
        except (OSError, DocumentError):
            return _Read((0, 0), None)
