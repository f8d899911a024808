"""Sources of TensorFlow, each measured in its framework and as the ONNX file of its export.

TensorFlow is installed beside the product, in an environment of its own.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.beside_packages import ROOT, interpreter_beside, run_beside

pytestmark = [pytest.mark.heavy, pytest.mark.needs("network")]

#: Versions that work together.
PACKAGES = ("tensorflow-cpu==2.21.0", "tf2onnx==1.17.0", "ai-edge-litert==2.3.0")
BATCH = 64
_TENSORFLOW = "tensorflow.worker.engine:TensorFlow"


SOURCES = {
    "net.keras": "tensorflow",
    "saved": "tensorflow",
    "net.py:build": "tensorflow",
    "net.tflite": "tflite",
    "int8.tflite": "tflite",
}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """The folder with the sources, and the interpreter of the environment."""
    folder = tmp_path_factory.mktemp("made")
    python = interpreter_beside(PACKAGES)
    run_beside(python, str(ROOT / "tests" / "engines" / "making_tensorflow.py"), folder=folder)
    return folder, python


def measured(
    made: tuple[Path, str], framework: str, *sources: str, options: tuple[str, ...] = ()
) -> tuple[dict[tuple[str, str], dict[str, Any]], str]:
    """Cases of sources by source and alias of what ran them, and what the run printed."""
    folder, python = made
    results = f"results-{framework}-{len(sources)}-{len(options)}"
    done = run_beside(
        *(python, "-m", "pytest", "--pyargs", "pytest_ortbench.suites", "-k", "latency", "-q"),
        *(f"--ort-models={','.join(sources)}", f"--ort-providers=cpu,{framework}"),
        *("--ort-time=0.3", "--ort-workers=1", "--ort-threads=1", f"--ort-results={results}"),
        f"--ort-batch-sizes={BATCH}",
        *options,
        folder=folder,
        may_fail=True,
    )
    documents = list((folder / results).glob("*/run.json"))
    cases = [case for path in documents for case in json.loads(path.read_text())["cases"]]
    by_source = {
        (case["case"]["model"]["name"], case["case"]["provider"]["alias"]): case for case in cases
    }
    return by_source, done.stdout + done.stderr


@pytest.fixture(scope="module", params=sorted(set(SOURCES.values())))
def run(
    request: pytest.FixtureRequest, made: tuple[Path, str]
) -> tuple[str, dict[tuple[str, str], dict[str, Any]], str]:
    """A framework, the cases of all its sources, and what the run printed."""
    framework: str = request.param
    names = [source for source, alias in SOURCES.items() if alias == framework]
    return framework, *measured(made, framework, *names)


def test_the_framework_and_its_export_give_the_same(
    run: tuple[str, dict[tuple[str, str], dict[str, Any]], str],
) -> None:
    framework, cases, printed = run
    wanted = [source for source, alias in SOURCES.items() if alias == framework]
    assert len(cases) == 2 * len(wanted), printed[-3000:]
    for case in cases.values():
        assert case["status"] == "measured", printed[-3000:]
        assert case["accuracy"]["outputs"]
        for output in case["accuracy"]["outputs"]:
            assert output["agree"] == output["rows"]
            assert output["max_abs"] <= 1e-5
    kinds = {
        output["kind"]
        for (_, alias), case in cases.items()
        if alias == framework
        for output in case["accuracy"]["outputs"]
    }
    assert "class" in kinds
    if framework == "tflite":
        [model] = [c["case"]["model"] for (name, _), c in cases.items() if "int8" in name][:1]
        types = [item["type"] for item in [*model["inputs"], *model["outputs"]]]
        assert types == ["tensor(int8)"] * 2


def test_threads_are_read_back(
    run: tuple[str, dict[tuple[str, str], dict[str, Any]], str],
) -> None:
    framework, cases, _ = run
    key = {"tensorflow": "intra_op_parallelism_threads", "tflite": "threads_running"}[framework]
    for (_, alias), case in cases.items():
        if alias == framework:
            assert case["measurements"][0]["options_in_force"][key] == "1"


def test_callers_of_one_interpreter_take_turns(made: tuple[Path, str]) -> None:
    cases, printed = measured(
        made, "tflite", "net.tflite", options=("--ort-concurrency=2", "-k", "throughput")
    )
    assert {case["status"] for case in cases.values()} == {"measured"}, printed[-3000:]


def test_what_cannot_be_exported_is_named(made: tuple[Path, str]) -> None:
    cases, printed = measured(made, "tensorflow", "net.py:without_onnx", "code.keras")
    assert not [case for case in cases.values() if case["status"] == "measured"]
    assert "Svd" in printed
    assert "Lambda" in printed
    assert "Traceback" not in printed


@pytest.mark.parametrize(
    ("target", "source", "function", "inputs", "outputs"),
    [
        ("tflite.worker:TensorFlowLite", "net.tflite", "", {"image": [1, 32, 32, 3]}, ["output_0"]),
        (_TENSORFLOW, "saved", "", {"image": [1, 32, 32, 3]}, ["output_0"]),
        (_TENSORFLOW, "net.py", "build", {"left": [64, 16], "right": [64, 16]}, ["scores", "sum"]),
    ],
)
def test_callers_get_the_answers_to_their_own_questions(
    made: tuple[Path, str],
    target: str,
    source: str,
    function: str,
    inputs: dict[str, list[int]],
    outputs: list[str],
) -> None:
    folder, python = made
    asked = {
        "target": f"pytest_ortbench.engines.{target}",
        "source": str(folder / source),
        "function": function,
        "inputs": inputs,
        "outputs": outputs,
        "threads": 2,
    }
    program = str(ROOT / "tests" / "engines" / "several_callers.py")
    done = run_beside(python, program, json.dumps(asked), folder=folder)
    found = json.loads(done.stdout.splitlines()[-1])
    assert (found["wrong"], found["errors"], found["stay"], found["differ"]) == (0, [], True, True)
