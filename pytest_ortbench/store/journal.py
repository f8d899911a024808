"""Bytes that reach the disk: lines of a journal one by one, a document all at once."""

from __future__ import annotations

import errno
import os
import secrets
from contextlib import suppress
from pathlib import Path

#: Files of ours are as readable as the user's umask lets them be.
_MODE = 0o666

#: Without it, Windows would write every newline as two characters.
_BINARY: int = getattr(os, "O_BINARY", 0)


class Journal:
    """A file of lines, each of which is on the disk when :meth:`write` returns.

    Whatever ends the process, whole lines stay whole: at most the line in flight is torn.

    Args:
        path: The file; it must not exist, and neither it nor its folder is made before the first
            line.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._pending: list[bytes] = []
        self._made = False

    @property
    def made(self) -> bool:
        """Whether the file exists."""
        return self._made

    @property
    def pending(self) -> bool:
        """Whether some lines could not be written so far."""
        return bool(self._pending)

    def write(self, *lines: bytes) -> None:
        """Append lines, after those that could not be written before.

        Args:
            lines: Each with its newline.

        Raises:
            OSError: if they can't be written; they are kept for the next attempt.
        """
        self._pending += lines
        self.flush()

    def flush(self) -> None:
        """Write the lines that could not be written before.

        Raises:
            OSError: if they can't be written now either.
        """
        if not self._pending:
            return
        make_folder(self.path.parent)
        exclusive = 0 if self._made else os.O_EXCL
        descriptor = os.open(
            self.path, os.O_RDWR | os.O_CREAT | os.O_APPEND | exclusive | _BINARY, _MODE
        )
        try:
            if not self._made:
                self._made = True
                sync_folder(self.path.parent)
            self._append(descriptor, b"".join(self._pending))
        finally:
            os.close(descriptor)
        self._pending.clear()

    def remove(self) -> None:
        """Remove the file, if that is possible; a left-over journal does no harm."""
        with suppress(OSError):
            self.path.unlink(missing_ok=True)

    @staticmethod
    def _append(descriptor: int, data: bytes) -> None:
        size = os.lseek(descriptor, 0, os.SEEK_END)
        if size and not _ends_with_newline(descriptor, size):
            # An earlier attempt tore a line and could not take it back.
            data = b"\n" + data
        try:
            _write_all(descriptor, data)
            _sync(descriptor)
        except BaseException:  # also an interrupt must not leave half a line
            with suppress(OSError):
                os.ftruncate(descriptor, size)
            raise


def replace_file(path: Path, data: bytes) -> None:
    """Write ``data`` to ``path`` so that a reader sees the old content or the new, never a part.

    Links are followed. What is no regular file (``/dev/stdout``, a pipe) is written to directly.

    Raises:
        OSError: if it can't be written; ``path`` is untouched then.
    """
    if path.exists() and not path.is_file():
        with path.open("wb") as stream:
            stream.write(data)
        return
    target = path.resolve()
    make_folder(target.parent)
    temporary = target.with_name(f".{target.name[:40]}.{secrets.token_hex(4)}.tmp")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | _BINARY, _MODE)
    try:
        try:
            _write_all(descriptor, data)
            _sync(descriptor)
        finally:
            os.close(descriptor)
        temporary.replace(target)
    except BaseException:  # whatever happened, no temporary file may stay
        with suppress(OSError):
            temporary.unlink()
        raise
    sync_folder(target.parent)


def make_folder(folder: Path) -> None:
    """Make a folder and those above it.

    Raises:
        OSError: if that fails; a file in its place is called that, not "exists already".
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except FileExistsError as error:
        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), str(folder)) from error


def sync_folder(folder: Path) -> None:
    """Make the names in a folder durable, where the platform can do that."""
    if not hasattr(os, "O_DIRECTORY"):
        return
    # Some network file systems refuse it; the file's own content is safe without.
    with suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def _ends_with_newline(descriptor: int, size: int) -> bool:
    os.lseek(descriptor, size - 1, os.SEEK_SET)
    return os.read(descriptor, 1) == b"\n"


def _write_all(descriptor: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]


def _sync(descriptor: int) -> None:
    try:
        os.fsync(descriptor)
    except OSError as error:
        # A file system without fsync took the data all the same.
        if error.errno not in (errno.EINVAL, errno.ENOTSUP):
            raise
