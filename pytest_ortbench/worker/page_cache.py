"""The kernel's cache of a model's files: emptied, filled, and looked at.

``posix_fadvise`` only asks: pages stay that are dirty, mapped by another process, or of a file
system that lives in memory. So ``mincore`` says afterwards what is really there.
"""

from __future__ import annotations

import ctypes
import mmap
import os
import sys
from collections.abc import Iterable
from pathlib import Path

#: Share of the pages that may be left after emptying: a reader of a neighbouring file.
LEFT = 0.01

_CHUNK = 1 << 22


def set_state(paths: Iterable[Path], state: str) -> tuple[float | None, str]:
    """Bring files into the asked state.

    Args:
        paths: The files.
        state: ``cold`` (out of memory) or ``warm`` (read once).

    Returns:
        The share of their pages that is in memory now (``None`` if it can't be told), and why the
        state was not reached; empty if it was.
    """
    files = list(paths)
    if state == "warm":
        for path in files:
            _read(path)
        return resident(files), ""
    if not hasattr(os, "posix_fadvise"):
        return None, f"{sys.platform} has no way to drop a file from its cache"
    for path in files:
        _drop(path)
    share = resident(files)
    if share is None:
        return None, f"{sys.platform} does not say whether a file is cached"
    if share > LEFT:
        return share, (
            f"{100 * share:.0f} % of the model's pages stayed in memory: another process maps "
            "them, or the file system keeps them there"
        )
    return share, ""


def resident(paths: Iterable[Path]) -> float | None:
    """Return the share of the files' pages that is in memory; ``None`` if it can't be told."""
    if not sys.platform.startswith("linux"):
        return None
    mincore = getattr(ctypes.CDLL(None, use_errno=True), "mincore", None)
    if mincore is None:
        return None
    mincore.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_char_p)
    pages = held = 0
    for path in paths:
        size = path.stat().st_size
        if size == 0:
            continue
        count = -(-size // mmap.PAGESIZE)
        states = ctypes.create_string_buffer(count)
        # A private copy, since ctypes takes the address of memory that can be written only;
        # nothing is written, so the pages stay those of the cache.
        with path.open("rb") as file, mmap.mmap(file.fileno(), size, access=mmap.ACCESS_COPY) as m:
            first = ctypes.c_char.from_buffer(m)
            failed = mincore(ctypes.addressof(first), size, states)
            del first  # the mapping can't be closed before
        if failed:
            return None
        pages += count
        held += sum(state & 1 for state in states.raw)
    return held / pages if pages else None


def _read(path: Path) -> None:
    with path.open("rb", buffering=0) as file:
        while file.read(_CHUNK):
            pass


def _drop(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        # What is not on disk yet can't be dropped.
        os.fsync(descriptor)
        os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
    finally:
        os.close(descriptor)
