"""Folders of the user's cache: each made once, by one process at a time, and checked when used.

A folder holds files and a record of them. The record is a file that anybody may have changed: what
lies outside of the folder is none of it, whatever it says, and neither is what links lead to.
Folders that other users may write to are not used.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, Protocol, TypeVar

from pytest_ortbench.core.errors import WorkerError, cache_advice
from pytest_ortbench.core.failures import case_error, case_failure
from pytest_ortbench.core.file_digest import file_digest
from pytest_ortbench.core.outcome import Failure
from pytest_ortbench.core.own_folder import OwnFolder, sweep
from pytest_ortbench.core.ownership import advice_on_writers, other_writers, others_in
from pytest_ortbench.schema.wire import from_plain, to_plain


class FileRecord(Protocol):
    """What a record says of the main file of its folder."""

    @property
    def file(self) -> str:
        """Its name."""

    @property
    def external_files(self) -> tuple[str, ...]:
        """External data of it, relative to the folder."""

    @property
    def digest(self) -> str:
        """SHA-256 over it and its external data, hexadecimal."""


R = TypeVar("R", bound=FileRecord)


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptFolders(Generic[R]):
    """Folders with files of one kind.

    Attributes:
        root: The folder in the user's cache below which they lie.
        kind: What one holds, as a part of names: ``export``; its record is ``export.json``.
        record: Type of a record.
        phase: In which making one fails.
        kept: What lies there, for messages: ``exports are kept there``.
    """

    root: Path
    kind: str
    record: type[R]
    phase: str
    kept: str

    def refusal(self) -> Failure | None:
        """Return why nothing below the root may be used: others may write to it."""
        others = others_in(self.root.parent, self.root)
        if not others:
            return None
        return case_failure(
            f"{others}, and {self.kept}",
            advice_on_writers(self.root.parent, self.root),
            kind="unavailable",
            phase=self.phase,
        )

    def unusable(self, error: OSError) -> Failure:
        """Return what a file system that does not do as asked comes to."""
        return case_failure(
            f"the cache folder {self.root} can't be used ({error.strerror or error})",
            cache_advice(error),
            kind="error",
            phase=self.phase,
        )

    @contextmanager
    def locked(self, path: Path, *, timeout_s: float, what: str, hint: str) -> Iterator[None]:
        """Hold the lock of a folder, so that no other process makes it.

        Args:
            path: The folder; the lock lies beside it.
            timeout_s: How long to wait.
            what: What another process does meanwhile: ``exporting it``.
            hint: The next step, if that takes too long.

        Raises:
            WorkerError: if another process held it all the time.
        """
        from filelock import FileLock, Timeout

        path.parent.mkdir(parents=True, exist_ok=True)
        lock = FileLock(path.with_name(f"{path.name}.lock"))
        try:
            lock.acquire(timeout=timeout_s)
        except Timeout:
            message = f"another process is {what}, and has not ended within {timeout_s:.0f} s"
            raise case_error(message, hint, kind="timeout", phase=self.phase) from None
        try:
            yield
        finally:
            lock.release()

    def obtain(
        self, key: str, make: Callable[[], R], *, timeout_s: float, what: str, hint: str
    ) -> R | Failure:
        """Return the record of a folder by its key; the folder is made unless it is there whole.

        Args:
            key: Name of the folder below the root.
            make: Makes it, and returns its record.
            timeout_s: How long to wait for another process that makes it.
            what: What that does meanwhile: ``compiling this model``.
            hint: The next step, if that takes too long.
        """
        try:
            record = self.whole(key)
            if record is not None:
                return record
            with self.locked(self.root / key, timeout_s=timeout_s, what=what, hint=hint):
                # Another process may have been faster.
                return self.whole(key) or make()
        except WorkerError as error:
            return error.failure
        except OSError as error:
            return self.unusable(error)

    def whole(self, key: str) -> R | None:
        """Return the record of a folder whose files are all there and as the record says."""
        folder = self.root / key
        record = self.read(folder)
        return record if record is not None and files_are_whole(folder, record) else None

    def read(self, folder: Path) -> R | None:
        """Return the record of a folder; ``None`` for one without, or that others may write to.

        Args:
            folder: Below the root.
        """
        if other_writers(folder) or folder.is_symlink() or not folder.is_dir():
            return None
        try:
            plain = json.loads((folder / self._name).read_text(encoding="utf-8"))
            record: R = from_plain(self.record, plain)
        except (OSError, ValueError):
            return None
        return record

    def make(
        self, parent: Path, fill: Callable[[Path], R], name_of: Callable[[R], str]
    ) -> tuple[Path, R]:
        """Make a folder beside its place, and put it there when it is whole.

        What lies there already is replaced, and what processes that were killed left is swept.

        Args:
            parent: Where it is to lie.
            fill: Writes its files into an empty folder, and returns their record.
            name_of: Its name, by the record.

        Returns:
            The folder and its record.
        """
        sweep(parent)
        with OwnFolder(self.kind, parent) as scratch:
            draft = scratch / self.kind
            draft.mkdir()
            record = fill(draft)
            text = json.dumps(to_plain(record), indent=1)
            (draft / self._name).write_text(text, encoding="utf-8")
            folder = parent / name_of(record)
            if folder.is_symlink():
                folder.unlink()
            elif folder.exists():
                shutil.rmtree(folder)
            draft.rename(folder)
        return folder, record

    @property
    def _name(self) -> str:
        return f"{self.kind}.json"


def files_are_whole(folder: Path, record: FileRecord) -> bool:
    """Return whether the main file of a folder is there with all its data, as the record says.

    Args:
        folder: The folder.
        record: Its record.
    """
    names = (record.file, *record.external_files)
    try:
        if not all(is_within(folder, name) for name in names):
            return False
        external = tuple((name, folder / name) for name in sorted(record.external_files))
        return file_digest(folder / record.file, external) == record.digest
    except (OSError, ValueError):
        return False


def is_within(folder: Path, name: str) -> bool:
    """Return whether a name is that of a file in a folder, reached without a link.

    Args:
        folder: No link itself.
        name: Of a record.
    """
    path = folder / name
    is_below = not Path(name).is_absolute()
    return is_below and path.is_file() and path.resolve() == folder.resolve() / name
