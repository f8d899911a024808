"""Memory of one model at several sizes: each case has a process of its own."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
from onnx import helper, numpy_helper

from pytest_ortbench.core.outcome import Memory
from pytest_ortbench.launch.launcher import ProcessLauncher
from pytest_ortbench.schema.case_questions import ReadMemory, TimeBlock

from .cases import case_of, save, x_input

pytestmark = pytest.mark.live

MEGABYTE = 1_000_000


def memory_at(launcher: ProcessLauncher, path: Path, side: int) -> Memory:
    case = case_of(path, inputs=(x_input((1, 3, side, side)),))
    with closing(launcher.open(case, worker=0, deadline=None)) as worker:
        worker.ask(TimeBlock(iterations=3))
        return worker.ask(ReadMemory())


@pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="Linux only")
def test_a_small_image_after_a_large_one_has_its_own_peak(tmp_path: Path) -> None:
    """T7: 64, 1024, 64: in one process memory would stay at the peak of the large image."""
    weight = numpy_helper.from_array(np.full((8, 3, 3, 3), 0.01, np.float32), "w")
    node = helper.make_node("Conv", ["x", "w"], ["y"], pads=[1, 1, 1, 1])
    path = save(tmp_path / "m.onnx", [node], shape=(1, 3, None, None), weights=[weight])
    with closing(ProcessLauncher()) as launcher:
        before, large, after = (memory_at(launcher, path, side) for side in (64, 1024, 64))
    for found in (before, large, after):
        assert found.after_session_bytes is not None
        assert found.after_runs_bytes is not None
        assert found.peak_bytes is not None
        assert found.after_session_bytes <= found.peak_bytes
        assert found.after_runs_bytes <= found.peak_bytes
    assert before.peak_bytes is not None
    assert large.peak_bytes is not None
    assert after.peak_bytes is not None
    # The output alone has 8 channels of 1024 x 1024 floats.
    assert large.peak_bytes > 8 * 1024 * 1024 * 4
    assert abs(after.peak_bytes - before.peak_bytes) <= 0.02 * before.peak_bytes + MEGABYTE
    assert after.peak_bytes < large.peak_bytes / 2
