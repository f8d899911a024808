"""Starts of a real session in fresh processes, its external data out of and in the page cache."""

from __future__ import annotations

import sys
import time
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from pytest_ortbench.launch.launcher import ProcessLauncher
from pytest_ortbench.passes.startup.facts import FurtherShape
from pytest_ortbench.passes.startup.questions import StartUp
from pytest_ortbench.worker.page_cache import LEFT, resident, set_state

from .cases import case_of, x_input

pytestmark = pytest.mark.live

SIZE = 512


@pytest.fixture
def model(tmp_path: Path) -> Path:
    """A matrix product whose megabyte of weights lies in a file of its own."""
    weight = numpy_helper.from_array(np.ones((SIZE, SIZE), np.float32), "w")
    graph = helper.make_graph(
        [helper.make_node("MatMul", ["x", "w"], ["y"])],
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["N", SIZE])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["N", SIZE])],
        [weight],
    )
    path = tmp_path / "m.onnx"
    onnx.save(
        helper.make_model(graph, ir_version=8, opset_imports=[helper.make_opsetid("", 13)]),
        path,
        save_as_external_data=True,
        location="weights.bin",
    )
    return path


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="mincore of Linux")
def test_cold_files_are_proven_to_be_cold(model: Path) -> None:
    files = [model, model.with_name("weights.bin")]
    _, unable = set_state(files, "cold")
    if unable:
        pytest.skip(f"the folder of temporary files can't be emptied: {unable}")
    set_state(files, "warm")
    case = case_of(model, inputs=(x_input((1, SIZE)),))
    shapes = (
        FurtherShape(label="b4", inputs=(x_input((4, SIZE)),)),
        FurtherShape(label="wrong", inputs=(x_input((4, SIZE + 1)),)),
    )
    question = StartUp(case=case, page_cache="cold", external_files=("weights.bin",), shapes=shapes)
    with closing(ProcessLauncher()) as launcher:
        cold = launcher.ask(question, deadline=time.monotonic() + 600)
        # The session has read them, so they are back.
        assert resident(files) == 1.0
        warm = launcher.ask(replace(question, page_cache="warm"), deadline=time.monotonic() + 600)
    assert cold.resident is not None
    assert cold.resident <= LEFT
    assert (warm.resident, warm.reason, cold.reason) == (1.0, "", "")
    for trial in (cold, warm):
        assert trial.engines == "none"
        assert min(trial.import_ns, trial.session_create_ns) > 0
        assert min(trial.first_inference_ns, trial.again_ns) > 0
        right, wrong = trial.shapes
        assert (right.label, right.reason) == ("b4", "")
        assert min(right.first_ns, right.again_ns) > 0
        assert wrong.label == "wrong"
        assert "Got: 513 Expected: 512" in wrong.reason
