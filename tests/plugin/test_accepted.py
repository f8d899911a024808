"""A regression is accepted once, in the project's file, up to what was seen."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from pytest_ortbench.cli.application import run as ortbench
from pytest_ortbench.core.acceptance import FILE_NAME

from .conftest import QUICK as KEPT
from .conftest import told

QUICK = (*KEPT, "--ort-no-results", "--ort-json=run.json", "--ort-models=net.onnx")
STORED = "--ort-baseline=before.json"


def grow(path: Path, count: int) -> None:
    import onnx

    model = onnx.load(path)
    model.doc_string = "x" * count
    onnx.save(model, path)


@pytest.mark.usefixtures("drawn_numbers", "shared_machine")
def test_a_larger_model_fails_then_passes_accepted_and_fails_again_when_it_grows_further(
    pytester: pytest.Pytester, model_file: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(pytester.path)
    summary = pytester.path / "summary.md"
    path = model_file("net.onnx")
    pytester.makeini("[pytest]\n")
    pytester.makepyfile("def test_latency(ortbench): ortbench.result")
    pytester.runpytest(*QUICK).assert_outcomes(passed=1)
    (pytester.path / "run.json").rename(pytester.path / "before.json")
    grow(path, 100)
    result = pytester.runpytest(*QUICK, STORED)
    result.assert_outcomes(failed=1)
    command = "ortbench accept net/native/cpu/b1 --metric=model_size --reason=TEXT"
    result.stdout.fnmatch_lines([f"*: {command}"])

    # What it says is what works.
    arguments = command.replace("TEXT", "more classes").split(" ", 4)[1:4]
    reason = "--reason=more classes"
    assert ortbench([*arguments, reason, "--run=run.json"]) == 0
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(summary))
    result = pytester.runpytest(*QUICK, STORED, "--junitxml=j.xml", "--ort-gate-strict")
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(["gate: 1 accepted"])
    for text in (result.stdout.str(), summary.read_text(), (pytester.path / "j.xml").read_text()):
        assert "more classes" in text
    (entry,) = json.loads((pytester.path / "run.json").read_text())["gate"]
    assert entry["failures"] == []
    # The verdict is what was judged.
    assert [
        metric["verdict"] for metric in entry["metrics"] if metric["metric"] == "model_size"
    ] == ["worse"]
    assert [finding["acceptance"]["state"] for finding in entry["findings"]] == ["accepted"]

    monkeypatch.delenv("GITHUB_STEP_SUMMARY")
    grow(path, 300)
    with (pytester.path / FILE_NAME).open("a") as file:
        file.write('\n[[accepted]]\ncase = "other"\nreason = "by and by"\n')
    result = pytester.runpytest(*QUICK, STORED)
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["* % worse (more classes), * % worse"])
    assert any(": other" in text for text in told(result, "gate"))
    (entry,) = json.loads((pytester.path / "run.json").read_text())["gate"]
    assert [finding["acceptance"]["state"] for finding in entry["findings"]] == ["exceeded"]
    (entry,) = json.loads((pytester.path / "run.json").read_text())["gate"]
    assert [finding["acceptance"]["state"] for finding in entry["findings"]] == ["exceeded"]
