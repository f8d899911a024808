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
from dataclasses import dataclass, field
from pathlib import Path

from pytest_ortbench.core.case import Runtime
from pytest_ortbench.core.errors import CarriedFailure, ModelError, WorkerError
from pytest_ortbench.core.failures import case_error
from pytest_ortbench.core.file_digest import file_digest
from pytest_ortbench.core.outcome import Failure
from pytest_ortbench.core.source import Exported, KeptExport, Source
from pytest_ortbench.launch.launcher import Launcher
from pytest_ortbench.models.kept_folders import KeptFolders, files_are_whole, is_within
from pytest_ortbench.schema.source_questions import ExportSource, ReadVersions

#: Version of how exports are made and kept: another one makes every file again.
EXPORTS = 1
#: Name of their folder in the user's cache.
EXPORTS_FOLDER = "exports"

#: Large networks take minutes.
_EXPORTING_S = 1800.0
_LOOK_S = 60.0
#: No run takes longer than a day.
_LEFT_S = 86400.0
_CURRENT = Runtime()


class ExportError(CarriedFailure, ModelError):
    """A source can't be exported."""


@dataclass(frozen=True, slots=True)
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
    _known: dict[tuple[str, str], KeptExport | Failure] = field(default_factory=dict)

    def obtain(self, path: Path, function: str) -> KeptExport:
        """Return the export of a source, made if there is none of it as it is now.

        Args:
            path: The Python file, or the framework's file or folder.
            function: The function in a Python file; empty for others.

        Raises:
            ExportError: if it can't be made; the same failure again for every further plan.
        """
        key = (str(path), function)
        if key not in self._known:
            self._known[key] = self._obtained(path, function)
        kept = self._known[key]
        if isinstance(kept, Failure):
            raise ExportError(kept)
        return kept

    def _obtained(self, path: Path, function: str) -> KeptExport | Failure:
        refusal = self._folders.refusal()
        if refusal is not None:
            return refusal
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
            return self._folders.unusable(error)
        assert first is not None  # the interpreter that runs pytest is always among them
        return first

    def _in_runtime(self, place: Path, path: Path, function: str, runtime: Runtime) -> KeptExport:
        place.mkdir(parents=True, exist_ok=True)
        with self._folders.locked(
            place,
            timeout_s=_EXPORTING_S,
            what="exporting this model",
            hint="Run again when that process has ended",
        ):
            stored = self._stored(place, path, function, runtime)
            return stored or self._made(place, path, function, runtime)

    @property
    def _folders(self) -> KeptFolders[Exported]:
        return KeptFolders(
            root=self.folder,
            kind="export",
            record=Exported,
            phase="export",
            kept="exports are kept there",
        )

    def _key(self, path: Path, function: str) -> str:
        deciding = [EXPORTS, str(path), function, dict(self.settings)]
        text = json.dumps(deciding, sort_keys=True)
        return hashlib.sha256(text.encode("utf-8", "backslashreplace")).hexdigest()[:24]

    def _stored(
        self, place: Path, path: Path, function: str, runtime: Runtime
    ) -> KeptExport | None:
        """What an earlier export left, if all that decided on it is as it was."""
        for folder in sorted(place.iterdir()):
            record = self._folders.read(folder)
            # Files of earlier states are large: they are read for the state of now alone.
            if record is None or not _is_current(record) or _has_other_files(path, record):
                continue
            same = self._versions(runtime, tuple(record.versions)) == record.versions
            if same and _holds(folder, record):
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

        def fill(draft: Path) -> Exported:
            question = ExportSource(
                path=str(path),
                function=function,
                folder=str(draft),
                settings=dict(self.settings),
            )
            deadline = time.monotonic() + _EXPORTING_S
            return self.launcher.ask(question, deadline=deadline, runtime=runtime, label=text)

        target, record = self._folders.make(place, fill, _state)
        if not (self._folders.read(target) and _holds(target, record) and _is_current(record)):
            raise case_error(
                f"{text} changed while it was exported",
                "Run again when the file is complete",
                kind="error",
                phase="export",
            )
        self._remove_earlier(place, kept=target)
        return _kept(target, record, path, function)

    def _remove_earlier(self, place: Path, *, kept: Path) -> None:
        """Remove states that the files of a source left long ago; a young one may be in use."""
        for folder in place.iterdir():
            record = self._folders.read(folder)
            if folder == kept or record is None or _is_current(record):
                continue
            if time.time() - folder.stat().st_mtime > _LEFT_S:
                shutil.rmtree(folder, ignore_errors=True)


def _state(record: Exported) -> str:
    """Digest over all that decided on an export."""
    text = json.dumps([record.contents, record.versions], sort_keys=True)
    return hashlib.sha256(text.encode("utf-8", "backslashreplace")).hexdigest()[:24]


def _holds(folder: Path, record: Exported) -> bool:
    """Whether all that a record names is there and as it says, in its folder alone."""
    if not files_are_whole(folder, record):
        return False
    if not record.example:
        return True
    try:
        is_there = is_within(folder, record.example)
        return is_there and file_digest(folder / record.example) == record.example_digest
    except (OSError, ValueError):
        return False


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
