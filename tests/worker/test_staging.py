"""The worker's own folder for files that the host sends; the rest is in tests/launch."""

from __future__ import annotations

import base64
import hashlib
import os
import sys
import tempfile
from pathlib import Path

import pytest

from pytest_ortbench.schema.file_questions import StoreChunk
from pytest_ortbench.worker.staging import Staging

TEXT = b"weights"
CHUNK = StoreChunk(
    name="model/m.onnx",
    data=base64.b64encode(TEXT).decode(),
    size_bytes=len(TEXT),
    digest=hashlib.sha256(TEXT).hexdigest(),
)


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_a_system_without_locks_that_renames_no_folder_in_use_takes_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Windows, that is."""
    rename = Path.rename

    def rename_unless_used(folder: Path, target: Path) -> Path:
        for descriptor in Path("/proc/self/fd").iterdir():
            if os.path.realpath(descriptor).startswith(f"{folder}{os.sep}"):
                raise PermissionError(13, "The process cannot access the file", str(folder))
        return rename(folder, target)

    monkeypatch.setattr(Path, "rename", rename_unless_used)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setitem(sys.modules, "fcntl", None)
    staging = Staging()
    assert Path(staging.store(CHUNK).path).read_bytes() == TEXT
    # Another worker takes nothing away from it.
    other = Staging()
    other.store(CHUNK)
    assert len(list(tmp_path.glob("ortbench-files-*/model/m.onnx"))) == 2
    staging.remove()
    other.remove()
    assert list(tmp_path.iterdir()) == []
