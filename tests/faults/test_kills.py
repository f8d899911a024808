"""Runs that are killed at random moments lose nothing that was stored, and double nothing."""

from __future__ import annotations

import json
import random
import signal
import sys
import time
from pathlib import Path

import pytest

from .runs import started, stored_results, write_model

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="needs SIGKILL")

_QUICK = ("--ort-time=0.05", "--ort-workers=1", "-p", "no:cacheprovider", "-p", "no:benchmark")


def _batches(folder: Path) -> set[int]:
    return {case["case"]["batch"] for case in stored_results(folder)}


@pytest.mark.parametrize(
    "kills",
    [pytest.param(3, marks=pytest.mark.live), pytest.param(20, marks=pytest.mark.heavy)],
)
def test_nothing_is_lost_and_nothing_is_doubled(tmp_path: Path, kills: int) -> None:
    write_model(tmp_path / "m.onnx")
    wanted = list(range(1, 3 * kills + 1))
    sizes = f"--ort-batch-sizes={','.join(map(str, wanted))}"
    arguments = ["m.onnx", "-k", "latency", sizes, "--ort-resume", *_QUICK]
    moments = random.Random(kills)
    for _ in range(kills):
        before = _batches(tmp_path)
        with started(tmp_path, arguments) as run:
            while _batches(tmp_path) == before and run.process.poll() is None:
                time.sleep(0.02)
            time.sleep(moments.random() / 5)
            run.signal(signal.SIGKILL)
            run.end()
        assert before <= _batches(tmp_path)
    known = _batches(tmp_path)
    with started(tmp_path, arguments) as run:
        run.end()
        assert run.left() == []
    last = max(tmp_path.glob("results/*/run.json"), key=lambda path: path.stat().st_mtime)
    document = json.loads(last.read_text())
    assert sorted(case["case"]["batch"] for case in document["cases"]) == wanted
    assert document["resumed"] == len(known)
