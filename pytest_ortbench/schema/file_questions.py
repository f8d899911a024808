"""What the host asks a worker about files: to store one, to send one, to say what some hold."""

from __future__ import annotations

from dataclasses import dataclass

from pytest_ortbench.schema.question import Question


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredChunk:
    """A chunk is on disk; ``path`` is the file's absolute path on the worker's side."""

    path: str


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreChunk(Question[StoredChunk]):
    """Append to a file in the worker's own temporary folder, which is removed when it ends.

    Attributes:
        name: Where in the folder, with ``/`` between parts.
        data: The next bytes, in base64.
        size_bytes: Size of the whole file; with its last byte the file is complete.
        digest: SHA-256 of the whole file, hexadecimal; checked when it is complete.
    """

    name: str
    data: str
    size_bytes: int
    digest: str


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchedChunk:
    """Bytes of a file.

    Attributes:
        data: The bytes, in base64.
        size_bytes: Size of the whole file.
        digest: SHA-256 of the whole file, with its last bytes; empty before.
    """

    data: str
    size_bytes: int
    digest: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchChunk(Question[FetchedChunk]):
    """Read from a file in the worker's own temporary folder, ``offset`` bytes behind its start."""

    path: str
    offset: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SeenContents:
    """Digests or sizes of the files that exist, by path."""

    contents: dict[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class SeeContents(Question[SeenContents]):
    """Ask for digests or sizes of files on the worker's side.

    Attributes:
        paths: Files that are read.
        large: Files of which only the size is told.
    """

    paths: tuple[str, ...]
    large: tuple[str, ...] = ()
