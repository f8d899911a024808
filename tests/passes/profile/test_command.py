"""``ortbench profile``, on real sessions."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from pytest_ortbench.cli.application import run
from pytest_ortbench.store.folder import write_document
from tests.launch.cases import case_of, relu
from tests.results_factory import make_result, make_run

pytestmark = pytest.mark.live


def test_a_model_file_with_its_trace(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    model, trace = relu(tmp_path / "m.onnx"), tmp_path / "kept" / "trace.json"
    trace.parent.mkdir()
    assert run(["profile", str(model), "--batch-sizes=2", f"--trace={trace}"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("m/native/cpu/b2: ")
    assert "1 node;" in out
    assert "  Relu " in out
    assert "(between nodes)" in out
    [peak] = [line for line in out.splitlines() if line.startswith("  peak ")]
    assert "cpu" in peak.split()
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
    moved = Path(case.variant.path).rename(tmp_path / "moved.onnx")
    assert run(["profile", case.case_id, f"--run={document}"]) == 2
    error = capsys.readouterr().err
    assert repr(case.model.path) in error
    assert "--model=FILE" in error
    assert run(["profile", case.case_id, f"--run={document}", f"--model={moved}"]) == 0
    captured = capsys.readouterr()
    assert captured.out.startswith("moved/native/cpu/b1: ")
    assert "another file" not in captured.err


def test_what_can_not_run_is_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    model = relu(tmp_path / "m.onnx")
    assert run(["profile", str(model), "--providers=cuda"]) == 3
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.split(": ")[:2] == ["m/native/cuda/b1", "unavailable"]


def test_a_trace_goes_into_a_folder_that_exists(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    model, trace = relu(tmp_path / "m.onnx"), tmp_path / "no" / "such" / "trace.json"
    assert run(["profile", str(model), f"--trace={trace}"]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith(f"ortbench: --trace={trace}: ")
    assert repr(str(trace.parent)) in captured.err
    assert not (tmp_path / "no").exists()


@pytest.mark.parametrize("top", ["0", "-1"])
def test_a_list_has_a_row_at_least(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], top: str
) -> None:
    assert run(["profile", str(relu(tmp_path / "m.onnx")), f"--top={top}"]) == 2
    error = capsys.readouterr().err
    assert ("'--top'" in error, f" {top} " in error) == (True, True)


def test_a_case_that_the_run_lacks_is_no_model(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    case = case_of(relu(tmp_path / "m.onnx"))
    document = tmp_path / "run.json"
    write_document(make_run([make_result(case=case)]), document)
    other = f"{case.case_id}0"
    assert run(["profile", other, f"--run={document}"]) == 2
    error = capsys.readouterr().err
    for part in (str(document), repr(other), repr(case.case_id), "--run"):
        assert part in error
    assert run(["profile", other, f"--run={tmp_path / 'none.json'}"]) == 2
    assert "none.json" in capsys.readouterr().err
