"""Six named models in every precision: a measured row with its accuracy, or the reason.

One real run of the four that are converted quickly, and a heavy one of the other two: a minute on
two cores each, two where files must first be fetched, built and converted.
"""

from __future__ import annotations

import json
import platform
import subprocess
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from pytest_ortbench.core.precision import SQNR_FLOOR_DB
from pytest_ortbench.planning.recipes import shipped_recipe

pytestmark = [pytest.mark.live, pytest.mark.needs("network")]

#: The models, and of which of the two runs they are.
QUICK, SLOW = "quick", "slow"
MODELS = {
    "builtin:resnet50": SLOW,
    "builtin:mobilenet_v2": QUICK,
    "builtin:bert_tiny": QUICK,
    "zoo:rapidocr-det": QUICK,
    "zoo:silero-vad": QUICK,
    "zoo:nudenet-320n": SLOW,
}
RUN_OF = {name.partition(":")[2]: run for name, run in MODELS.items()}
PRECISIONS = ("fp32", "fp16", "int8-dynamic", "int8-static", "int4", "bf16")
Rows = dict[tuple[str, str], Any]


def _models(*names: str) -> list[Any]:
    """Return models as parameters; those of the slow run are heavy."""
    return [
        pytest.param(name, marks=pytest.mark.heavy if RUN_OF[name] == SLOW else ())
        for name in names
    ]


@pytest.fixture(scope="module")
def rows_of(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Rows]:
    """Give the rows of the run that a model is of; each of the two is made once."""
    return cache(lambda run: _measured(tmp_path_factory.mktemp(run), run))


