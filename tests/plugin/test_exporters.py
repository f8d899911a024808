"""Models that scikit-learn trains and skl2onnx exports inside of tests: limits, gate, resuming.

Real runs of pytest, in processes of their own; the exporter is installed beside them.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.environment import FORGOTTEN

pytestmark = [pytest.mark.heavy, pytest.mark.needs("network")]

#: The exporter, and what it and scikit-learn need besides what the tests have.
PACKAGES = ("skl2onnx", "scikit-learn", "joblib", "threadpoolctl", "narwhals", "cloudpickle")

TESTS = """
import os

import numpy as np
import pytest
from skl2onnx import to_onnx
from sklearn.datasets import load_iris
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from pytest_ortbench import OrtBench

X, Y = load_iris(return_X_y=True)
X = X.astype(np.float32)


@pytest.fixture(scope="session")
def forest():
    trees = int(os.environ.get("TREES", "20"))
    return RandomForestClassifier(trees, random_state=0).fit(X, Y)


def exported(model):
    return to_onnx(model, X[:1], options={"zipmap": False}, target_opset=18)


def test_forest(ortbench: OrtBench, forest, tmp_path):
    path = tmp_path / "forest.onnx"
    path.write_bytes(exported(forest).SerializeToString())
    data = {"X": X[:16], "label": forest.predict(X[:16])}
    data["probabilities"] = forest.predict_proba(X[:16])
    measured = ortbench.measure(path, inputs=data, limits=["latency_p99 <= 50 ms"])
    assert measured.case.batch == 16
    assert measured.latency().p50 < 0.05
    assert measured.accuracy().top1 == 1
    assert measured.status == "measured"


@pytest.mark.parametrize("scaled", [False, True], ids=["plain", "scaled"])
def test_regression(ortbench: OrtBench, scaled):
    if scaled and "STOP" in os.environ:
        pytest.exit("stopped")
    steps = ([StandardScaler()] if scaled else []) + [LogisticRegression(max_iter=1000)]
    ortbench.measure(exported(make_pipeline(*steps).fit(X, Y)))


def test_maps(ortbench: OrtBench, forest):
    assert ortbench.measure(to_onnx(forest, X[:1], target_opset=18)).throughput() > 0
"""
CASES = ["test_forest", "test_regression/plain", "test_regression/scaled", "test_maps"]


@dataclass(frozen=True)
class Ran:
    """A run of pytest: its exit code, what it printed, and its document."""

    code: int
    text: str
    document: dict[str, Any]

    @property
    def models(self) -> list[str]:
        return [
            case["case"]["model"]["name"].removeprefix("test_export.py/")
            for case in self.document["cases"]
        ]

    @property
    def gate(self) -> dict[str, dict[str, Any]]:
        return {
            entry["case_id"].removeprefix("test_export.py/").partition("/native")[0]: entry
            for entry in self.document["gate"]
        }


@pytest.fixture(scope="module")
def packages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Install the exporter into a folder."""
    folder = tmp_path_factory.mktemp("packages")
    command = [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--target", folder]
    subprocess.run([*command, *PACKAGES], check=True)
    return folder


@pytest.fixture
def run(packages: Path, tmp_path: Path) -> Any:
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    (tmp_path / "test_export.py").write_text(TESTS)

    def run(*arguments: str, **environment: str) -> Ran:
        known = {name: text for name, text in os.environ.items() if name not in FORGOTTEN}
        path = os.pathsep.join((str(Path(__file__).parents[2]), str(packages)))
        done = subprocess.run(
            [
                *(sys.executable, "-m", "pytest", "-rA", "-p", "no:cacheprovider"),
                *("--ort-time=0.3", "--ort-workers=1", "--ort-json=run.json", *arguments),
            ],
            cwd=tmp_path,
            # The exporter writes the domains of a graph in the order of a set.
            env={**known, "PYTHONPATH": path, "PYTHONHASHSEED": "0", **environment},
            capture_output=True,
            text=True,
            check=False,
        )
        text = done.stdout + done.stderr
        assert (tmp_path / "run.json").exists(), text
        return Ran(done.returncode, text, json.loads((tmp_path / "run.json").read_text()))

    return run


def test_models_are_measured_and_held_to_limits_and_baseline(run: Any) -> None:
    first = run()
    assert first.code == 0, first.text
    assert first.models == CASES
    assert first.document["expected"] == 4

    same = run("--ort-baseline=latest", "--ort-gate=model_size:1%,peak_rss:50%")
    assert same.code == 0, same.text
    assert {entry["model_relation"] for entry in same.gate.values()} == {"same"}
    assert list(same.gate) == CASES

    larger = run("--ort-baseline=latest", "--ort-gate=model_size:1%", TREES="60")
    assert larger.code == 1, larger.text
    assert {name for name, entry in larger.gate.items() if entry["failures"]} == {
        "test_forest",
        "test_maps",
    }
    assert "FAILED test_export.py::test_forest" in larger.text

    limited = run("--ort-limits=test_regression/scaled@latency_p50:1ns", "-k", "regression")
    assert limited.code == 1
    assert "FAILED test_export.py::test_regression[scaled]" in limited.text
    assert "PASSED test_export.py::test_regression[plain]" in limited.text


def test_an_interrupted_run_goes_on(run: Any) -> None:
    stopped = run("--ort-resume", STOP="1")
    assert stopped.models == CASES[:2]
    resumed = run("--ort-resume")
    assert resumed.code == 0, resumed.text
    assert resumed.document["resumed"] == 2, "the exporter makes the same bytes again"
    assert sorted(resumed.models) == sorted(CASES)


def test_the_other_side_of_the_same_file_is_measured_in_turns(run: Any) -> None:
    judged = run(
        "--ort-against=option:session.intra_op.allow_spinning=0",
        "-k",
        "test_forest",
        "--ort-gate=latency:50%",
    )
    assert list(judged.gate) == ["test_forest"], judged.text
    assert judged.gate["test_forest"]["launches"]
    assert judged.gate["test_forest"]["verdict"] in ("same", "faster", "inconclusive")
