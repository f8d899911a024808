"""Two convolutions in dynamic eight bits, as people try it: the finding with its recipe."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper, save

from pytest_ortbench.report.entries import shown_run
from pytest_ortbench.report.precisions import precision_lines
from tests.results_factory import make_case, make_result, make_run

from .conftest import QUICK as FAST

pytestmark = pytest.mark.live

SPEED = re.compile(r"(unclear:? \[?)?×\d")

QUICK = (*FAST, "--ort-no-results", "--ort-json=run.json")


@pytest.fixture
def convolutions(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("ORTBENCH_CACHE", str(pytester.path / "cache"))
    draw = np.random.default_rng(0)
    image = [1, 8, 28, 28]
    graph = helper.make_graph(
        [
            helper.make_node("Conv", ["x", "w0"], ["h"], name="c0", pads=[1, 1, 1, 1]),
            helper.make_node("Relu", ["h"], ["r"], name="relu"),
            helper.make_node("Conv", ["r", "w1"], ["y"], name="c1", pads=[1, 1, 1, 1]),
        ],
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, image)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, image)],
        [
            numpy_helper.from_array(draw.standard_normal((8, 8, 3, 3)).astype(np.float32), name)
            for name in ("w0", "w1")
        ],
    )
    opset = [helper.make_opsetid("", 13)]
    path = pytester.path / "convs.onnx"
    save(helper.make_model(graph, ir_version=8, opset_imports=opset), str(path))
    return path


def test_signed_and_unsigned_weights_are_two_rows_with_their_recipes(
    pytester: pytest.Pytester, convolutions: Path
) -> None:
    pytester.makepyprojecttoml(
        """
        [tool.ortbench.precisions.signed]
        base = "int8-dynamic"
        weight_type = "int8"
        """
    )
    result = pytester.runpytest(
        convolutions.name, "-k", "test_accuracy", *QUICK,
        "--ort-precisions=fp32,int8-dynamic,signed,int8-static",
    )  # fmt: skip
    result.assert_outcomes(passed=4)
    found: dict[str, Any] = {
        case["case"]["variant"]["precision"]: case
        for case in json.loads((pytester.path / "run.json").read_text())["cases"]
    }
    assert found["int8-dynamic"]["case"]["variant"]["recipe"]["weight_type"] == "uint8"
    assert found["signed"]["case"]["variant"]["recipe"]["weight_type"] == "int8"
    # No convolution is left in float, so what is timed is what the name says.
    assert {
        name: case["case"]["variant"]["recipe"]["nodes_in_float"]
        for name, case in found.items()
        if name != "fp32"
    } == {"int8-dynamic": "0", "signed": "0", "int8-static": "0"}
    text = result.stdout.str()
    notes = dict(re.findall(r"^\s*([\w-]+): weight_type (\w+), nodes_in_float 0", text, re.M))
    assert notes == {"int8-dynamic": "uint8", "signed": "int8"}
    lines = text.splitlines()
    at = lines.index(
        "convs: precisions against fp32 on the same provider, accuracy on random inputs"
    )
    heading, *rows = lines[at + 1 : at + 6]
    # Each has a speed, whatever a busy machine makes of it: tests/report/test_precisions.py has all
    # that can be said of a ratio.
    column = heading.index("speed")
    speeds = {row.split()[0]: row[column:] for row in rows}
    assert set(speeds) == set(found)
    assert speeds.pop("fp32").startswith("baseline")
    assert all(SPEED.match(cell) for cell in speeds.values()), speeds


def test_that_dynamic_is_slower_is_a_finding_as_plain_as_a_gain() -> None:
    """Durations as they were seen on a CPU with VNNI: 0.75 ms, 7.99 signed, 0.95 unsigned, 0.36."""
    seen_ms = {"fp32": 0.75, "signed": 7.99, "int8-dynamic": 0.95, "int8-static": 0.36}
    run = make_run(
        [
            make_result(case=make_case(precision=name), median_ns=round(ms * 1e6))
            for name, ms in seen_ms.items()
        ]
    )
    lines = precision_lines(shown_run(run), width=140)
    speeds = {line.split()[0]: line for line in lines[3:7]}
    assert "baseline" in speeds["fp32"]
    assert "×10.7 slower [" in speeds["signed"]
    assert "×1.27 slower [" in speeds["int8-dynamic"]
    assert "×2.08 faster [" in speeds["int8-static"]
    slower = [line for line in lines[7:] if " slower [" in line]
    assert [line.split()[:4] for line in slower] == [
        ["signed", "on", "cpu", "is"],
        ["int8-dynamic", "on", "cpu", "is"],
    ]
    assert all(line.endswith("] than fp32") for line in slower)
