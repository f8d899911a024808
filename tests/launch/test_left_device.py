"""A provider that leaves the asked device by itself, told by the native log: it gives no number."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from pytest_ortbench.core.case import Provider, Runtime
from pytest_ortbench.core.errors import WorkerError
from pytest_ortbench.execution.standard import measure
from pytest_ortbench.launch.launcher import ProcessLauncher
from pytest_ortbench.launch.process import WorkerProcess
from pytest_ortbench.passes.startup.questions import StartUp
from tests.launch.cases import case_of, relu

#: The CPU stands for the NPU: its session is real, and the warning is put into its log.
NPU = Provider(alias="cpu", name="CPUExecutionProvider", device="NPU")
_WARNING = (
    "[W:onnxruntime:Default, basic_backend.cc:1 BasicBackend] Model compilation failed at OV NPU."
    "Falling back to OV CPU for execution\n"
)
_MESSAGE = "OpenVINO could not compile the model for NPU and runs the model on the CPU instead"


@pytest.fixture
def launcher(launcher: ProcessLauncher, monkeypatch: pytest.MonkeyPatch) -> ProcessLauncher:
    read = WorkerProcess.read_log
    monkeypatch.setattr(WorkerProcess, "read_log", lambda process: read(process) + _WARNING)
    return launcher


def test_a_case_ends_as_fallback_without_samples(launcher: ProcessLauncher, tmp_path: Path) -> None:
    result = measure(case_of(relu(tmp_path / "m.onnx"), provider=NPU), launcher, tmp_path)
    assert (result.status, result.measurements) == ("fallback", ())
    assert result.failure is not None
    assert result.failure.message == _MESSAGE
    assert "Falling back to OV CPU" in result.failure.log_tail


def test_a_trial_of_starting_up_is_no_number(launcher: ProcessLauncher, tmp_path: Path) -> None:
    question = StartUp(case=case_of(relu(tmp_path / "m.onnx"), provider=NPU))
    with pytest.raises(WorkerError, match=" NPU "):
        launcher.ask(question, deadline=time.monotonic() + 600)


def test_a_probe_finds_it_unusable(launcher: ProcessLauncher) -> None:
    (outcome,) = launcher.probe(Runtime(), [NPU])
    assert (outcome.usable, outcome.reason) == (False, _MESSAGE)
    assert outcome.failure is not None
    assert outcome.failure.kind == "fallback"
