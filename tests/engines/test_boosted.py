"""Boosted trees of LightGBM and XGBoost, in an environment that is made for them."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.beside_packages import ROOT, run_beside

pytestmark = [pytest.mark.heavy, pytest.mark.needs("network")]

RUNTIME = "onnxruntime+lightgbm+xgboost+onnxmltools+skl2onnx+scikit-learn+mlcommons-loadgen"
CODE = """
import numpy as np

rng = np.random.default_rng(0)
X = rng.normal(size=(500, 6)).astype(np.float32)
KIND = (X[:, 0] + X[:, 1] > 0).astype(int) + (X[:, 2] > 1)
VALUE = (X @ np.arange(6)).astype(np.float32)

def light():
    import lightgbm
    return lightgbm.LGBMClassifier(n_estimators=30, verbose=-1).fit(X, KIND), X

def light_booster():
    import lightgbm
    data = lightgbm.Dataset(X, KIND > 0)
    return lightgbm.train({"objective": "binary", "verbose": -1}, data, 20), X

def extreme():
    import xgboost
    return xgboost.XGBClassifier(n_estimators=30).fit(X, KIND), X

def extreme_values():
    import xgboost
    return xgboost.XGBRegressor(n_estimators=30).fit(X, VALUE), X
"""


FUNCTIONS = {"lightgbm": ("light", "light_booster"), "xgboost": ("extreme", "extreme_values")}
CLASSES = {"lightgbm": "lightgbm.worker:LightGbmModel", "xgboost": "xgboost.worker:XgBoostModel"}
#: Outputs of each source that the callers ask for.
OUTPUTS = {
    "light": ["label", "probabilities"],
    "light_booster": ["label", "probabilities"],
    "extreme": ["label", "probabilities"],
    "extreme_values": ["variable"],
}


def measured(folder: Path, alias: str, functions: Sequence[str], *options: str) -> list[Any]:
    """Cases of one run with the sources of a framework, in ONNX Runtime and in the framework."""
    (folder / "boost.py").write_text(CODE)
    models = ",".join(f"boost.py:{function}" for function in functions)
    command = (sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider")
    command += ("--pyargs", "pytest_ortbench.suites", "--ort-time=0.2", "--ort-workers=1")
    command += (f"--ort-models={models}", f"--ort-providers=cpu,{alias}")
    command += (f"--ort-runtimes={RUNTIME}", "--ort-no-results", "--ort-json=run.json", *options)
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    document = folder / "run.json"
    assert document.is_file(), done.stdout[-3000:] + done.stderr[-3000:]
    cases: list[Any] = json.loads(document.read_text())["cases"]
    return cases


@pytest.fixture(scope="module", params=list(FUNCTIONS))
def cases(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> tuple[str, list[Any]]:
    """Alias of a framework, and the cases of one run of its sources."""
    folder = tmp_path_factory.mktemp("boosted")
    return request.param, measured(folder, request.param, FUNCTIONS[request.param], "-k", "latency")


def test_labels_are_equal_and_probabilities_within_a_hundred_thousandth(
    cases: tuple[str, list[Any]],
) -> None:
    alias, results = cases
    assert len(results) == 2 * len(FUNCTIONS[alias])
    for result in results:
        assert (result["status"], result["case"]["batch"]) == ("measured", 500)
        for output in result["accuracy"]["outputs"]:
            assert output["compared"] >= 500
            assert output["agree"] == output["rows"]
            assert output["max_abs"] <= 1e-5


def test_callers_get_the_answers_to_their_own_questions(
    cases: tuple[str, list[Any]], tmp_path: Path
) -> None:
    alias, results = cases
    python = results[0]["measurements"][0]["runtime"]["executable"]
    (tmp_path / "boost.py").write_text(CODE)
    for function in FUNCTIONS[alias]:
        asked = {
            "target": f"pytest_ortbench.engines.{CLASSES[alias]}",
            "source": str(tmp_path / "boost.py"),
            "function": function,
            "inputs": {"X": [64, 6]},
            "outputs": OUTPUTS[function],
            "threads": 2,
        }
        program = str(ROOT / "tests" / "engines" / "several_callers.py")
        done = run_beside(python, program, json.dumps(asked), folder=tmp_path)
        found = json.loads(done.stdout.splitlines()[-1])
        assert (found["wrong"], found["errors"]) == (0, []), function
        assert (found["stay"], found["differ"]) == (True, True), function


@pytest.mark.parametrize("alias", list(FUNCTIONS))
def test_several_callers_and_a_load_are_measured(alias: str, tmp_path: Path) -> None:
    results = measured(
        tmp_path, alias, FUNCTIONS[alias][:1], "-k", "throughput or load", "--ort-concurrency=1,3",
        "--ort-sessions=1,2", "--ort-load=single-stream,offline",
    )  # fmt: skip
    assert len(results) == 8
    for result in results:
        assert result["status"] == "measured", result["failure"]
        loads = {load["spec"]["scenario"]: load for load in result["loads"]}
        assert loads.keys() == {"single-stream", "offline"}
        for load in loads.values():
            assert load["reason"] == ""
            assert load["tests"][0]["requests"] > 0
