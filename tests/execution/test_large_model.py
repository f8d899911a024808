"""A model beyond the limit of one protobuf file, end to end: 2.3 GB of disk, minutes of time.

Run it with ``-m heavy``. *Seen* on two cores, at the peak of all processes together:
9.4 GiB for fp32 and int8-dynamic, 9.8 GiB for fp16; 0.07 GiB of them in the pytest process.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import psutil
import pytest
from onnx import TensorProto, helper

pytestmark = pytest.mark.heavy

_ROWS = 24_000
_GIB = 2**30


@pytest.fixture
def model(tmp_path: Path) -> Path:
    """One weight of 2.3 GB in a file beside the model."""
    draw = np.random.default_rng(0)
    with (tmp_path / "m.bin").open("wb") as file:
        for _ in range(24):
            part = draw.standard_normal((_ROWS // 24, _ROWS), dtype=np.float32)
            file.write((part * np.float32(_ROWS**-0.5)).tobytes())
    tensor = TensorProto(
        name="w",
        dims=[_ROWS, _ROWS],
        data_type=TensorProto.FLOAT,
        data_location=TensorProto.EXTERNAL,
    )
    tensor.external_data.add(key="location", value="m.bin")
    graph = helper.make_graph(
        [helper.make_node("MatMul", ["x", "w"], ["y"], name="mm")],
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["N", _ROWS])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["N", _ROWS])],
        [tensor],
    )
    opsets = [helper.make_opsetid("", 17)]
    onnx.save(
        helper.make_model(graph, opset_imports=opsets, ir_version=8), str(tmp_path / "m.onnx")
    )
    return tmp_path / "m.onnx"


def measured(tmp_path: Path, model: Path, precisions: str) -> list[Any]:
    """Measure the model, and check the memory of all processes against what they may take."""
    command = [sys.executable, "-m", "pytest", model.name, "-k", "test_latency", "-q"]
    command += [f"--ort-precisions={precisions}", "--ort-time=1", "--ort-workers=1"]
    command += ["--ort-timeout=1500", "--ort-no-results", "--ort-json=run.json"]
    environment = {**os.environ, "ORTBENCH_CACHE": str(tmp_path / "cache")}
    pytest_peak = total_peak = 0
    with subprocess.Popen(command, cwd=tmp_path, env=environment) as running:
        watched = psutil.Process(running.pid)
        while running.poll() is None:
            try:
                own = watched.memory_info().rss
                others = [each.memory_info().rss for each in watched.children(recursive=True)]
            except psutil.Error:  # one ended meanwhile
                continue
            pytest_peak = max(pytest_peak, own)
            total_peak = max(total_peak, own + sum(others))
            time.sleep(0.05)  # to look at memory, not to wait for anything
    assert running.returncode == 0
    assert total_peak < 12 * _GIB
    assert pytest_peak < 400e6
    cases: list[Any] = json.loads((tmp_path / "run.json").read_text())["cases"]
    return cases


def test_a_model_of_2_3_gb_in_fp32_and_int8_dynamic_within_12_gib(
    model: Path, tmp_path: Path
) -> None:
    cases = measured(tmp_path, model, "fp32,int8-dynamic")
    fp32, dynamic = (case["case"]["variant"] for case in cases)
    assert fp32["path"] == str(model)
    assert dynamic["external_files"] == ["model.onnx.data"]
    assert dynamic["size_bytes"] == pytest.approx(_ROWS**2, rel=0.01)
    assert cases[1]["accuracy"]["outputs"][0]["sqnr_db"] > 15


def test_in_half_precision_it_is_half_as_large_within_12_gib(model: Path, tmp_path: Path) -> None:
    (case,) = measured(tmp_path, model, "fp16")
    assert case["status"] == "measured"
    assert case["case"]["variant"]["size_bytes"] == pytest.approx(2 * _ROWS**2, rel=0.01)
    assert case["accuracy"]["outputs"][0]["sqnr_db"] > 40
