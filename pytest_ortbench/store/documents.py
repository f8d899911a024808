"""Where run documents lie: list them, find one by what a user calls it, load it."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path

from pytest_ortbench.core.errors import (
    DocumentError,
    ForeignDocumentError,
    UsageError,
    did_you_mean,
    nearest,
    says,
    why_unreadable,
)
from pytest_ortbench.core.run import LATEST, Run
from pytest_ortbench.core.units import counted
from pytest_ortbench.schema.document import (
    RunHead,
    decode_head,
    decode_lines,
    decode_run,
    faults_in,
)
from pytest_ortbench.schema.meaning import Fault, NonsenseError
from pytest_ortbench.store.folder import DOCUMENT, JOURNAL, RunFolder, new_run_id, write_document

__all__ = [
    "Loaded",
    "RunFolder",
    "StoredRun",
    "faults_of_file",
    "foreign_note",
    "list_runs",
    "load",
    "new_run_id",
    "read",
    "read_run",
    "resolve_run",
    "write_document",
]

_MEASURE = "Measure first, e.g. 'pytest MODEL.onnx'"
_AGAIN = "Measure again, e.g. 'pytest MODEL.onnx'"
_NAME_OR_MEASURE = "Name the folder of a run, or measure first, e.g. 'pytest MODEL.onnx'"


#: Characters of a name that a message repeats.
_LONGEST_NAME = 100


def refused_name(error: OSError, name: str, path: Path, what: str) -> tuple[str, str]:
    """Return what is wrong, and the next step, where the file system refuses what names a run.

    Args:
        error: What it raised.
        name: What names the run.
        path: The path that was tried.
        what: What can't be, for the message.
    """
    folders = [*reversed(path.absolute().parents)]
    closed = next((folder for folder in folders if not os.access(folder, os.X_OK)), None)
    if isinstance(error, PermissionError) and closed is not None:
        return (
            f"{shortened(name)!r} can't be read, since your user may not enter {str(closed)!r}",
            "Ask its owner for this right, or name a copy of the run",
        )
    return (
        f"{shortened(name)!r} {what}. {says('The system', error.strerror or str(error))}",
        "Name a run by its id, its folder or its run.json",
    )


def shortened(name: str) -> str:
    """Return a name as a message repeats it."""
    return name if len(name) <= _LONGEST_NAME else f"{name[:_LONGEST_NAME]}…"


#: Endings of documents and journals.
_SUFFIXES = (Path(DOCUMENT).suffix, Path(JOURNAL).suffix)


@dataclass(frozen=True, slots=True, kw_only=True)
class Loaded:
    """A run that was read, and what a reader of it should know.

    Attributes:
        run: The run.
        path: The file that it came from.
        notes: What could not be read (the torn last line of a killed run).
    """

    run: Run
    path: Path
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredRun:
    """One entry of a results folder.

    Attributes:
        run_id: The folder's name.
        path: The document, or the journal of a run that is not finished.
        state: ``finished``; ``unfinished`` while it runs and after it was killed; ``unreadable``;
            ``foreign`` for a file of this name that something else wrote.
        started_at: UTC, ISO 8601; empty if unreadable.
        cases: Number of results.
        expected: Number of cases in the plan.
        plan: Fingerprint of the plan.
        problem: Why it can't be read; empty otherwise.
        remedy: What helps then; empty otherwise.
        gate_failed: Whether it failed against a baseline.
        settled: Whether all that is made of its document was written, or left out on purpose.
    """

    run_id: str
    path: Path
    state: str
    started_at: str = ""
    cases: int = 0
    expected: int = 0
    plan: str = ""
    problem: str = ""
    remedy: str = ""
    gate_failed: bool = False
    settled: bool = True

    @property
    def complete(self) -> bool:
        """Whether it is finished and every case of its plan has a result."""
        return self.state == "finished" and self.cases >= self.expected

    @property
    def age_key(self) -> str:
        """Sorts by start, whether that is known from inside or only from the folder's name."""
        return self.started_at.replace("-", "").replace(":", "") or self.run_id


