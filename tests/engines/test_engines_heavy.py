"""Six engines on three models of the catalogue: a number each, or the refusal of the engine."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from pytest_ortbench.launch.software_vulkan import software_vulkan
from tests.beside_packages import ROOT, run_beside

pytestmark = [pytest.mark.heavy, pytest.mark.needs("network")]

ENGINES = ("openvino-native", "tract", "mnn", "iree", "jax", "ncnn")
MODELS = ("mobilenet_v2", "resnet50", "bert_tiny")
#: One environment that has them all, made and kept like any other.
RUNTIME = (
    "onnxruntime+onnx+openvino+tract+MNN+iree-base-compiler+iree-base-runtime"
    "+jax+jaxonnxruntime+absl-py+chex+ncnn+pnnx"
)
CELLS = [(model, engine) for model in MODELS for engine in ENGINES]
#: Decibels at least; *seen*: MNN at 86 dB on ResNet-50, whatever precision it is asked for.
_LEAST_DB = {"mnn": 80.0}
_LEAST_DB_OF_OTHERS = 90.0

Rows = dict[tuple[str, str], Any]

#: What runs a model in the engines.
CLASSES = {
    "openvino-native": "openvino_native.worker:OpenVino",
    "tract": "tract.worker:Tract",
    "mnn": "mnn.worker:Mnn",
    "iree": "iree.worker:Iree",
    "jax": "jax.worker:Jax",
    "ncnn": "ncnn.worker:Ncnn",
}


@pytest.fixture(scope="module")
def document(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Give the document of one run of pytest."""
    folder = tmp_path_factory.mktemp("engines")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
    command += ["--pyargs", "pytest_ortbench.suites", "-k", "test_latency"]
    command += [f"--ort-models={','.join(f'builtin:{model}' for model in MODELS)}"]
    command += [f"--ort-providers=cpu,{','.join(ENGINES)}", f"--ort-runtimes={RUNTIME}"]
    command += ["--ort-provider-option=openvino-native.INFERENCE_PRECISION_HINT=f32"]
    command += ["--ort-threads=1", "--ort-time=1", "--ort-workers=1", "--ort-timeout=900"]
    command += ["--ort-no-results", "--ort-json=run.json"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    path = folder / "run.json"
    assert path.is_file(), done.stdout + done.stderr
    written: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return written


@pytest.fixture(scope="module")
def rows(document: dict[str, Any]) -> Rows:
    """Give the rows of the run, by model and engine."""
    return {
        (case["case"]["model"]["name"], case["case"]["provider"]["alias"]): case
        for case in document["cases"]
    }


def write_model(path: Path) -> None:
    """Write two convolutions and a head, with two outputs."""
    draw = np.random.default_rng(0)

    def weights(name: str, *shape: int) -> onnx.TensorProto:
        return numpy_helper.from_array(draw.normal(0, 0.2, shape).astype(np.float32), name)

    nodes = [
        helper.make_node("Conv", ["x", "first"], ["a"], pads=[1] * 4),
        helper.make_node("Relu", ["a"], ["b"]),
        helper.make_node("Conv", ["b", "second"], ["c"], pads=[1] * 4),
        helper.make_node("GlobalAveragePool", ["c"], ["d"]),
        helper.make_node("Flatten", ["d"], ["e"]),
        helper.make_node("MatMul", ["e", "head"], ["y"]),
        helper.make_node("Softmax", ["y"], ["p"]),
    ]
    tensor = helper.make_tensor_value_info
    graph = helper.make_graph(
        nodes,
        "net",
        [tensor("x", TensorProto.FLOAT, [1, 3, 32, 32])],
        [tensor("p", TensorProto.FLOAT, [1, 10]), tensor("y", TensorProto.FLOAT, [1, 10])],
        [weights("first", 16, 3, 3, 3), weights("second", 16, 16, 3, 3), weights("head", 16, 10)],
    )
    opset = helper.make_opsetid("", 17)
    onnx.save(helper.make_model(graph, opset_imports=[opset], ir_version=8), path)


def test_most_cells_hold_numbers(rows: Rows) -> None:
    statuses = {cell: rows[cell]["status"] for cell in CELLS}
    assert sum(status == "measured" for status in statuses.values()) >= 15, statuses


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
@pytest.mark.parametrize("engine", ["mnn", "iree", "jax", "ncnn"])
def test_what_is_compiled_ahead_has_a_size(rows: Rows, model: str, engine: str) -> None:
    row = rows[model, engine]
    if row["status"] != "measured":
        assert row["status"] == "unsupported"
        return
    (measurement,) = row["measurements"]
    assert measurement["startup"]["compiled_bytes"] > 0


def answers_of_callers(
    document: dict[str, Any], engine: str, folder: Path, *, device: str = ""
) -> dict[str, Any]:
    """What several callers of one session of an engine found out."""
    case = next(
        case
        for case in document["cases"]
        if case["case"]["provider"]["alias"] == engine and case["measurements"]
    )
    write_model(folder / "net.onnx")
    asked = {
        "target": f"pytest_ortbench.engines.{CLASSES[engine]}",
        "model": str(folder / "net.onnx"),
        "inputs": {"x": [1, 3, 32, 32]},
        "outputs": ["p", "y"],
        "threads": 2,
        "device": device,
    }
    python = case["measurements"][0]["runtime"]["executable"]
    program = str(ROOT / "tests" / "engines" / "several_callers.py")
    done = run_beside(python, program, json.dumps(asked), folder=folder)
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


@pytest.mark.parametrize("engine", ENGINES)
def test_callers_get_the_answers_to_their_own_questions(
    document: dict[str, Any], engine: str, tmp_path: Path
) -> None:
    found = answers_of_callers(document, engine, tmp_path)
    assert found["differ"], "one answer for all questions would tell nothing"
    assert (found["wrong"], found["errors"]) == (0, [])
    assert found["stay"], "the next inference wrote over what the caller holds"


def test_iree_runs_on_a_vulkan_device_in_software(
    document: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    vulkan = software_vulkan()
    if vulkan is None or not (vulkan.has_loader and vulkan.installed):
        pytest.skip("no Vulkan loader, or no SwiftShader: packages libvulkan1 and chromium")
    monkeypatch.setenv("VK_ICD_FILENAMES", vulkan.installed)
    found = answers_of_callers(document, "iree", tmp_path, device="vulkan")
    assert (found["wrong"], found["errors"]) == (0, [])
    assert (found["differ"], found["stay"]) == (True, True)
