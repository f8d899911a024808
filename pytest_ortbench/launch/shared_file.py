"""A file that every user of the machine may open and lock, whoever made it."""

from __future__ import annotations

import contextlib
import os
import stat
from pathlib import Path


def open_shared(path: Path) -> int | None:
    """Open a file that every user may open, made if it is not there; ``None`` if that can't be."""
    flags = os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    # Without O_CREAT first: Linux refuses it for files of others in folders like /tmp.
    for mode in (os.O_RDWR, os.O_RDWR | os.O_CREAT | os.O_EXCL, os.O_RDWR, os.O_RDONLY):
        try:
            descriptor = os.open(path, flags | mode, 0o666)
        except OSError:
            continue
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            os.close(descriptor)
            return None
        if mode & os.O_CREAT:
            with contextlib.suppress(OSError):
                os.fchmod(descriptor, 0o666)  # whatever the umask
        return descriptor
    return None


def is_locked(path: Path) -> bool | None:
    """Say whether a process has a file locked at this moment; ``None`` if it can't be opened."""
    descriptor = open_shared(path)
    if descriptor is None:
        return None
    try:
        return not lock_at_once(descriptor, shared=False)
    finally:
        os.close(descriptor)


def lock_at_once(descriptor: int, *, shared: bool) -> bool:
    """Lock a file without waiting, and say whether that worked; closing it unlocks it."""
    import fcntl

    try:
        fcntl.flock(descriptor, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
    except OSError:
        return False
    return True
