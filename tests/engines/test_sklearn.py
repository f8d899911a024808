"""Models of scikit-learn, exported and asked for real, beside their ONNX files."""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import pytest

from pytest_ortbench.core.errors import WorkerError
from pytest_ortbench.core.source import Exported, Source
from pytest_ortbench.engines.seam import EngineTask, EngineTensor
from pytest_ortbench.engines.sklearn.worker import SklearnModel
from pytest_ortbench.schema.source_questions import ExportSource
from pytest_ortbench.worker.exporting import export_source
from pytest_ortbench.worker.state import WorkerState

pytestmark = [pytest.mark.live, pytest.mark.filterwarnings("ignore")]

CODE = """
import numpy as np, pandas as pd
from sklearn.cluster import KMeans
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import IsolationForest, RandomForestClassifier, RandomForestRegressor
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LinearRegression, LogisticRegression, SGDClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.svm import SVC, LinearSVC

rng = np.random.default_rng(0)
COUNT = 300
words = ["good", "bad", "slow", "fast", "fine"]
TABLE = pd.DataFrame({
    "age": rng.integers(18, 90, COUNT),
    "city": rng.choice(["Bern", "Rome", "Oslo"], COUNT),
    "income": rng.lognormal(10, 1, COUNT),
    "text": [" ".join(rng.choice(words, 4)) for _ in range(COUNT)],
})
ANSWER = np.where((TABLE["age"] > 40) ^ (TABLE["city"] == "Rome"), "yes", "no")
NUMBERS = rng.normal(size=(COUNT, 6)).astype(np.float32)
KIND = (NUMBERS[:, 0] + NUMBERS[:, 1] > 0).astype(int) + (NUMBERS[:, 2] > 1)
VALUE = NUMBERS @ np.arange(6.0)

def pipeline():
    columns = ColumnTransformer([
        ("city", OneHotEncoder(handle_unknown="ignore"), ["city"]),
        ("numbers", StandardScaler(), ["age", "income"]),
        ("text", TfidfVectorizer(), "text"),
    ])
    forest = RandomForestClassifier(30, random_state=0)
    return make_pipeline(columns, forest).fit(TABLE, ANSWER), TABLE

def texts():
    model = make_pipeline(TfidfVectorizer(), SGDClassifier(loss="log_loss", random_state=0))
    return model.fit(TABLE["text"], ANSWER), TABLE["text"].to_numpy()

def scaled_logistic():
    model = make_pipeline(StandardScaler(), LogisticRegression())
    return model.fit(NUMBERS, KIND), NUMBERS, {"names": ["numbers"], "outputs": ["kind", "p"]}

def forest():
    return RandomForestRegressor(20, random_state=0).fit(NUMBERS, VALUE), NUMBERS

def line():
    return LinearRegression().fit(NUMBERS, VALUE)

def margins():
    return LinearSVC(random_state=0).fit(NUMBERS, KIND), NUMBERS

def two_margins():
    return LinearSVC(random_state=0).fit(NUMBERS, KIND > 0), NUMBERS

def support():
    return SVC(random_state=0).fit(NUMBERS, KIND), NUMBERS

def clusters():
    return KMeans(3, random_state=0, n_init=1).fit(NUMBERS), NUMBERS

def outliers():
    return IsolationForest(n_estimators=20, random_state=0).fit(NUMBERS), NUMBERS

def scaler():
    return StandardScaler().fit(NUMBERS), NUMBERS

def unfitted():
    return LogisticRegression(), NUMBERS

def without_rows():
    return pipeline()[0]

def unknown_type():
    return LinearRegression().fit(NUMBERS, VALUE), NUMBERS, {"types": {"X": "float8"}}

class Own(LinearRegression):
    pass

def no_converter():
    return Own().fit(NUMBERS, VALUE), NUMBERS
"""


#: A model that takes its time to be built.
SLOW = """
def slow():
    import time
    time.sleep(0.05)
    return scaled_logistic()
"""


