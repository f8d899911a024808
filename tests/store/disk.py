"""Real limits of a disk, for the tests of what happens when a write fails."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest


@contextmanager
def files_end_at(size: int) -> Iterator[None]:
    """No file of this process can grow beyond ``size`` bytes: writes are cut there, then fail."""
    resource = pytest.importorskip("resource", reason="limits of POSIX")
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