def _measured(folder: Path, run: str) -> Rows:
    models = [name for name, of in MODELS.items() if of == run]
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
    command += ["--pyargs", "pytest_ortbench.suites", "-k", "test_latency"]
    command += [f"--ort-models={','.join(models)}", f"--ort-precisions={','.join(PRECISIONS)}"]
    command += ["--ort-providers=cpu", "--ort-dims=height:320,width:320"]
    command += ["--ort-time=0.05", "--ort-workers=1", "--ort-no-results", "--ort-json=run.json"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    cases = json.loads((folder / "run.json").read_text())["cases"]
    return {
        (case["case"]["model"]["name"], case["case"]["variant"]["precision"]): case
        for case in cases
    }


#: Smallest SQNR in dB of each measured row, as seen; ``None``: no row but a reason.
#: The two networks that are below their floors lose that much on any CPU: rapidocr's detector in
#: eight bits a tensor, and silero's state, whose quantised weights are those of an LSTM.
SQNR_DB: dict[str, tuple[float | None, ...]] = {
    "resnet50": (113, 42.7, 23.7, 17.8, None, None),
    "mobilenet_v2": (112, 42.5, 20.0, 14.4, None, None),
    "bert_tiny": (126, 59.4, 32.1, 20.4, 13.4, None),
    "rapidocr-det": (78.4, 36.2, 4.8, -0.8, None, None),
    "silero-vad": (126, 48.2, -37.4, None, None, None),
    "nudenet-320n": (139, 71.5, 34.4, 32.8, None, None),
}
#: What other kernels may make of the same file.
SPREAD_DB = 5.0
EXPECTED = {
    (model, precision): sqnr_db
    for model, found in SQNR_DB.items()
    for precision, sqnr_db in zip(PRECISIONS, found, strict=True)
}

#: Why there is no row.
REASONS = {
    ("resnet50", "int4"): "int4 changes nothing",
    ("resnet50", "bf16"): "no implementation of BatchNormalization",
    ("mobilenet_v2", "int4"): "int4 changes nothing",
    ("mobilenet_v2", "bf16"): "no implementation of BatchNormalization",
    ("bert_tiny", "bf16"): "no implementation of Add",
    ("rapidocr-det", "int4"): "int4 changes nothing",
    ("rapidocr-det", "bf16"): "(83 Conv, 2 ConvTranspose) supports bfloat16 in opset 11",
    (
        "silero-vad",
        "int8-static",
    ): "stand in branches of If or bodies of loops, which ONNX Runtime's static quantiser skips: "
    "12 Conv, 4 LSTM",
    ("silero-vad", "int4"): "operators with weights are 12 Conv, 4 LSTM",
    (
        "silero-vad",
        "bf16",
    ): "(12 Conv, 4 LSTM) supports bfloat16 in opset 16",
    ("nudenet-320n", "int4"): "int4 changes nothing",
    (
        "nudenet-320n",
        "bf16",
    ): "(64 Conv) supports bfloat16 in opset 17",
}

#: Nodes that stay in float where not all are converted.
IN_FLOAT = {
    ("bert_tiny", "int8-dynamic"): "4 (4 MatMul)",
    ("bert_tiny", "int4"): "4 (4 MatMul)",
    ("rapidocr-det", "int8-dynamic"): "2 (2 ConvTranspose)",
    ("nudenet-320n", "fp16"): "6 (6 Range)",
}


@pytest.mark.parametrize("run", [QUICK, pytest.param(SLOW, marks=pytest.mark.heavy)])
def test_every_combination_is_there(rows_of: Callable[[str], Rows], run: str) -> None:
    rows = rows_of(run)
    assert set(rows) == {key for key in EXPECTED if RUN_OF[key[0]] == run}
    unmeasured = {key for key, case in rows.items() if case["status"] != "measured"}
    assert unmeasured == {key for key in REASONS if RUN_OF[key[0]] == run}


@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize("model", _models(*SQNR_DB))
def test_a_row_with_accuracy_or_a_reason(
    rows_of: Callable[[str], Rows], model: str, precision: str
) -> None:
    case = rows_of(RUN_OF[model])[model, precision]
    expected = EXPECTED[model, precision]
    if expected is None:
        assert case["status"] == "unsupported"
        assert REASONS[model, precision] in case["failure"]["message"]
        assert not case["measurements"]
        return
    assert case["status"] == "measured"
    (worker,) = case["measurements"]
    assert worker["samples"]["blocks"]
    found = [output["sqnr_db"] for output in case["accuracy"]["outputs"]]
    floor = SQNR_FLOOR_DB[precision]
    flags = {flag["name"] for flag in case["flags"]}
    assert ("INACCURATE" in flags) == (min(found) < floor)
    if precision == "fp32":  # how the same operations are ordered is the CPU's own affair
        assert min(found) > floor
    elif expected < 0:  # noise: larger than the signal, and by how much says nothing
        assert min(found) < SPREAD_DB
    else:
        assert min(found) == pytest.approx(expected, abs=SPREAD_DB)


@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize("model", _models(*SQNR_DB))
def test_the_recipe_is_that_of_its_name(
    rows_of: Callable[[str], Rows], model: str, precision: str
) -> None:
    recipe = rows_of(RUN_OF[model])[model, precision]["case"]["variant"]["recipe"]
    asked = {} if precision == "fp32" else shipped_recipe(precision).settings()
    assert {name: recipe.get(name) for name in asked} == asked
    if precision == "fp32" or EXPECTED[model, precision] is None:
        return
    assert "onnxruntime" in recipe["tools"]
    assert recipe["nodes_in_float"] == IN_FLOAT.get((model, precision), "0")
    share = float(recipe["weights"].partition(" %")[0])
    # Four bits are for MatMul only; BERT's weights are mostly an embedding.
    assert share > 98 if precision != "int4" else share == pytest.approx(9.0, abs=0.1)
    if precision == "int8-static":
        assert recipe["calibrated_on"].startswith("16 random ")


@pytest.mark.parametrize("model", _models(*SQNR_DB))
def test_half_precision_is_emulated_on_a_cpu_without_it(
    rows_of: Callable[[str], Rows], model: str
) -> None:
    rows = rows_of(RUN_OF[model])
    flagged = {
        precision: "EMULATED" in {flag["name"] for flag in rows[model, precision]["flags"]}
        for precision in PRECISIONS
    }
    on_x86 = platform.machine().lower() in ("x86_64", "amd64")
    assert flagged == {precision: precision == "fp16" and on_x86 for precision in PRECISIONS}


@pytest.mark.parametrize("model", _models("resnet50", "mobilenet_v2", "bert_tiny", "nudenet-320n"))
def test_what_is_narrower_is_smaller(rows_of: Callable[[str], Rows], model: str) -> None:
    rows = rows_of(RUN_OF[model])
    size = {p: rows[model, p]["case"]["variant"]["size_bytes"] for p in PRECISIONS}
    assert size["fp16"] == pytest.approx(size["fp32"] / 2, rel=0.02)
    for precision in ("int8-dynamic", "int8-static"):
        assert size[precision] == pytest.approx(size["fp32"] / 4, rel=0.12)
