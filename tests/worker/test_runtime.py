"""Facts about the interpreter that measures."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from types import ModuleType

import onnxruntime
import pytest

from pytest_ortbench.worker import runtime


def test_this_interpreter() -> None:
    info = runtime.describe()
    assert info.version == onnxruntime.__version__
    assert info.pid == os.getpid()
    assert info.executable == sys.executable
    assert "CPUExecutionProvider" in info.available_providers
    assert info.devices == {} or "CUDAExecutionProvider" in info.available_providers


def test_distributions_are_found_by_their_metadata(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = [
        "onnxruntime-1.30.0.dist-info",
        "onnxruntime_openvino-1.24.1.dist-info",
        "onnxruntime_gpu-1.20.0+cu12.dist-info",
        "onnxruntime_ep_nv_tensorrt_rtx_cu12-0.5.0.dist-info",
        "ort_nightly-1.17.0.dev20231205004.dist-info",
        "onnxruntime_directml-1.11.0-py3.10.egg-info",
        "onnxruntime_extensions-0.15.2.dist-info",
        "onnxruntime_genai-0.18.0.dist-info",
        "onnxruntime",
        "numpy-2.0.0.dist-info",
    ]
    for name in names:
        (tmp_path / "first" / name).mkdir(parents=True)
    (tmp_path / "second" / "onnxruntime-1.0.0.dist-info").mkdir(parents=True)
    folders = ["", tmp_path / "missing", tmp_path / "first", tmp_path / "second"]
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [str(folder) for folder in folders])
    runtime.distributions.cache_clear()
    found = runtime.distributions()
    runtime.distributions.cache_clear()
    assert found == {
        "onnxruntime": "1.30.0",
        "onnxruntime-directml": "1.11.0",
        "onnxruntime-ep-nv-tensorrt-rtx-cu12": "0.5.0",
        "onnxruntime-genai": "0.18.0",
        "onnxruntime-gpu": "1.20.0+cu12",
        "onnxruntime-openvino": "1.24.1",
        "ort-nightly": "1.17.0.dev20231205004",
    }


@pytest.mark.live
def test_a_package_that_lost_its_files(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "onnxruntime", ModuleType("onnxruntime"))
    runtime.load.cache_clear()
    with pytest.raises(runtime.BrokenRuntime, match="InferenceSession"):
        runtime.load()
    runtime.load.cache_clear()
