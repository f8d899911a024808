"""What the reference of a decoder wrote, as workers read it."""

from __future__ import annotations

from pathlib import Path

import pytest

from pytest_ortbench.core.case import Runtime
from pytest_ortbench.core.errors import WorkerError
from pytest_ortbench.passes.generation.worker.reference import read_continuation

BOX = Runtime(label="box", command=("enter", "python"))


@pytest.mark.parametrize(
    ("runtime", "content", "message", "hint"),
    [
        (Runtime(), None, "deleted", "TMPDIR"),
        (BOX, None, "runtime 'box'", "shares_files = false"),
        (BOX, b"nothing", "damaged", "Run again"),
        (Runtime(), b"PK\x03\x04 cut off", "damaged", "Run again"),
        (Runtime(), b"", "damaged", "TMPDIR"),
    ],
)
def test_a_file_that_is_missing_elsewhere_is_told_from_one_that_is_lost(
    runtime: Runtime, content: bytes | None, message: str, hint: str, tmp_path: Path
) -> None:
    path = tmp_path / "tokens.npz"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(WorkerError) as caught:
        read_continuation(path, runtime)
    assert str(path) in caught.value.failure.message
    assert message in caught.value.failure.message
    assert hint in caught.value.failure.hint
