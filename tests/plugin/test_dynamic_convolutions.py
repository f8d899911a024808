"""Two convolutions in dynamic eight bits, as people try it: the finding with its recipe."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper, save

from .conftest import QUICK as FAST

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
    assert "int8-dynamic: weight_type uint8, nodes_in_float 0" in text
    assert "signed: weight_type int8, nodes_in_float 0" in text
    lines = text.splitlines()
    at = lines.index("convs: precisions against fp32 on the same provider")
    speeds = {line.split()[0]: line for line in lines[at + 2 : at + 6]}
    assert all(
        "faster" in speeds[name] or "slower" in speeds[name] for name in found if name != "fp32"
    )
    # A loss is said in a sentence of its own, as plainly as in the table.
    for name in ("int8-dynamic", "signed"):
        if "slower" in speeds[name] and "unclear" not in speeds[name]:
            assert f"{name} on cpu is ×" in text