def load(path: Path) -> Run:
    """Load a run document, or the journal of a run that was killed.

    Raises:
        DocumentError: if it can't be read.
    """
    return read(path).run


def read(path: Path) -> Loaded:
    """Load a run with notes on what could not be read of it.

    Args:
        path: ``run.json`` or ``journal.jsonl``, under whatever name with that ending.

    Raises:
        DocumentError: if it can't be read.
    """
    data = _bytes_of(path)
    if path.suffix == Path(JOURNAL).suffix:
        run, notes = decode_lines(data.split(b"\n"), str(path))
        return Loaded(run=run, path=path, notes=notes)
    return Loaded(run=decode_run(data, str(path)), path=path)


def list_runs(root: Path) -> list[StoredRun]:
    """Return the runs of a results folder, the newest first; none if there is no such folder."""
    try:
        folders = [entry for entry in root.iterdir() if entry.is_dir()]
    except OSError:
        return []
    runs = [_stored(folder.name, path) for folder in folders if (path := _file_in(folder))]
    return sorted(runs, key=_age, reverse=True)


def foreign_note(runs: Iterable[StoredRun]) -> str:
    """Say which entries of a results folder are of other tools; empty where none is."""
    foreign = [run for run in runs if run.state == "foreign"]
    if not foreign:
        return ""
    more = f" (and {len(foreign) - 1} more)" if len(foreign) > 1 else ""
    return f"{foreign[0].path}{more} was skipped: {foreign[0].problem}"


def _age(run: StoredRun) -> tuple[str, int, str]:
    """Sorts by start; of those that began in the same second, by when they were written."""
    try:
        written_ns = run.path.stat().st_mtime_ns
    except OSError:
        written_ns = 0
    return run.age_key, written_ns, run.run_id


def read_run(spec: str, root: Path) -> Loaded:
    """Load a run by what a user calls it, see :func:`resolve_run`.

    Raises:
        UsageError: if there is no such run.
        DocumentError: if it can't be read.
    """
    return _latest(root) if spec == LATEST else read(resolve_run(spec, root))


def faults_of_file(path: Path) -> list[Fault]:
    """Return everything that is wrong with the values of a run document.

    Of a file that is no document at all, :func:`read` tells what is wrong.

    Raises:
        DocumentError: if it is no run document.
    """
    if path.suffix != Path(JOURNAL).suffix:
        return faults_in(_bytes_of(path), str(path))
    try:
        read(path)
    except NonsenseError as error:
        return list(error.faults)
    return []


def resolve_run(spec: str, root: Path) -> Path:
    """Find the file of a run by what a user calls it.

    Args:
        spec: ``latest`` (the newest finished one that can be read), a run id, a run's folder, or a
            file.
        root: The results folder.

    Raises:
        UsageError: if there is no such run; it names the nearest one.
    """
    if spec == LATEST:
        return _latest(root).path
    try:
        document = _named(spec, root)
        is_folder = Path(spec).is_dir()
    except OSError as error:  # a name too long to be one, a folder that may not be entered
        what, hint = refused_name(error, spec, Path(spec), "can't be the name of a run")
        raise UsageError(what, hint=hint) from error
    if document is not None:
        return document
    if spec and is_folder:
        raise _no_run_but_a_folder(spec)
    if Path(spec).name != spec or Path(spec).suffix in _SUFFIXES:
        raise _no_file(Path(spec))
    known = [run.run_id for run in list_runs(root)]
    hint = (
        did_you_mean(spec, [*known, LATEST])
        if known
        else f"The folder contains no run at all. {_MEASURE}"
    )
    raise UsageError(f"the folder {str(root)!r} contains no run {spec!r}", hint=hint)


def _named(spec: str, root: Path) -> Path | None:
    """The file of the run that ``spec`` names: as a file, as a folder, as a run id."""
    given = Path(spec)
    if not spec or given.is_file():
        return given if spec else None
    is_plain_name = given.name == spec
    return _file_in(given) or (_file_in(root / spec) if is_plain_name else None)


