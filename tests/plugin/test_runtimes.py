"""Several runtimes in one pytest run: ids, selection, rows, reasons."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.plugin.conftest import QUICK, told

ModelFile = Callable[..., Path]

#: Runtimes that need no network: this interpreter under other names, and one that can't start.
_CONFIGURATION = """
[tool.ortbench.runtimes.other]
python = "current"

[tool.ortbench.runtimes.wrapped]
command = ["env", "ORTBENCH_X=1"]
python = "current"
shares_files = false

[tool.ortbench.runtimes.gone]
command = ["no-such-program"]
"""


@pytest.fixture(autouse=True)
def configuration(pytester: pytest.Pytester) -> None:
    """A project with runtimes."""
    pytester.makepyprojecttoml(_CONFIGURATION)


def collected(pytester: pytest.Pytester, *arguments: str) -> list[str]:
    """Ids of the latency tests."""
    result = pytester.runpytest_inprocess("mlp.onnx", *arguments, "--collect-only", "-q", *QUICK)
    lines = [line for line in result.outlines if "::test_latency[" in line]
    return [line.partition("[")[2].removesuffix("]") for line in lines]


def test_ids_end_in_the_label_of_a_runtime(
    pytester: pytest.Pytester, model_file: ModelFile
) -> None:
    model_file()
    ids = collected(pytester, "--ort-runtimes=current,other,wrapped", "--ort-batch-sizes=1,2")
    assert ids == [
        "mlp/native/cpu/b1",
        "mlp/native/cpu/b2",
        "mlp/native/cpu/b1+other",
        "mlp/native/cpu/b2+other",
        "mlp/native/cpu/b1+wrapped",
        "mlp/native/cpu/b2+wrapped",
    ]


def test_one_runtime_needs_no_label(pytester: pytest.Pytester, model_file: ModelFile) -> None:
    model_file()
    assert collected(pytester, "--ort-runtimes=other") == ["mlp/native/cpu/b1"]
    assert collected(pytester, "--ort-runtimes=other,other") == ["mlp/native/cpu/b1"]


@pytest.mark.parametrize(
    ("expression", "ids"),
    [
        ("other", ["mlp/native/cpu/b1+other"]),
        ("b1+other", ["mlp/native/cpu/b1+other"]),
        ("not other and not wrapped", ["mlp/native/cpu/b1"]),
        ("cpu/b1+wrapped or other", ["mlp/native/cpu/b1+other", "mlp/native/cpu/b1+wrapped"]),
    ],
)
def test_labels_can_be_selected(
    pytester: pytest.Pytester, model_file: ModelFile, expression: str, ids: list[str]
) -> None:
    model_file()
    assert collected(pytester, "--ort-runtimes=current,other,wrapped", "-k", expression) == ids


def run_document(pytester: pytest.Pytester) -> dict[str, Any]:
    """What the run wrote."""
    document: dict[str, Any] = json.loads((pytester.path / "run.json").read_text())
    return document


def test_every_runtime_is_measured_and_kept_apart(
    pytester: pytest.Pytester, model_file: ModelFile
) -> None:
    model_file()
    result = pytester.runpytest_inprocess(
        "mlp.onnx",
        "--ort-runtimes=current,wrapped",
        "--ort-json=run.json",
        "--ort-no-results",
        "-k",
        "latency or placement",
        *QUICK,
    )
    result.assert_outcomes(passed=4, deselected=result.parseoutcomes()["deselected"])
    document = run_document(pytester)
    keys = [(case["case"]["runtime"]["label"], case["status"]) for case in document["cases"]]
    assert keys == [("current", "measured"), ("wrapped", "measured")]
    assert set(document["runtimes"]) == {"current", "wrapped"}
    for case in document["cases"]:
        assert case["placement"]["executed"] == {"CPUExecutionProvider": 2}
        assert all(output["exact"] for output in case["accuracy"]["outputs"])


def test_a_runtime_that_does_not_start_is_a_row_and_the_others_go_on(
    pytester: pytest.Pytester, model_file: ModelFile
) -> None:
    model_file()
    result = pytester.runpytest_inprocess(
        "mlp.onnx",
        "--ort-runtimes=gone,current",
        "--ort-json=run.json",
        "--ort-no-results",
        "-k",
        "latency",
        *QUICK,
    )
    assert result.parseoutcomes()["passed"] == 1
    assert result.parseoutcomes()["failed"] == 1
    result.stdout.fnmatch_lines(["*'no-such-program'*"])
    statuses = {
        case["case"]["runtime"]["label"]: case["status"] for case in run_document(pytester)["cases"]
    }
    assert statuses == {"gone": "unavailable", "current": "measured"}


def test_an_environment_that_can_not_be_made_is_a_row(
    pytester: pytest.Pytester, model_file: ModelFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is tried there, neither for providers that are named nor for all of them."""
    monkeypatch.setenv("ORTBENCH_CACHE", str(model_file()))  # a file can't hold a cache
    result = pytester.runpytest_inprocess(
        "mlp.onnx",
        "--ort-runtimes=onnxruntime==1.20.1",
        "--ort-providers=all",
        "--ort-json=run.json",
        "--ort-no-results",
        "-k",
        "latency",
        *QUICK,
    )
    assert re.findall(r"\d+", told(result)[0]) == ["1", "1"]
    result.stdout.fnmatch_lines(["*onnxruntime==1.20.1 can't *"])
    assert result.ret == 1
    (case,) = run_document(pytester)["cases"]
    assert case["status"] == "unavailable"
    assert case["case"]["provider"]["alias"] == "cpu"
    assert case["case"]["runtime"]["label"] == "onnxruntime-1.20.1"


