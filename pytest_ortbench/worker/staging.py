"""Files that the host sends because it does not share its file system with this process.

They lie in one temporary folder, which is removed when the worker ends. A worker that is killed
can't remove it; so the next one sweeps what dead ones left.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, BinaryIO

from pytest_ortbench.core.errors import REPORT_IT, WorkerError
from pytest_ortbench.core.failures import case_error
from pytest_ortbench.core.file_digest import bytes_held_by, content_of
from pytest_ortbench.core.own_folder import OWNER, OwnFolder, sweep
from pytest_ortbench.schema.file_questions import (
    FetchChunk,
    FetchedChunk,
    SeeContents,
    SeenContents,
    StoreChunk,
    StoredChunk,
)
from pytest_ortbench.worker.state import WorkerState

if TYPE_CHECKING:
    from hashlib import _Hash

#: What would be more than a name in a path.
_SPECIAL = frozenset("\0" if os.name == "posix" else "\0\\:")
#: Bytes read at once for the host; in base64 a line of 1.4 MB.
_CHUNK = 1 << 20


@dataclass(slots=True)
class _Incoming:
    """A file of which not all is there yet."""

    digest: _Hash = field(default_factory=hashlib.sha256)
    received: int = 0


#: Under which name the folder is kept from one question to the next.
_STAGING = "staging"


def store_chunk(question: StoreChunk, state: WorkerState) -> StoredChunk:
    """Append to a file in the worker's temporary folder, which is made for the first one."""
    state.enter("files")
    staging = state.kept.get(_STAGING)
    if not isinstance(staging, Staging):
        staging = state.kept[_STAGING] = Staging()
        state.at_end.append(staging.remove)
    return staging.store(question)


def fetch_chunk(question: FetchChunk, state: WorkerState) -> FetchedChunk:
    """Read from a file in the worker's temporary folder."""
    staging = state.kept.get(_STAGING)
    if not isinstance(staging, Staging):
        raise _refused(question.path)
    return staging.fetch(question)


def see_contents(question: SeeContents, state: WorkerState) -> SeenContents:  # noqa: ARG001
    """Look at files, wherever they are; those that are not there are left out."""
    held = {path: content_of(path) for path in question.paths}
    held |= {path: bytes_held_by(path) for path in question.large}
    return SeenContents(contents={path: content for path, content in held.items() if content})


class Staging:
    """The temporary folder of one worker; it is made when the first file comes."""

    def __init__(self) -> None:
        self._made: OwnFolder | None = None
        self._folder: Path | None = None
        self._incoming: dict[str, _Incoming] = {}

    def store(self, chunk: StoreChunk) -> StoredChunk:
        """Append one chunk, and check the file when it is complete.

        Raises:
            WorkerError: for a name that leaves the folder, and a file that arrived damaged.
            OSError: if it can't be written.
        """
        path = self._path(chunk.name)
        try:
            data = base64.b64decode(chunk.data, validate=True)
        except binascii.Error as error:
            raise _damaged(chunk.name, str(error)) from error
        coming = self._incoming.get(chunk.name)
        if coming is None:
            path.parent.mkdir(parents=True, exist_ok=True)
            coming = self._incoming[chunk.name] = _Incoming()
        with path.open("ab" if coming.received else "wb") as file:
            file.write(data)
        coming.digest.update(data)
        coming.received += len(data)
        if coming.received >= chunk.size_bytes:
            del self._incoming[chunk.name]
            if coming.received != chunk.size_bytes:
                raise _damaged(chunk.name, f"{coming.received} bytes, not {chunk.size_bytes}")
            if coming.digest.hexdigest() != chunk.digest:
                raise _damaged(chunk.name, "its digest is another one")
        return StoredChunk(path=str(path))

    def fetch(self, chunk: FetchChunk) -> FetchedChunk:
        """Read some bytes of a file in the folder.

        Raises:
            WorkerError: for a path outside of the folder.
            OSError: if it can't be read.
        """
        path = Path(chunk.path)
        if self._folder is None or not path.resolve().is_relative_to(self._folder):
            raise _refused(chunk.path)
        with path.open("rb") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(chunk.offset)
            data = file.read(_CHUNK)
            digest = _digest_of(file) if chunk.offset + len(data) >= size else ""
        text = base64.b64encode(data).decode("ascii")
        return FetchedChunk(data=text, size_bytes=size, digest=digest)

    def remove(self) -> None:
        """Remove the folder with all that is in it."""
        if self._made is not None:
            self._made.close()
            self._made = self._folder = None

    def _path(self, name: str) -> Path:
        parts = PurePosixPath(name).parts
        plain = all(part not in ("..", "/", OWNER) and not set(part) & _SPECIAL for part in parts)
        if not parts or not plain:
            raise _refused(name)
        if self._folder is None:
            self._make_folder()
        assert self._folder is not None
        return self._folder.joinpath(*parts)

    def _make_folder(self) -> None:
        sweep()
        self._made = OwnFolder("files")
        self._folder = self._made.path.resolve()


def _digest_of(file: BinaryIO) -> str:
    digest = hashlib.sha256()
    file.seek(0)
    for data in _pieces(file):
        digest.update(data)
    return digest.hexdigest()


def _pieces(file: BinaryIO) -> Iterator[bytes]:
    while data := file.read(_CHUNK):
        yield data


def _refused(name: str) -> WorkerError:
    return case_error(
        f"{name!r} lies outside the folder that the measuring process may use",
        REPORT_IT,
        kind="error",
        phase="files",
    )


def _damaged(name: str, how: str) -> WorkerError:
    return case_error(
        f"{name} arrived damaged at the runtime: {how}",
        "Run again. If this happens twice, check the connection from this machine to the runtime",
        kind="error",
        phase="files",
    )
