"""Simplified and offline-optimised graphs from the command line to the lines in the terminal."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.worker.graphs import wordy

from .conftest import QUICK as FAST

QUICK = (*FAST, "--ort-no-results", "--ort-json=run.json")


@pytest.fixture
def cache(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = pytester.path / "cache"
    monkeypatch.setenv("ORTBENCH_CACHE", str(folder))
    (pytester.path / "net.onnx").write_bytes(wordy())
    return folder


def cases(folder: Path) -> dict[str, Any]:
    found = json.loads((folder / "run.json").read_text())["cases"]
    return {entry["case"]["variant"]["precision"]: entry for entry in found}


def test_they_are_measured_as_precisions_with_counts_before_and_after(
    pytester: pytest.Pytester, cache: Path
) -> None:
    pytester.makepyprojecttoml(
        """
        [tool.ortbench.precisions.slim]
        simplify = true
        [tool.ortbench.precisions.slim8]
        base = "int8-dynamic"
        simplify = true
        """
    )
    command = ("net.onnx", "-k", "test_accuracy", *QUICK, "--ort-precisions")
    result = pytester.runpytest(*command, "fp32,simplified,optimized,slim,slim8")
    result.assert_outcomes(passed=5)
    found = cases(pytester.path)
    assert {entry["status"] for entry in found.values()} == {"measured"}
    # The same numbers: held to the floor of the file itself.
    for name in ("simplified", "optimized", "slim"):
        output = found[name]["accuracy"]["outputs"][0]
        assert output["sqnr_db"] is None or output["sqnr_db"] > 100
    before = found["fp32"]["case"]["variant"]
    slim = found["simplified"]["case"]["variant"]
    assert before["extent"] == {
        "nodes": 10, "parameters": 262, "macs": 256, "uncounted": 0, "reason": ""
    }  # fmt: skip
    assert slim["extent"]["nodes"] < 5
    assert slim["recipe"]["nodes"] == f"10 → {slim['extent']['nodes']}"
    # One recipe under two names is made once.
    assert found["slim"]["case"]["variant"]["path"] == slim["path"]
    assert found["slim8"]["case"]["variant"]["recipe"]["simplify"] == "true"
    lines = result.stdout.str()
    assert f"10 → {slim['extent']['nodes']} nodes" in lines
    assert "optimized: optimised for " in lines
    assert "  fp32: " in lines

    made = {path: path.stat().st_mtime_ns for path in (cache / "variants").rglob("*.onnx")}
    assert len(made) == 3
    pytester.runpytest(*command, "simplified,optimized,slim8").assert_outcomes(passed=3)
    assert {path: path.stat().st_mtime_ns for path in (cache / "variants").rglob("*.onnx")} == made


def test_a_misspelt_one_is_told_at_once(pytester: pytest.Pytester, cache: Path) -> None:
    result = pytester.runpytest("net.onnx", *QUICK, "--ort-precisions=optimised")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert "'optimized'" in result.stderr.str()