@pytest.mark.parametrize(
    ("spec", "next_step"), [("othr", "'other'"), ("onnxruntime==", "onnxruntime==1.20.1")]
)
def test_a_wrong_specification_is_a_usage_error(
    pytester: pytest.Pytester, model_file: ModelFile, spec: str, next_step: str
) -> None:
    model_file()
    result = pytester.runpytest_inprocess("mlp.onnx", f"--ort-runtimes={spec}", *QUICK)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    (message,) = result.stderr.str().splitlines()
    assert message.startswith("ERROR: --ort-runtimes: ")
    assert repr(spec) in message
    assert next_step in message
    assert "Traceback" not in result.stdout.str()


def test_the_ini_key(pytester: pytest.Pytester, model_file: ModelFile) -> None:
    model_file()
    pytester.makepyprojecttoml(
        f'{_CONFIGURATION}\n[tool.pytest]\nort_runtimes = ["current", "other"]\n'
    )
    assert collected(pytester) == ["mlp/native/cpu/b1", "mlp/native/cpu/b1+other"]


def test_what_takes_long_is_said_at_once_though_output_is_captured(
    pytester: pytest.Pytester,
) -> None:
    """Making an environment happens while tests are collected."""
    pytester.makeconftest(
        """
        from pytest_ortbench.plugin.taken import bench_of

        def pytest_generate_tests(metafunc):
            print("captured")
            bench_of(metafunc.config).progress.say("making the runtime x")
        """
    )
    pytester.makepyfile("def test_nothing(): pass")
    result = pytester.runpytest_subprocess("-p", "no:cacheprovider")
    result.stdout.fnmatch_lines(["ortbench: making the runtime x", "collected 1 item*"])
    result.stdout.no_fnmatch_line("captured")


def test_a_failure_names_the_runtime_as_the_table_does(
    pytester: pytest.Pytester, model_file: ModelFile
) -> None:
    model_file()
    pytester.makepyfile(
        """
        import pytest

        @pytest.mark.ortbench(models="mlp.onnx", limits=["latency_p50 <= 1 ns"])
        def test_limit(ortbench):
            pass
        """
    )
    text = pytester.runpytest("--ort-runtimes=current,other", *QUICK).stdout.str()
    for label in ("current", "other"):
        assert f"mlp/native/cpu/b1+{label}: limits exceeded" in text
