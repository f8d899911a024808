"""What could not be judged, and what is not finite, as a user of the shipped suites meets it."""

from __future__ import annotations

import json
import re
import xml.etree.ElementTree as ET
from pathlib import Path

import numpy as np
import pytest
from onnx import NodeProto, TensorProto, helper, numpy_helper, save

from tests.plugin.conftest import QUICK


def write(path: Path, nodes: list[NodeProto], **weights: object) -> None:
    """A model from x [N, 8] to y [N, 8]."""
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["N", 8])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["N", 8])],
        [
            numpy_helper.from_array(np.asarray(value, dtype=np.float32), name)
            for name, value in weights.items()
        ],
    )
    opset = [helper.make_opsetid("", 13)]
    save(helper.make_model(graph, ir_version=8, opset_imports=opset), path)


def nodes(*written: tuple[str, list[str], str]) -> list[NodeProto]:
    return [helper.make_node(op, inputs, [output]) for op, inputs, output in written]


@pytest.fixture(name="models")
def _models(pytester: pytest.Pytester) -> list[str]:
    """NaN in every run, random numbers, and one that is fine."""
    folder = pytester.path
    matrix = np.random.default_rng(0).standard_normal((8, 8))
    broken = matrix.copy()
    broken[1, 2], broken[3, 4] = np.nan, np.inf
    product = nodes(("MatMul", ["x", "w"], "y"))
    write(folder / "broken.onnx", product, w=broken)
    write(folder / "fine.onnx", product, w=matrix)
    noise = nodes(("RandomNormalLike", ["x"], "r"), ("Add", ["x", "r"], "y"))
    write(folder / "random.onnx", noise)
    return ["broken.onnx", "fine.onnx", "random.onnx"]


def outcomes(report: Path) -> dict[str, tuple[str, dict[str, str]]]:
    """Outcome and properties of every test of a JUnit report."""
    found = {}
    for item in ET.parse(report).getroot().iter("testcase"):
        kinds = [child.tag for child in item if child.tag in ("failure", "error", "skipped")]
        properties = {one.get("name", ""): one.get("value", "") for one in item.iter("property")}
        found[str(item.get("name"))] = (kinds[0] if kinds else "passed", properties)
    return found


def test_nan_fails_and_what_is_unknown_is_counted(
    pytester: pytest.Pytester, models: list[str]
) -> None:
    result = pytester.runpytest(
        *models,
        *QUICK,
        "-k",
        "accuracy or latency",
        "--ort-limits=accuracy_finite >= 1",
        "--ort-json=run.json",
        "--junitxml=junit.xml",
    )
    tests = outcomes(pytester.path / "junit.xml")
    kinds = {
        name: {tests[f"test_{test}[{name}/native/cpu/b1]"][0] for test in ("accuracy", "latency")}
        for name in ("broken", "fine", "random")
    }
    assert kinds["fine"] == {"passed"}
    # One of the tests carries the limit of its case: broken, and not judged.
    assert kinds["broken"] == {"failure"}
    assert kinds["random"] == {"skipped", "failure"}

    run = json.loads((pytester.path / "run.json").read_text(encoding="utf-8"))
    flags = {
        case["case"]["model"]["name"]: {flag["name"]: flag["detail"] for flag in case["flags"]}
        for case in run["cases"]
    }
    assert flags["broken"]["NONFINITE"].split()[:2] == ["2", "values"]
    assert "UNJUDGED" not in flags["broken"]
    assert flags["random"]["UNJUDGED"].startswith("accuracy: ")
    assert flags["random"]["UNJUDGED"].endswith(" (RandomNormalLike)")
    assert not {"NONFINITE", "UNJUDGED", "INACCURATE"} & set(flags["fine"])
    _, properties = tests["test_latency[random/native/cpu/b1]"]
    unjudged = properties["ortbench.unjudged"]
    assert unjudged == flags["random"]["UNJUDGED"]

    text = result.stdout.str()
    rows = {line.split()[0]: line for line in text.splitlines() if "native/cpu/b1  " in line}
    assert rows
    assert re.search(r"\b1 of 3 cases .* random/native/cpu/b1: ", text)
    assert dict(re.findall(r"(\w+): .*: native/cpu/b1: ([A-Z]+)", text)) == {
        "broken": "NONFINITE",
        "random": "UNJUDGED",
    }


def test_nan_that_was_fed_is_named_as_the_cause(
    pytester: pytest.Pytester, models: list[str]
) -> None:
    x = np.ones((1, 8), dtype=np.float32)
    x[0, 3] = np.nan
    np.savez(pytester.path / "x.npz", x=x)
    result = pytester.runpytest(
        models[1], *QUICK, "-k", "accuracy", "--ort-inputs=x.npz", "--ort-json=run.json"
    )
    result.assert_outcomes(failed=1, deselected=5)
    run = json.loads((pytester.path / "run.json").read_text(encoding="utf-8"))
    flags = {flag["name"]: flag["detail"] for flag in run["cases"][0]["flags"]}
    assert re.findall(r"\d+", flags["NONFINITE"]) == ["8", "1"]
    assert re.findall(r"\d+", flags["NAN-INPUTS"]) == ["1"]
