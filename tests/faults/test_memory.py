"""A worker that wants more memory than it may take ends alone, as out of memory."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper, save

from pytest_ortbench.core.case import Case
from pytest_ortbench.core.errors import WorkerError
from pytest_ortbench.core.outcome import Failure
from pytest_ortbench.launch import memory_limit
from pytest_ortbench.launch.launcher import ProcessLauncher
from tests.launch.cases import case_of, relu, x_input

pytestmark = [
    pytest.mark.live,
    pytest.mark.skipif(not sys.platform.startswith("linux"), reason="needs /proc"),
]

#: Tensors of 0.5 GB that are alive at the same time.
_ELEMENTS, _TENSORS = 125_000_000, 9


def _hungry(path: Path) -> Path:
    """Write a model that takes 4.5 GB for an input of four bytes."""
    size = numpy_helper.from_array(np.array([_ELEMENTS], np.int64), "s")
    nodes = []
    for number in range(_TENSORS):
        nodes.append(helper.make_node("Expand", ["x", "s"], [f"e{number}"]))
        nodes.append(helper.make_node("Add", [f"e{number}", "x"], [f"a{number}"]))
    nodes.append(helper.make_node("Sum", [f"a{number}" for number in range(_TENSORS)], ["y"]))
    graph = helper.make_graph(
        nodes,
        "hungry",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [_ELEMENTS])],
        [size],
    )
    opset = [helper.make_opsetid("", 13)]
    save(helper.make_model(graph, ir_version=8, opset_imports=opset), path)
    return path


def _failure(launcher: ProcessLauncher, case: Case) -> Failure:
    with pytest.raises(WorkerError) as caught:
        launcher.open(case, worker=0, deadline=None)
    return caught.value.failure


@pytest.mark.parametrize("by_kernel", [True, False], ids=["cgroup", "watch"])
def test_a_hungry_model_ends_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, by_kernel: bool
) -> None:
    if not by_kernel:
        monkeypatch.setattr(memory_limit, "_parents", lambda: [])
    launcher = ProcessLauncher(log_folder=tmp_path / "logs", memory_bytes=900_000_000)
    try:
        failure = _failure(launcher, case_of(_hungry(tmp_path / "m.onnx"), inputs=(x_input((1,)),)))
    finally:
        launcher.close()
    assert (failure.kind, failure.phase) == ("out_of_memory", "first")
    assert "--ort-memory-limit" in failure.hint
    # Those of other processes are theirs: tests run beside each other.
    own = f"ortbench-{os.getpid()}-*"
    assert [place for _, folder in memory_limit._parents() for place in folder.glob(own)] == []


def test_the_kernel_would_end_a_worker_first(launcher: ProcessLauncher, tmp_path: Path) -> None:
    worker = launcher.open(case_of(relu(tmp_path / "m.onnx")), worker=0, deadline=None)
    first = int(Path(f"/proc/{worker.pid}/oom_score_adj").read_text())
    assert first > int(Path("/proc/self/oom_score_adj").read_text())
    worker.close()
