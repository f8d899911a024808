"""What the console tool says of a model in ONNX Runtime's own format."""

from __future__ import annotations

from pathlib import Path

import onnxruntime
import pytest
from click.testing import CliRunner

from pytest_ortbench.cli.application import application
from pytest_ortbench.cli.terminal import ExitCode
from tests.worker.graphs import wordy

pytestmark = pytest.mark.live


@pytest.fixture
def model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    options.optimized_model_filepath = str(tmp_path / "m.ort")
    options.add_session_config_entry("session.save_model_format", "ORT")
    onnxruntime.InferenceSession(wordy(), options, providers=["CPUExecutionProvider"])
    return tmp_path / "m.ort"


def call(*arguments: str) -> tuple[int, str, str]:
    result = CliRunner().invoke(application, list(arguments), standalone_mode=False)
    if result.exception is not None:
        raise result.exception
    return result.return_value, result.stdout, result.stderr


def test_inspect_asks_a_session_and_counts_nothing(model: Path) -> None:
    code, text, _ = call("models", "inspect", "m.ort")
    assert code == ExitCode.FINE
    facts = {line.split()[0]: line for line in text.splitlines()[1:]}
    assert "x: tensor(float) [N, 16]" in facts["input"]
    assert "y: tensor(float) [N, 16]" in facts["output"]
    assert "x [1, 16]" in facts["fed"]
    assert "ONNX Runtime's" in facts["note"]
    assert not facts.keys() & {"nodes", "weights", "format", "arithmetic"}


def test_one_that_can_t_be_loaded_is_one_line(model: Path) -> None:
    model.write_bytes(model.read_bytes()[:64])
    code, text, said = call("models", "inspect", "m.ort")
    assert (code, text) == (ExitCode.WRONG_CALL, "")
    assert said.startswith("ortbench: ")
    assert "m.ort" in said
    assert said.count("\n") == 1


def test_its_nodes_can_t_be_compared(model: Path) -> None:
    code, text, said = call("accuracy", "m.ort", "--precision=native")
    assert (code, text) == (ExitCode.NOTHING, "")
    assert "ONNX Runtime's" in said
