"""Paths that begin with the home folder of a user: ``~/models``, ``~somebody/models``."""

from __future__ import annotations

import os
from pathlib import Path


def in_home(path: str | Path) -> Path:
    """Return a path with the home folder that it begins with, if it does.

    That of a user who is not known stays as it is written, and does not exist.
    """
    return Path(os.path.expanduser(path))  # noqa: PTH111  # Path raises for such a user
