"""A case under onnxruntime-genai, measured by a real worker."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from pytest_ortbench.core.case import Sampling
from pytest_ortbench.execution.standard import measure
from pytest_ortbench.launch.launcher import ProcessLauncher
from tests.worker.genai_folders import genai_case, genai_folder


def test_a_worker_measures_requests_under_genai(launcher: ProcessLauncher, tmp_path: Path) -> None:
    pytest.importorskip("onnxruntime_genai", reason="pip install onnxruntime-genai")
    sampling = Sampling(time_s=0.2, workers=1)
    case = replace(genai_case(genai_folder(tmp_path)), sampling=sampling)
    result = measure(case, launcher, tmp_path)
    assert (result.status, result.failure) == ("measured", None)
    (worker,) = result.measurements
    assert {(r.prompt_tokens, r.new_tokens) for r in worker.samples.requests} == {(6, 5)}
    assert worker.runtime.distributions["onnxruntime-genai"]
    assert worker.options_in_force["max_length"] == "11"
    assert worker.startup.session_create_ns > 0
    assert result.placement is not None
    assert result.placement.reason == ""
    assert result.accuracy is not None
    assert all(output.exact for output in result.accuracy.outputs)
