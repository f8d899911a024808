"""Models in ONNX Runtime's own format: measured like others, honest about what is not known."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper, save

from .conftest import QUICK as FAST

QUICK = (*FAST, "--ort-no-results", "--ort-json=run.json")
INT64, FLOAT = TensorProto.INT64, TensorProto.FLOAT

Saved = Callable[..., Path]


def to_ort(source: Path, target: Path) -> Path:
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    options.optimized_model_filepath = str(target)
    options.add_session_config_entry("session.save_model_format", "ORT")
    onnxruntime.InferenceSession(str(source), options, providers=["CPUExecutionProvider"])
    return target


@pytest.fixture
def embedder(pytester: pytest.Pytester) -> Path:
    """Ids into a table of ten rows, in both formats: ``net.onnx`` and ``net.ort``."""
    graph = helper.make_graph(
        [
            helper.make_node("Gather", ["table", "input_ids"], ["g"], name="gather"),
            helper.make_node("Identity", ["g"], ["i"], name="id"),
            helper.make_node("MatMul", ["i", "w"], ["y"], name="mm"),
        ],
        "g",
        [helper.make_tensor_value_info("input_ids", INT64, ["batch", "seq"])],
        [helper.make_tensor_value_info("y", FLOAT, ["batch", "seq", 4])],
        [
            numpy_helper.from_array(np.random.rand(10, 8).astype(np.float32), "table"),
            numpy_helper.from_array(np.random.rand(8, 4).astype(np.float32), "w"),
        ],
    )
    opset = [helper.make_opsetid("", 13)]
    source = pytester.path / "net.onnx"
    save(helper.make_model(graph, ir_version=8, opset_imports=opset), str(source))
    to_ort(source, pytester.path / "net.ort")
    return source


def cases(folder: Path) -> list[dict[str, Any]]:
    return json.loads((folder / "run.json").read_text())["cases"]


def test_a_file_that_is_named_is_collected_and_measured(
    pytester: pytest.Pytester, embedder: Path
) -> None:
    result = pytester.runpytest(
        "net.ort", "-k", "test_latency or test_accuracy", *QUICK, "--ort-dims=seq:3:5"
    )
    result.assert_outcomes(passed=4)
    found = cases(pytester.path)
    assert [case["case"]["model"]["name"] for case in found] == ["net.ort"] * 2
    assert [case["case"]["inputs"][0]["shape"] for case in found] == [[1, 3], [1, 5]]
    assert [case["status"] for case in found] == ["measured"] * 2
    case = found[0]
    assert case["placement"]["executed"]["CPUExecutionProvider"] >= 2
    assert case["accuracy"]["outputs"][0]["exact"]
    assert case["accuracy"]["reference"].split()[0] == "net.ort"
    assert len(case["case"]["model"]["notes"]) == 1
    # Nothing is compared with another file, so nothing was counted.
    assert case["case"]["variant"]["extent"] is None
    assert case["case"]["model"]["size_bytes"] == (pytester.path / "net.ort").stat().st_size


def test_by_option_and_glob_beside_its_source(pytester: pytest.Pytester, embedder: Path) -> None:
    result = pytester.runpytest(
        "--pyargs", "pytest_ortbench.suites", "-k", "test_latency", *QUICK,
        "--ort-models=net.onnx,*.ort", "--ort-dims=seq:3",
    )  # fmt: skip
    result.assert_outcomes(passed=2)
    assert [case["case"]["model"]["name"] for case in cases(pytester.path)] == ["net", "net.ort"]


def test_a_named_reference_is_what_it_is_compared_with_and_says_what_it_takes(
    pytester: pytest.Pytester, embedder: Path
) -> None:
    pytester.makepyprojecttoml(
        '[tool.ortbench.models.net]\nfile = "net.ort"\nreference = "net.onnx"\n'
    )
    result = pytester.runpytest("net.ort", "-k", "test_accuracy", *QUICK, "--ort-dims=seq:3")
    result.assert_outcomes(passed=1)
    (case,) = cases(pytester.path)
    assert case["accuracy"]["reference"].split()[0] == "net.onnx"
    hint = case["case"]["inputs"][0]["hint"]
    assert (hint["low"], hint["high"]) == (0, 9)
    assert "Gather" in hint["why"]


def test_it_may_be_an_own_variant_of_its_source(pytester: pytest.Pytester, embedder: Path) -> None:
    pytester.makepyprojecttoml(
        '[tool.ortbench.models.net]\nfile = "net.onnx"\nvariants.saved = "net.ort"\n'
    )
    result = pytester.runpytest("net.onnx", "-k", "test_accuracy", *QUICK, "--ort-dims=seq:3")
    result.assert_outcomes(passed=2)
    saved = cases(pytester.path)[1]
    assert saved["case"]["variant"]["precision"] == "saved"
    assert saved["accuracy"]["reference"].split()[0] == "net"
    native, made = (case["case"]["variant"]["extent"] for case in cases(pytester.path))
    assert (native["nodes"], native["parameters"], native["macs"]) == (3, 10 * 8 + 8 * 4, 3 * 8 * 4)
    assert (made["nodes"], made["macs"]) == (None, None)
    assert made["reason"]


def test_nothing_is_converted_from_it(pytester: pytest.Pytester, embedder: Path) -> None:
    result = pytester.runpytest(
        "net.ort", "-k", "test_latency", *QUICK, "--ort-precisions=fp16,simplified"
    )
    result.assert_outcomes(skipped=2)
    assert {case["status"] for case in cases(pytester.path)} == {"unsupported"}
    assert {case["failure"]["phase"] for case in cases(pytester.path)} == {"convert"}


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"no model at all", "is not in ONNX Runtime's own format"),
        (b"", "is empty (0 bytes)"),
        (b"\x1c\x00\x00\x00ORTM" + bytes(64), "broken.ort: "),
    ],
)
def test_a_broken_one_fails_alone_with_one_line(
    pytester: pytest.Pytester, embedder: Path, content: bytes, says: str
) -> None:
    (pytester.path / "broken.ort").write_bytes(content)
    result = pytester.runpytest("broken.ort", "net.ort", "-k", "test_latency", *QUICK)
    result.assert_outcomes(passed=1, failed=1)
    broken = cases(pytester.path)[0]
    assert broken["status"] == "error"
    assert says in broken["failure"]["message"]
    assert "\n" not in broken["failure"]["message"]
