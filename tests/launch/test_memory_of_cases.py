"""Memory of whole cases, each in a fresh process, on real sessions."""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from onnx import helper, numpy_helper

from pytest_ortbench.core.case import Case
from pytest_ortbench.core.outcome import Memory
from pytest_ortbench.launch.launcher import ProcessLauncher
from pytest_ortbench.schema.case_questions import ReadMemory, TimeBlock

from .cases import case_of, save, x_input

pytestmark = pytest.mark.live


def conv(path: Path) -> Path:
    """A convolution of one channel to 16, with dynamic height and width."""
    weight = numpy_helper.from_array(np.ones((16, 1, 3, 3), np.float32), "w")
    node = helper.make_node("Conv", ["x", "w"], ["y"], pads=[1, 1, 1, 1])
    return save(path, [node], shape=(1, 1, "H", "W"), weights=[weight])


def sized(case: Case, size: int) -> Case:
    return replace(case, inputs=(x_input((1, 1, size, size)),))


def measured(launcher: ProcessLauncher, case: Case) -> Memory:
    with closing(launcher.open(case, worker=0, deadline=None)) as worker:
        worker.ask(TimeBlock(iterations=3))
        return worker.ask(ReadMemory())


@pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="Linux only")
def test_a_large_case_leaves_nothing_in_the_peak_of_a_small_one(tmp_path: Path) -> None:
    """In one process, memory of 64, 1024 and 64 pixels stays at the peak of the largest."""
    case = case_of(conv(tmp_path / "m.onnx"))
    launcher = ProcessLauncher()
    with closing(launcher):
        small, large, again = (measured(launcher, sized(case, size)) for size in (64, 1024, 64))
    for memory in (small, large, again):
        assert memory.peak_bytes is not None
        assert memory.session_bytes is not None
        assert memory.after_runs_bytes is not None
        assert memory.session_bytes <= memory.peak_bytes
        assert memory.after_runs_bytes <= memory.peak_bytes
    # 16 channels of 1024 x 1024 floats, out of the arena and copied to numpy or not.
    output = 16 * 1024 * 1024 * 4
    assert large.peak_bytes is not None
    assert output <= large.peak_bytes < 4 * output
    for memory in (small, again):
        assert memory.peak_bytes is not None
        assert memory.peak_bytes < output / 4


@pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="Linux only")
def test_neither_the_hosts_own_size_nor_what_it_freed_shows(tmp_path: Path) -> None:
    case = sized(case_of(conv(tmp_path / "m.onnx")), 64)
    launcher = ProcessLauncher()
    with closing(launcher):
        before = measured(launcher, case)
        held, freed = np.ones(12_500_000), np.ones(12_500_000)
        del freed
        after = measured(launcher, case)
        del held
    assert before.peak_bytes is not None
    assert after.peak_bytes is not None
    assert abs(after.peak_bytes - before.peak_bytes) < 5_000_000
