"""Five engines on three models of the catalogue: a number each, or the refusal of the engine."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pytest

pytestmark = [pytest.mark.heavy, pytest.mark.needs("network")]

ENGINES = ("openvino-native", "tract", "mnn", "iree", "jax")
MODELS = ("mobilenet_v2", "resnet50", "bert_tiny")
#: One environment that has them all, made and kept like any other.
RUNTIME = (
    "onnxruntime+onnx+openvino+tract+MNN+iree-base-compiler+iree-base-runtime"
    "+jax+jaxonnxruntime+absl-py+chex"
)
CELLS = [(model, engine) for model in MODELS for engine in ENGINES]
#: Decibels at least; *seen*: MNN at 86 dB on ResNet-50, whatever precision it is asked for.
_LEAST_DB = {"mnn": 80.0}
_LEAST_DB_OF_OTHERS = 90.0

Rows = dict[tuple[str, str], Any]


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> Rows:
    """Give the rows of one run of pytest, by model and engine."""
    folder = tmp_path_factory.mktemp("engines")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
    command += ["--pyargs", "pytest_ortbench.suites", "-k", "test_latency"]
    command += [f"--ort-models={','.join(f'builtin:{model}' for model in MODELS)}"]
    command += [f"--ort-providers=cpu,{','.join(ENGINES)}", f"--ort-runtimes={RUNTIME}"]
    command += ["--ort-provider-option=openvino-native.INFERENCE_PRECISION_HINT=f32"]
    command += ["--ort-threads=1", "--ort-time=1", "--ort-workers=1", "--ort-timeout=900"]
    command += ["--ort-no-results", "--ort-json=run.json"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    document = folder / "run.json"
    assert document.is_file(), done.stdout + done.stderr
    cases = json.loads(document.read_text(encoding="utf-8"))["cases"]
    return {
        (case["case"]["model"]["name"], case["case"]["provider"]["alias"]): case for case in cases
    }


def test_most_cells_hold_numbers(rows: Rows) -> None:
    statuses = {cell: rows[cell]["status"] for cell in CELLS}
    assert sum(status == "measured" for status in statuses.values()) >= 11, statuses


@pytest.mark.parametrize(("model", "engine"), CELLS)
def test_a_cell_holds_a_number_that_is_right_or_says_why_not(
    rows: Rows, model: str, engine: str
) -> None:
    row = rows[model, engine]
    if row["status"] != "measured":
        assert row["status"] in ("unsupported", "unavailable")
        message = row["failure"]["message"]
        assert message.splitlines() == [message]
        return
    least = _LEAST_DB.get(engine, _LEAST_DB_OF_OTHERS)
    assert min(output["sqnr_db"] for output in row["accuracy"]["outputs"]) > least
    (measurement,) = row["measurements"]
    assert measurement["runtime"]["engine"] == engine
    assert measurement["threads"] == 1
    assert measurement["startup"]["compile_ns"] > 0


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("engine", ["mnn", "iree", "jax"])
def test_what_is_compiled_ahead_has_a_size(rows: Rows, model: str, engine: str) -> None:
    row = rows[model, engine]
    if row["status"] != "measured":
        pytest.skip(f"{engine} does not run {model}")
    (measurement,) = row["measurements"]
    assert measurement["startup"]["compiled_bytes"] > 0
