"""``ortbench profile``, on real sessions."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from pytest_ortbench.cli.application import run
from pytest_ortbench.store.folder import write_document
from tests.launch.cases import case_of, relu
from tests.results_factory import make_result, make_run


def test_a_model_file_with_its_trace(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    model, trace = relu(tmp_path / "m.onnx"), tmp_path / "kept" / "trace.json"
    assert run(["profile", str(model), "--batch-sizes=2", f"--trace={trace}"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("m/native/cpu/b2: ")
    assert "1 node;" in out
    assert "  Relu " in out
    assert "(between nodes)" in out
    assert "  peak on cpu with " in out
    assert "GB/s" in out
    assert f"trace: {trace}" in out
    assert any(event["name"] == "model_run" for event in json.loads(trace.read_text()))


def test_a_case_of_a_stored_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    case = case_of(relu(tmp_path / "m.onnx"))
    document = tmp_path / "run.json"
    write_document(make_run([make_result(case=case)]), document)
    assert run(["profile", case.case_id, f"--run={document}"]) == 0
    assert capsys.readouterr().out.startswith(f"{case.case_id}: ")
    Path(case.variant.path).unlink()
    assert run(["profile", case.case_id, f"--run={document}"]) == 2
    assert "is gone" in capsys.readouterr().err


def test_what_can_not_run_is_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    model = relu(tmp_path / "m.onnx")
    assert run(["profile", str(model), "--providers=cuda"]) == 3
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "m/native/cuda/b1: unavailable: " in captured.err
