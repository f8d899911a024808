"""Real limits of a disk, for the tests of what happens when a write fails."""

from __future__ import annotations

import resource
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def files_end_at(size: int) -> Iterator[None]:
    """No file of this process can grow beyond ``size`` bytes: writes are cut there, then fail."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
