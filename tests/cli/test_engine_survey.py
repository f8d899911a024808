"""Which engines are installed, told by metadata alone."""

from __future__ import annotations

import sys
from importlib.metadata import PackageNotFoundError
from pathlib import Path

import pytest

from pytest_ortbench.cli.engine_survey import engine_states
from tests.engines.made_engine import ALIAS, write_package


def test_states_come_from_metadata_and_import_no_engine(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def version(name: str) -> str:
        if name in ("openvino", "onnx"):
            return "7.0"
        raise PackageNotFoundError(name)

    monkeypatch.setattr("pytest_ortbench.cli.engine_survey.version", version)
    monkeypatch.syspath_prepend(str(write_package(tmp_path)))
    states = {state.alias: state for state in engine_states()}
    assert states["openvino-native"].state == "installed"
    assert "7.0" in states["openvino-native"].reason
    assert states["tract"].state == "absent"
    assert states["tract"].reason.endswith("install tract")
    assert states["ncnn"].reason.endswith("install ncnn onnx; pip install --no-deps pnnx")
    assert states[ALIAS].state == "installed"
    assert "evaluator_engine.running" not in sys.modules
    assert [state.state for state in engine_states()][-1] == "absent"


def test_a_declaration_that_breaks_hides_no_other(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    broken = tmp_path / "broken_engine-1.0.dist-info"
    broken.mkdir()
    (broken / "METADATA").write_text("Metadata-Version: 2.1\nName: broken-engine\nVersion: 1.0\n")
    entries = "gone = no_such_package:ENGINE\nother = json:JSONDecoder\n"
    (broken / "entry_points.txt").write_text(f"[pytest_ortbench.engines]\n{entries}")
    monkeypatch.syspath_prepend(str(tmp_path))
    states = {state.alias: state.state for state in engine_states()}
    assert (states["gone"], states["other"]) == ("fails", "fails")
    assert "openvino-native" in states
