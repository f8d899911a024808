"""Temporary folders as a process that was killed would have left them."""

from __future__ import annotations

import json
from pathlib import Path

from pytest_ortbench.core.own_folder import OWNER

#: No process has such an id.
NOBODY = 2**22 + 1


def left_folder(path: Path, **changed: object) -> Path:
    """Make the folder of a dead process, with a file in it.

    Args:
        path: The folder.
        changed: What its record says otherwise.
    """
    path.mkdir()
    record = {"pid": NOBODY, "start": "1", "space": "", **changed}
    (path / OWNER).write_text(json.dumps(record), encoding="utf-8")
    (path / "engine.bin").write_bytes(b"much")
    return path
