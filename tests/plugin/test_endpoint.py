"""A service beside a session in one run: its rows, its load, its document; and one that is gone."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.engines.endpoint_server import serving
from tests.engines.text_server import TextService, writing
from tests.launch.cases import relu

from .conftest import QUICK

LOAD = "--ort-load=server:100:30s:p50"


@pytest.fixture(autouse=True)
def short_loads(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let loads last no longer than their number of queries takes."""
    monkeypatch.setattr("pytest_ortbench.passes.load.numbers.plan.LEAST_S", 0.5)


def cases_of(path: str) -> dict[str, Any]:
    cases = json.loads(Path(path).read_text())["cases"]
    return {case["case"]["provider"]["alias"]: case for case in cases}


def test_a_service_is_measured_beside_a_session(pytester: pytest.Pytester) -> None:
    relu(pytester.path / "relu.onnx")
    with serving() as service:
        result = pytester.runpytest(
            "relu.onnx", f"--ort-endpoint={service.url}", LOAD, "--ort-json=run.json",
            "--ort-html=run.html", "-k", "test_latency or test_load or test_accuracy", *QUICK,
        )  # fmt: skip
    result.assert_outcomes(passed=6)
    cases = cases_of("run.json")
    assert set(cases) == {"cpu", "endpoint"}
    here, there = cases["cpu"], cases["endpoint"]
    assert (here["case"]["provider"]["role"], there["case"]["provider"]["role"]) == (
        "provider",
        "endpoint",
    )
    assert there["status"] == "measured"
    # What it answers was held against the reference, and is right to the last bit.
    assert [output["exact"] for output in there["accuracy"]["outputs"]] == [True]
    for measurement in there["measurements"]:
        assert measurement["memory"]["peak_bytes"] is None
        assert measurement["runtime"]["engine"] == "endpoint"
        assert measurement["options_in_force"]["encoding"] == "binary"
    ((test_here,), (test_there,)) = (
        [test for load in case["loads"] for test in load["tests"]] for case in (here, there)
    )
    assert (test_here["exchanges"], test_here["client_kept_rate"]) == (None, None)
    exchanges = test_there["exchanges"]
    assert (exchanges["url"], exchanges["protocol"]) == (service.url, "v2")
    assert exchanges["sent"] == test_there["queries"]
    assert exchanges["failed"] == {}
    assert (exchanges["compared"], exchanges["compared_with"]) == (exchanges["sent"], "reference")
    assert exchanges["cost"]["reason"] == ""
    assert exchanges["cost"]["p50_ns"] > 0
    assert service.url in Path("run.html").read_text()


def test_files_of_the_command_line_can_not_share_a_service(pytester: pytest.Pytester) -> None:
    for name in ("relu", "other"):
        relu(pytester.path / f"{name}.onnx")
    result = pytester.runpytest(
        "relu.onnx", "other.onnx", "--ort-endpoint=http://127.0.0.1:1/v2/models/relu/infer", *QUICK
    )
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["ERROR: --ort-endpoint: *"])


def test_a_service_that_is_gone_costs_its_own_row_alone(pytester: pytest.Pytester) -> None:
    relu(pytester.path / "relu.onnx")
    with serving() as service:
        pass
    result = pytester.runpytest(
        "relu.onnx", f"--ort-endpoint={service.url}", "--ort-json=run.json", "-k", "test_latency",
        *QUICK,
    )  # fmt: skip
    result.assert_outcomes(passed=1, failed=1)
    cases = cases_of("run.json")
    assert cases["cpu"]["status"] == "measured"
    assert cases["endpoint"]["status"] == "unavailable"
    assert cases["endpoint"]["failure"]["kind"] == "unavailable"


def test_a_language_model_behind_a_service_writes_under_load(pytester: pytest.Pytester) -> None:
    service = TextService(first_s=0.001, later_s=0.001)
    with writing(service):
        result = pytester.runpytest(
            "--pyargs", "pytest_ortbench.suites.test_load", "--ort-models=builtin:decoder",
            f"--ort-endpoint={service.url}", "--ort-providers=endpoint:openai",
            "--ort-generate=only", "--ort-prompt-tokens=8", "--ort-new-tokens=4",
            "--ort-load=server:100:ttft=30s:tpot=30s", "--ort-json=run.json", *QUICK,
        )  # fmt: skip
    result.assert_outcomes(passed=1)
    case = cases_of("run.json")["endpoint"]
    assert case["status"] == "measured"
    assert case["case"]["generation"]["new_tokens"] == 4
    # A text has no scores: nothing is said of it.
    assert case["accuracy"]["outputs"] == []
    ((test,),) = (load["tests"] for load in case["loads"])
    assert test["exchanges"]["protocol"] == "openai"
    assert test["exchanges"]["failed"] == {}
    assert test["late_first_token"] == test["late_token_time"] == 0
    assert test["first_token_percentiles_ns"]["50"] >= 1_000_000
