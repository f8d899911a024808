"""Boosted trees of LightGBM and XGBoost, in an environment that is made for them."""

from __future__ import annotations

import json

import pytest

pytestmark = [pytest.mark.heavy, pytest.mark.needs("network")]

RUNTIME = "onnxruntime+lightgbm+xgboost+onnxmltools+skl2onnx+scikit-learn"
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


@pytest.mark.parametrize(
    ("alias", "functions"),
    [("lightgbm", ("light", "light_booster")), ("xgboost", ("extreme", "extreme_values"))],
)
def test_labels_are_equal_and_probabilities_within_a_hundred_thousandth(
    alias: str, functions: tuple[str, ...], pytester: pytest.Pytester
) -> None:
    pytester.path.joinpath("boost.py").write_text(CODE)
    models = ",".join(f"boost.py:{function}" for function in functions)
    pytester.runpytest_subprocess(
        "--pyargs", "pytest_ortbench.suites", "-k", "latency", "--ort-time=0.2",
        "--ort-workers=1", f"--ort-models={models}", f"--ort-providers=cpu,{alias}",
        f"--ort-runtimes={RUNTIME}",
    )  # fmt: skip
    [document] = pytester.path.glob("results/*/run.json")
    results = json.loads(document.read_text())["cases"]
    assert len(results) == 2 * len(functions)
    for result in results:
        assert (result["status"], result["case"]["batch"]) == ("measured", 500)
        for output in result["accuracy"]["outputs"]:
            assert output["compared"] >= 500
            assert output["agree"] == output["rows"]
            assert output["max_abs"] <= 1e-5
