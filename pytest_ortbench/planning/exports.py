"""Exports on disk: each source is exported once, and kept until code, weights or versions change.

They lie in the user's cache, in a folder for each source and in it one for each state of it. What
was made of a source is loaded only if everything that was read of it, and the version of every
package that decided on it, is as it was. Folders that other users may write to are not used.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from pytest_ortbench.core.case import Runtime
from pytest_ortbench.core.errors import ModelError, WorkerError
from pytest_ortbench.core.file_digest import file_digest
from pytest_ortbench.core.outcome import Failure
from pytest_ortbench.core.own_folder import OwnFolder, sweep
from pytest_ortbench.core.ownership import other_writers
from pytest_ortbench.core.source import Exported, KeptExport, Source
from pytest_ortbench.launch.launcher import Launcher
from pytest_ortbench.schema.source_questions import ExportSource, ReadVersions
from pytest_ortbench.schema.wire import from_plain, to_plain

#: Version of how exports are made and kept: another one makes every file again.
EXPORTS = 1
#: Name of their folder in the user's cache.
EXPORTS_FOLDER = "exports"

_RECORD = "export.json"
#: Large networks take minutes.
_EXPORTING_S = 1800.0
_LOOK_S = 60.0
#: No run takes longer than a day.
_LEFT_S = 86400.0
_CURRENT = Runtime()


class ExportError(ModelError):
    """A source can't be exported.

    Args:
        failure: How and in which phase.
    """

    def __init__(self, failure: Failure) -> None:
        self.failure = failure
        super().__init__(failure.message, hint=failure.hint)


@dataclass(slots=True)
class Exports:
    """Exports the sources that a run names, each once.

    Attributes:
        launcher: Starts the workers that export.
        folder: Where exports are kept.
        runtimes: Where the frameworks may be, after the interpreter that runs pytest.
        notify: Told what is exported.
        settings: What the user set for exporters.
    """

    launcher: Launcher
    folder: Path
    runtimes: Sequence[Runtime] = ()
    notify: Callable[[str], None] = lambda _: None
    settings: Mapping[str, str] = field(default_factory=dict)
    _known: dict[tuple[object, ...], KeptExport | Failure] = field(default_factory=dict)

    def obtain(self, path: Path, function: str) -> KeptExport:
        """Return the export of a source, made if there is none of it as it is now.

        Args:
            path: The Python file, or the framework's file or folder.
            function: The function in a Python file; empty for others.

        Raises:
            ExportError: if it can't be made; the same failure again for every further plan.
        """
        key = (str(path), function, *sorted(self.settings.items()))
        if key not in self._known:
            self._known[key] = self._obtained(path, function)
        kept = self._known[key]
        if isinstance(kept, Failure):
            raise ExportError(kept)
        return kept

    def _obtained(self, path: Path, function: str) -> KeptExport | Failure:
        others = other_writers(self.folder.parent) or other_writers(self.folder)
        if others:
            return Failure(
                kind="unavailable",
                phase="export",
                message=f"{others}, and exports are kept there",
                hint="Name a folder of your own in ORTBENCH_CACHE",
            )
        place = self.folder / self._key(path, function)
        runtimes = [_CURRENT]
        runtimes += [
            runtime
            for runtime in self.runtimes
            if runtime.label != _CURRENT.label and runtime.shares_files
        ]
        try:
            first: Failure | None = None
            for runtime in runtimes:
                try:
                    return self._in_runtime(place, path, function, runtime)
                except WorkerError as error:
                    first = first or error.failure
                    if error.failure.kind != "unavailable":
                        return error.failure
        except OSError as error:
            return Failure(
                kind="error",
                phase="export",
                message=f"the cache {self.folder} can't be used ({error.strerror or error})",
                hint="Free space there, or name another folder in ORTBENCH_CACHE",
            )
        assert first is not None  # the interpreter that runs pytest is always among them
        return first

    def _in_runtime(self, place: Path, path: Path, function: str, runtime: Runtime) -> KeptExport:
        from filelock import FileLock, Timeout

        place.mkdir(parents=True, exist_ok=True)
        try:
            with FileLock(place.with_suffix(".lock"), timeout=_EXPORTING_S):
                stored = self._stored(place, path, function, runtime)
                return stored or self._made(place, path, function, runtime)
        except Timeout:
            raise WorkerError(
                Failure(
                    kind="timeout",
                    phase="export",
                    message=f"another process has been exporting it for {_EXPORTING_S:.0f} s",
                    hint="Run it again",
                )
            ) from None

    def _key(self, path: Path, function: str) -> str:
        deciding = [EXPORTS, str(path), function, dict(self.settings)]
        text = json.dumps(deciding, sort_keys=True)
        return hashlib.sha256(text.encode("utf-8", "backslashreplace")).hexdigest()[:24]

    def _stored(
        self, place: Path, path: Path, function: str, runtime: Runtime
    ) -> KeptExport | None:
        """What an earlier export left, if all that decided on it is as it was."""
        for folder in sorted(place.iterdir()):
            record = _record(folder)
            # Files of earlier states are large: they are read for the state of now alone.
            if record is None or not _is_current(record) or _has_other_files(path, record):
                continue
            same = self._versions(runtime, tuple(record.versions)) == record.versions
            if same and _is_whole(folder, record):
                return _kept(folder, record, path, function)
        return None

    def _versions(self, runtime: Runtime, names: tuple[str, ...]) -> dict[str, str]:
        question = ReadVersions(distributions=names)
        deadline = time.monotonic() + _LOOK_S
        try:
            return self.launcher.ask(question, deadline=deadline, runtime=runtime).versions
        except WorkerError:
            return {}

    def _made(self, place: Path, path: Path, function: str, runtime: Runtime) -> KeptExport:
        text = Source(path=path.name, function=function).text
        where = "" if runtime.label == _CURRENT.label else f" in {runtime.label}"
        self.notify(f"exporting {text}{where}")
        sweep(place)
        with OwnFolder("export", place) as scratch:
            draft = scratch / "export"
            draft.mkdir()
            question = ExportSource(
                path=str(path),
                function=function,
                folder=str(draft),
                settings=dict(self.settings),
            )
            record = self.launcher.ask(
                question, deadline=time.monotonic() + _EXPORTING_S, runtime=runtime, label=text
            )
            (draft / _RECORD).write_text(json.dumps(to_plain(record), indent=1), encoding="utf-8")
            target = place / _state(record)
            if target.is_symlink():
                target.unlink()
            elif target.exists():
                shutil.rmtree(target)
            draft.rename(target)
        if not (_record(target) and _is_whole(target, record) and _is_current(record)):
            raise WorkerError(
                Failure(
                    kind="error",
                    phase="export",
                    message=f"{text} changed while it was exported",
                    hint="Run it again",
                )
            )
        _remove_earlier(place, kept=target)
        return _kept(target, record, path, function)


def _remove_earlier(place: Path, *, kept: Path) -> None:
    """Remove states that the files of a source left long ago; another run may use a young one."""
    for folder in place.iterdir():
        record = _record(folder)
        if folder == kept or record is None or _is_current(record):
            continue
        if time.time() - folder.stat().st_mtime > _LEFT_S:
            shutil.rmtree(folder, ignore_errors=True)


def _state(record: Exported) -> str:
    """Digest over all that decided on an export."""
    text = json.dumps([record.contents, record.versions], sort_keys=True)
    return hashlib.sha256(text.encode("utf-8", "backslashreplace")).hexdigest()[:24]


def _record(folder: Path) -> Exported | None:
    """The record of a folder that this user alone can write to."""
    if other_writers(folder) or folder.is_symlink() or not folder.is_dir():
        return None
    with suppress(OSError, ValueError):
        plain = json.loads((folder / _RECORD).read_text(encoding="utf-8"))
        record: Exported = from_plain(Exported, plain)
        return record
    return None


def _is_whole(folder: Path, record: Exported) -> bool:
    """Whether what a record names is there and as it says, in its folder alone."""
    names = [record.file, *record.external_files, *([record.example] * bool(record.example))]
    with suppress(OSError, ValueError):
        if not all(_is_within(folder, name) for name in names):
            return False
        external = tuple((name, folder / name) for name in sorted(record.external_files))
        if file_digest(folder / record.file, external) != record.digest:
            return False
        return not record.example or file_digest(folder / record.example) == record.example_digest
    return False


def _is_within(folder: Path, name: str) -> bool:
    """Whether a name of a record is that of a file in its own folder, reached without a link."""
    path = folder / name
    return path.is_file() and path.resolve() == folder.resolve() / name


def _is_current(record: Exported) -> bool:
    """Whether everything that was read of a source is as it was."""
    try:
        return all(file_digest(Path(path)) == held for path, held in record.contents.items())
    except OSError:
        return False


def _has_other_files(path: Path, record: Exported) -> bool:
    """Whether a folder of a framework holds files that it did not hold."""
    return path.is_dir() and any(
        file.is_file() and str(file) not in record.contents for file in path.rglob("*")
    )


def _kept(folder: Path, record: Exported, path: Path, function: str) -> KeptExport:
    text = json.dumps(sorted(record.contents.items()))
    source = Source(
        path=str(path),
        function=function,
        digest=hashlib.sha256(text.encode("utf-8", "backslashreplace")).hexdigest(),
        framework=record.framework,
        exporter=record.exporter,
        versions=record.versions,
        files=tuple(record.contents),
        example=str(folder / record.example) if record.example else "",
    )
    return KeptExport(path=folder / record.file, source=source, notes=record.notes)
