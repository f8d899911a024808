"""The digest of a file, computed again only where the file may have changed since.

A file that was hashed some seconds after its last change, and has the same identity, size and
times since, is the same: on POSIX systems no program can set the time of change. On others a
small file is hashed every time, and a large one is told by what the system says of it.
"""

from __future__ import annotations

import hashlib
import os
import stat
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

_CHUNK = 1 << 20
#: Coarsest step of the times of a file system (FAT): a change within it may leave no trace.
_COARSEST_NS = 2 * 10**9
#: So much is read every time where times tell little.
_ALWAYS_READ_BYTES = 4 * 2**20

#: Device, file, size, time of the last write, time of the last change of anything.
Stamp = tuple[int, int, int, int, int]
#: A file and those that lie beside it, by their location in it.
_Key = tuple[Path, tuple[tuple[str, Path], ...]]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Hashed:
    """What was hashed, and whether equal stamps prove that it is still the same."""

    digest: str
    stamps: tuple[Stamp, ...]
    settled: bool


#: A file takes long to read above this: at least some seconds.
_LONG_BYTES = 4 * 10**9
#: A file above this, of which less than half lies on the disk, is hashed by what does.
_SPARSE_BYTES = 64 * 2**20
#: Unit of ``st_blocks``, whatever the blocks of the file system are.
_BLOCK = 512
#: Who is told of files that take long, the last one that asked.
_long_reads: list[Callable[[str], None]] = []

_known: dict[_Key, _Hashed] = {}
#: So many are remembered.
_MOST = 4096


def file_digest(path: Path, external: Sequence[tuple[str, Path]] = ()) -> str:
    """Return the SHA-256 of a model file and its external data.

    Of a large file that mostly lies on no disk, only the parts in use are read and hashed.

    Args:
        path: The file.
        external: Its external data: location as it stands in the model, and file. Hashed behind
            it in this order: the location, a zero byte, the content.

    Raises:
        OSError: if one can't be read.
    """
    key = (path, tuple(external))
    began = time.time_ns()
    stamps = _stamps(key)
    known = _known.pop(key, None)
    if known is not None and known.settled and known.stamps == stamps:
        _known[key] = known
        return known.digest
    hasher = hashlib.sha256()
    _feed(hasher, path)
    for location, file in external:
        hasher.update(location.encode() + b"\0")
        _feed(hasher, file)
    digest = hasher.hexdigest()
    settled = stamps == _stamps(key) and all(_is_settled(stamp, began) for stamp in stamps)
    if len(_known) >= _MOST:
        del _known[next(iter(_known))]
    _known[key] = _Hashed(digest=digest, stamps=stamps, settled=settled)
    return digest


def content_of(path: str) -> str:
    """Return what tells the content of a file from an earlier one; empty if it is not here.

    Its SHA-256, read again only where it may have changed; of a folder and the like size and time.
    """
    try:
        status = Path(path).stat()
        if stat.S_ISREG(status.st_mode):
            return file_digest(Path(path))
    except (OSError, ValueError):
        return ""
    return f"{status.st_size} bytes of {status.st_mtime_ns}"


def bytes_held_by(path: str) -> str:
    """Return the size of a file as a text, without reading it; empty if it does not exist."""
    try:
        return f"{Path(path).stat().st_size} bytes"
    except (OSError, ValueError):
        return ""


def stamp_of(path: Path) -> Stamp:
    """Return what the system says of a file, links followed.

    Raises:
        OSError: if there is none.
    """
    status = path.stat()
    return (
        status.st_dev,
        status.st_ino,
        status.st_size,
        status.st_mtime_ns,
        status.st_ctime_ns,
    )


def _stamps(key: _Key) -> tuple[Stamp, ...]:
    path, external = key
    return tuple(stamp_of(file) for file in (path, *(file for _, file in external)))


def _is_settled(stamp: Stamp, now_ns: int) -> bool:
    """Whether a later change would show in the stamp."""
    _, _, size, written_ns, changed_ns = stamp
    if os.name == "posix":
        return changed_ns < now_ns - _COARSEST_NS
    # There the last time is that of making it, and the other one can be set.
    return size > _ALWAYS_READ_BYTES and written_ns < now_ns - _COARSEST_NS


def _feed(hasher: hashlib._Hash, path: Path) -> None:
    with path.open("rb") as stream:
        status = os.fstat(stream.fileno())
        in_use = min(status.st_size, getattr(status, "st_blocks", status.st_size) * _BLOCK)
        if in_use > _LONG_BYTES and _long_reads:
            _long_reads[-1](f"reading {path.name} for its digest: {in_use / 1e9:.0f} GB")
        if status.st_size > _SPARSE_BYTES and 2 * in_use < status.st_size:
            _feed_parts(hasher, stream.fileno(), status.st_size)
            return
        while chunk := stream.read(_CHUNK):
            hasher.update(chunk)


def _feed_parts(hasher: hashlib._Hash, descriptor: int, size: int) -> None:
    """Hash what is not zero of a file that mostly has no blocks on the disk, with where it is.

    Pieces of zeros count as none, so that it does not matter which of them the disk holds.
    """
    hasher.update(b"parts\0" + size.to_bytes(8, "little"))
    place = 0
    while place < size:
        try:
            place = os.lseek(descriptor, place, os.SEEK_DATA) // _CHUNK * _CHUNK
        except OSError:  # nothing but a hole is left
            return
        piece = os.pread(descriptor, _CHUNK, place)
        if piece.strip(b"\0"):
            hasher.update(place.to_bytes(8, "little") + piece)
        place += _CHUNK


@contextmanager
def long_reads_told(tell: Callable[[str], None]) -> Iterator[None]:
    """Tell of a file that takes long to read, before it is read, while the block lasts."""
    _long_reads.append(tell)
    try:
        yield
    finally:
        _long_reads.remove(tell)
