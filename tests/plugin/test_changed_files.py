"""A file that is replaced between collection and its turn is not measured under its old digest."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from pytest_ortbench.core.outcome import CHANGED_FILE
from pytest_ortbench.store.documents import load

from .conftest import QUICK

#: Puts the other file in the place of the model once everything is collected.
_REPLACES = """
    import os

    def pytest_collection_finish(session):
        before = os.stat("mlp.onnx")
        os.replace("other.onnx", "mlp.onnx")
        os.utime("mlp.onnx", ns=(before.st_atime_ns, before.st_mtime_ns))
"""


def test_a_model_that_was_replaced_after_collection_fails_with_both_digests(
    pytester: pytest.Pytester, model_file: Callable[..., Path]
) -> None:
    path, other = model_file(), model_file("other.onnx")
    content = path.read_bytes()
    assert content.count(b"Relu") == 1
    other.write_bytes(content.replace(b"Relu", b"Tanh"))
    pytester.makeconftest(_REPLACES)
    result = pytester.runpytest("mlp.onnx", "-k", "latency or memory", *QUICK)
    result.assert_outcomes(failed=1, skipped=1)
    result.stdout.fnmatch_lines(["*mlp.onnx has changed *"])
    (document,) = pytester.path.glob("results/*/run.json")
    (measured,) = load(document).cases
    assert measured.measurements == ()
    assert measured.accuracy is None
    assert measured.failure is not None
    assert (measured.status, measured.failure.phase) == ("error", CHANGED_FILE)
    assert measured.case.model.digest[:12] in measured.failure.message
