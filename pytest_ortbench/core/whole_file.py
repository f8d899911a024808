"""Files that are written whole or not at all; errors name the file that they are about."""

from __future__ import annotations

import errno
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

#: Files of ours are as readable as the user's umask lets them be.
MODE = 0o666

#: Without it, Windows would write every newline as two characters.
BINARY: int = getattr(os, "O_BINARY", 0)


@contextmanager
def _naming(path: Path) -> Iterator[None]:
    """Let errors of the file system name a file, and no temporary one.

    Raises:
        OSError: the same error with the file.
    """
    try:
        yield
    except OSError as error:
        if error.errno is None:
            raise
        raise OSError(error.errno, error.strerror, str(path)) from error
    except RuntimeError as error:  # links in a circle, before Python 3.13
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), str(path)) from error


def append_whole(path: Path, data: bytes) -> None:
    """Append all of ``data`` to a file that others append to, too, or nothing of it.

    Raises:
        OSError: with ``path``, if that fails.
    """
    with _naming(path):
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | BINARY, MODE)
        try:
            size = os.fstat(descriptor).st_size
            try:
                write_all(descriptor, data)
            except BaseException:  # also an interrupt must not leave a half
                with suppress(OSError):
                    os.ftruncate(descriptor, size)
                raise
        finally:
            os.close(descriptor)


def replace_file(path: Path, data: bytes) -> None:
    """Write ``data`` to ``path`` so that a reader sees the old content or the new, never a part.

    Links are followed. What is no regular file (``/dev/stdout``, a pipe) is written to directly.

    Raises:
        OSError: with ``path``, if it can't be written; it is untouched then.
    """
    with _naming(path):
        _replace(path, data)


def _replace(path: Path, data: bytes) -> None:
    if path.exists() and not path.is_file():
        with path.open("wb") as stream:
            stream.write(data)
        return
    target = path.resolve()
    make_folder(target.parent)
    temporary = target.with_name(f".{target.name[:40]}.{secrets.token_hex(4)}.tmp")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | BINARY, MODE)
    try:
        try:
            write_all(descriptor, data)
            sync(descriptor)
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


def write_all(descriptor: int, data: bytes) -> None:
    """Write all of ``data``, however much a call takes."""
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]


def sync(descriptor: int) -> None:
    """Have what was written reach the disk, where the file system can do that."""
    try:
        os.fsync(descriptor)
    except OSError as error:
        # A file system without fsync took the data all the same.
        if error.errno not in (errno.EINVAL, errno.ENOTSUP):
            raise
