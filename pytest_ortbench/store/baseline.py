"""Which stored run ``--ort-baseline`` means; a first run has none yet, which is no error."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from pytest_ortbench.core.errors import UsageError
from pytest_ortbench.core.run import LATEST
from pytest_ortbench.store.documents import (
    foreign_note,
    list_runs,
    refused_name,
    resolve_run,
)
from pytest_ortbench.store.folder import DOCUMENT, JOURNAL

#: So many runs may be asked for a case: those of a selection of tests have few of them.
_REACH = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """The documents of a baseline.

    Attributes:
        paths: Where they lie, the newest first; none where nothing was recorded yet. Of each case
            the newest one counts that measured it.
        passed_over: Newer runs that are no baseline, since they failed a gate themselves.
        foreign: What to say of files of other tools in the folder; empty where there are none.
    """

    paths: tuple[Path, ...] = ()
    passed_over: tuple[str, ...] = ()
    foreign: str = ""


def find_baseline(spec: str, results: Path, *, base: Path, place: str) -> Found:
    """Find the documents of a baseline.

    Args:
        spec: ``latest``, a run id, a run's folder or file, or a folder of runs (its newest
            finished ones).
        results: The results folder.
        base: Folder that relative paths start at.
        place: Where it was written, for messages.

    Returns:
        The document of a certain run; or of several runs the newest ones that did not fail a gate
        themselves: what got worse stays worse, however often it is measured again. None where
        nothing was recorded yet: no finished run in the results folder, an empty folder, or a
        folder that is still to be made (written with a slash).

    Raises:
        UsageError: if a certain run was named and is not there, if a folder holds other things
            than runs, if every run failed its gate, or if a newer one than the newest that can be
            read can't be.
    """
    if spec == LATEST:
        return _newest(results, place)
    path = base / spec
    try:
        is_folder, is_file = path.is_dir(), path.is_file()
    except OSError as error:  # a name too long to be one, a folder that may not be entered
        what, hint = refused_name(error, spec, path, "can't be read")
        raise UsageError(what, place=place, hint=hint) from error
    if is_folder:
        return _in_folder(path, place)
    if is_file:
        return Found(paths=(path,))
    if spec.endswith(("/", "\\")):
        return Found()
    try:
        return Found(paths=(resolve_run(spec, results),))
    except UsageError as error:
        hint = f"{error.hint.rstrip('.')}. To name a folder that is still to be made, write {spec}/"
        raise UsageError(error.message, place=place, hint=hint) from error


def _in_folder(folder: Path, place: str) -> Found:
    """The run of a run's own folder, or the newest ones of a folder of runs."""
    for name in (DOCUMENT, JOURNAL):
        if (folder / name).is_file():
            return Found(paths=(folder / name,))
    newest = _newest(folder, place)
    others = [entry.name for entry in folder.iterdir() if not entry.name.startswith(".")]
    if not newest.paths and others and not list_runs(folder):
        suffix = Path(DOCUMENT).suffix
        other = next((name for name in sorted(others) if name.endswith(suffix)), "")
        raise UsageError(
            f"the folder {str(folder)!r} contains {other or others[0]!r}, but no run"
            + (f" ({DOCUMENT})" if other else ""),
            place=place,
            hint=f"If {other} is a run, name this file itself: {folder / other}"
            if other
            else "Name the folder that contains the stored runs. To start without a baseline, "
            "name an empty folder",
        )
    return newest


def _newest(folder: Path, place: str) -> Found:
    passed_over: list[str] = []
    paths: list[Path] = []
    runs = list_runs(folder)
    for run in runs:
        if run.state == "unreadable" and run.path.name == DOCUMENT and not paths:
            older = next((other.run_id for other in runs if other.state == "finished"), "")
            instead = f". To compare with an older run, write --ort-baseline={folder / older}"
            raise UsageError(
                f"the newest run, {str(run.path)!r}, can't be read: {run.problem}",
                place=place,
                hint=f"{run.remedy}{instead if older else ''}",
            )
        if run.state != "finished":
            continue
        if not run.gate_failed:
            paths.append(run.path)
        elif not paths:
            passed_over.append(run.run_id)
    if passed_over and not paths:
        raise UsageError(
            f"no run in the folder {str(folder)!r} can be the baseline, since "
            f"{passed_over[0]}{' and all before it' if passed_over[1:] else ''} failed a gate",
            place=place,
            hint="To compare with the newest all the same, write "
            f"--ort-baseline={folder / passed_over[0]}. To make a new baseline, run once "
            f"with --ort-results={folder} in place of --ort-baseline",
        )
    return Found(
        paths=tuple(paths[:_REACH]), passed_over=tuple(passed_over), foreign=foreign_note(runs)
    )