def _no_file(path: Path) -> UsageError:
    """A file that is not there, with the nearest one of its folder."""
    folder = path.parent
    if not folder.is_dir():
        return UsageError(
            f"{str(path)!r} does not exist, since there is no folder {str(folder)!r}",
            hint="Correct the path",
        )
    beside = [
        entry.name
        for entry in folder.iterdir()
        if entry.name != path.name and (entry.suffix in _SUFFIXES or entry.is_dir())
    ]
    near = nearest(path.name, beside)
    kind = "file" if path.suffix in _SUFFIXES else "run"
    return UsageError(
        f"the {kind} {str(path)!r} does not exist",
        hint=f"Did you mean {str(folder / near)!r}?"
        if near
        else "If the path is wrong, correct it. If nothing was measured yet, run "
        f"'pytest MODEL.onnx', which writes a {DOCUMENT} below the folder results",
    )


def _no_run_but_a_folder(spec: str) -> UsageError:
    runs = list_runs(Path(spec))
    if not runs:
        return UsageError(
            f"the folder {spec!r} contains no run ({DOCUMENT})", hint=_NAME_OR_MEASURE
        )
    return UsageError(
        f"{spec!r} is a folder with {counted(len(runs), 'run')}, not a run",
        hint=f"Name {'one of them, e.g.' if len(runs) > 1 else 'the run:'} {runs[0].path.parent}",
    )


def _latest(root: Path) -> Loaded:
    """The newest finished run that can be read, with a note on each newer one that can't be."""
    stored = list_runs(root)
    foreign = foreign_note(stored)
    runs = [run for run in stored if run.state != "foreign"]
    skipped: list[str] = []
    remedies: list[str] = []
    for run in runs:
        if run.state == "finished":
            try:
                notes = (foreign, *skipped) if foreign else tuple(skipped)
                return replace(read(run.path), notes=notes)
            except DocumentError as error:
                skipped.append(f"{error.place} was skipped: {error.message}")
                remedies.append(error.hint)
    if skipped:
        raise UsageError(
            f"no finished run in the folder {str(root)!r} can be read. {skipped[0]}",
            hint=remedies[0] or _AGAIN,
        )
    hint = f"{foreign}. {_MEASURE}" if foreign else _MEASURE
    if runs:
        newest, problem = runs[0], runs[0].problem
        hint = f"The newest run there, {newest.run_id!r}, " + (
            f"can't be read: {problem}. {newest.remedy or _AGAIN}"
            if problem
            else "is unfinished. To use the cases that it finished, name this run. To finish it, "
            "repeat its pytest command with --ort-resume"
        )
    raise UsageError(f"the folder {str(root)!r} contains no finished run", hint=hint)


def _file_in(folder: Path) -> Path | None:
    """The file of the run that a folder holds: its document, else its journal."""
    for name in (DOCUMENT, JOURNAL):
        path = folder / name
        if path.is_file():
            return path
    return None


def _stored(run_id: str, path: Path) -> StoredRun:
    try:
        head = _head(path)
    except DocumentError as error:
        state = "foreign" if isinstance(error, ForeignDocumentError) else "unreadable"
        return StoredRun(
            run_id=run_id, path=path, state=state, problem=error.message, remedy=error.hint
        )
    is_finished = path.name == DOCUMENT and head.finished_at is not None
    return StoredRun(
        run_id=run_id,
        path=path,
        state="finished" if is_finished else "unfinished",
        started_at=head.started_at,
        cases=len(head.cases),
        expected=head.expected,
        plan=head.plan,
        settled=path.name != DOCUMENT or not path.with_name(JOURNAL).exists(),
        gate_failed=any(verdict.failures and verdict.has_baseline for verdict in head.gate),
    )


def _head(path: Path) -> RunHead | Run:
    return decode_head(_bytes_of(path), str(path)) if path.name == DOCUMENT else load(path)


def _bytes_of(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        what, hint = why_unreadable(error)
        if isinstance(error, IsADirectoryError):
            hint = f"Name the {DOCUMENT} in it"
        raise DocumentError(f"the path {what}", place=str(path), hint=hint) from error