@pytest.fixture
def models(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(sys, "path", [*sys.path])
    file = tmp_path / "models.py"
    file.write_text(CODE)
    return file


@dataclass(frozen=True)
class Both:
    """What both sides say of the same rows.

    Attributes:
        record: Of the export.
        inputs: Names of the inputs of the ONNX file.
        outputs: Of its outputs.
        onnx: What ONNX Runtime gives.
        framework: What the framework gives.
    """

    record: Exported
    inputs: list[str]
    outputs: list[str]
    onnx: list[Any]
    framework: list[Any]


def ask_both(file: Path, function: str, folder: Path, rows: int = 300) -> Both:
    folder.mkdir()
    question = ExportSource(path=str(file), function=function, folder=str(folder))
    record = export_source(question, WorkerState(lambda _: None))
    session = onnxruntime.InferenceSession(folder / record.file)
    if record.example:
        with np.load(folder / record.example, allow_pickle=False) as stored:
            feeds = {name: stored[name] for name in stored.files}
    else:
        feeds = {"X": np.random.default_rng(1).normal(size=(rows, 6)).astype(np.float32)}
    feeds = {
        name: array.astype(object) if array.dtype.kind == "U" else array
        for name, array in feeds.items()
    }
    outputs = [info.name for info in session.get_outputs()]
    engine = SklearnModel(
        EngineTask(
            path=folder / record.file,
            inputs=tuple(EngineTensor(name=name, type="") for name in feeds),
            outputs=tuple(EngineTensor(name=name, type="") for name in outputs),
            threads=1,
            source=Source(path=str(file), function=function),
        )
    )
    assert engine.load()
    engine.build()
    given = list(engine.open()(feeds))
    assert set(engine.in_force().values()) >= {"1"}
    engine.close()
    return Both(
        record=record,
        inputs=[info.name for info in session.get_inputs()],
        outputs=outputs,
        onnx=session.run(None, feeds),
        framework=given,
    )


def assert_alike(both: Both) -> None:
    """Labels are equal in every row that is no tie, and numbers within 1e-5 of the largest."""
    *labels, scores = zip(both.onnx, both.framework, strict=True)
    onnx, framework = (np.asarray(side, dtype=float) for side in scores)
    assert onnx.shape == framework.shape
    largest = np.abs(framework).max(initial=1.0)
    np.testing.assert_allclose(onnx, framework, atol=1e-5 * largest)
    for ours, theirs in labels:
        best = np.sort(framework, axis=1)
        width = best.shape[1]
        tie = best[:, -1] - best[:, -2] < 1e-5 * largest if width > 1 else np.zeros(len(best), bool)
        assert ours.shape == np.asarray(theirs).shape
        assert list(ours[~tie]) == list(np.asarray(theirs)[~tie])


@pytest.mark.parametrize(
    ("function", "outputs"),
    [
        ("pipeline", 2),
        ("texts", 2),
        ("scaled_logistic", 2),
        ("forest", 1),
        ("line", 1),
        ("margins", 2),
        ("two_margins", 2),
        ("clusters", 2),
        ("outliers", 2),
        ("scaler", 1),
    ],
)
def test_both_sides_give_the_same(
    function: str, outputs: int, models: Path, tmp_path: Path
) -> None:
    both = ask_both(models, function, tmp_path / "out")
    assert both.record.framework == "sklearn"
    assert set(both.record.versions) >= {"scikit-learn", "skl2onnx", "onnx", "python"}
    assert len(both.onnx) == len(both.framework) == outputs
    assert_alike(both)


def test_columns_are_inputs_and_names_are_the_users(models: Path, tmp_path: Path) -> None:
    pipeline = ask_both(models, "pipeline", tmp_path / "pipeline")
    assert pipeline.inputs == ["age", "city", "income", "text"]
    assert any("ZipMap" in note for note in pipeline.record.notes)
    named = ask_both(models, "scaled_logistic", tmp_path / "named")
    assert (named.inputs, named.outputs) == (["numbers"], ["kind", "p"])


@pytest.mark.parametrize(
    ("function", "kind", "part"),
    [
        ("unfitted", "error", "LogisticRegression is not fitted"),
        ("without_rows", "error", "without example rows"),
        ("unknown_type", "error", "'float8'"),
        ("no_converter", "unsupported", "Own"),
    ],
)
def test_what_can_not_be_exported_is_told_in_one_line(
    function: str, kind: str, part: str, models: Path, tmp_path: Path
) -> None:
    with pytest.raises(WorkerError) as caught:
        ask_both(models, function, tmp_path / "out")
    failure = caught.value.failure
    assert (failure.kind, failure.phase) == (kind, "export")
    assert failure.message.startswith(f"models.py:{function}: ")
    assert part in failure.message
    assert "\n" not in failure.message
    assert failure.hint


def test_a_run_measures_the_model_beside_its_export(
    models: Path, pytester: pytest.Pytester
) -> None:
    pytester.path.joinpath("models.py").write_text(models.read_text() + SLOW)
    arguments = ("--ort-models=models.py:slow", "--ort-providers=cpu,sklearn")
    pytester.runpytest(
        "--pyargs", "pytest_ortbench.suites", "-k", "latency", "--ort-batch-sizes=7",
        "--ort-time=0.05", "--ort-workers=1", "--ort-startup", *arguments,
    )  # fmt: skip
    [document] = pytester.path.glob("results/*/run.json")
    run = json.loads(document.read_text())
    rows = {result["case"]["provider"]["alias"]: result for result in run["cases"]}
    assert {alias: row["status"] for alias, row in rows.items()} == {
        "cpu": "measured",
        "sklearn": "measured",
    }
    source = rows["sklearn"]["case"]["model"]["exported_from"]
    assert (source["framework"], source["exporter"]) == ("sklearn", "skl2onnx")
    assert [spec["shape"] for spec in rows["sklearn"]["case"]["inputs"]] == [[7, 6]]
    (measurement,) = rows["sklearn"]["measurements"]
    # The entry function is the model's building.
    assert measurement["startup"]["build_ns"] >= 50_000_000
    assert measurement["startup"]["session_create_ns"] > 0
    builds = {
        alias: [trial["build_ns"] is not None for trial in row["start_ups"]["trials"]]
        for alias, row in rows.items()
    }
    assert builds == {"cpu": [False, False], "sklearn": [True, True]}
    [measurement] = rows["sklearn"]["measurements"]
    assert (measurement["runtime"]["engine"], measurement["runtime"]["version"]) == ("sklearn", "")
    outputs = rows["sklearn"]["accuracy"]["outputs"]
    assert outputs, "answers of the framework are compared with those of the export"


def test_a_column_is_one_wide(models: Path, tmp_path: Path) -> None:
    engine = SklearnModel(
        EngineTask(
            path=tmp_path / "model.onnx",
            inputs=(),
            outputs=(EngineTensor(name="label", type=""), EngineTensor(name="p", type="")),
            threads=1,
            source=Source(path=str(models), function="texts"),
        )
    )
    engine.load()
    engine.build()
    ask = engine.open()
    assert len(ask({"X": np.array([["good"], ["bad"]], object)})[0]) == 2
    with pytest.raises(ValueError, match="reshape"):
        ask({"X": np.array([["good", "bad"]], object)})
