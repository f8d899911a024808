"""Models whose sizes are not those of their data: one bad row each, and the run goes on."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path

import onnx
import pytest

from pytest_ortbench.cli.application import run
from tests.models.false_claims import FALSE_CLAIMS
from tests.models.graphs import model, node, relu, value

from .conftest import QUICK

ModelFile = Callable[..., Path]


def _measured_beside(
    pytester: pytest.Pytester, model_file: ModelFile, bad: Mapping[str, onnx.ModelProto]
) -> dict[str, dict[str, object]]:
    """Results by model of a run of all of them and a good one, from a document that can be read."""
    model_file("good.onnx")
    (pytester.path / "w.bin").write_bytes(bytes(64))
    for name, proto in bad.items():
        (pytester.path / f"{name}.onnx").write_bytes(proto.SerializeToString())
    files = [*(f"{name}.onnx" for name in bad), "good.onnx"]
    result = pytester.runpytest(
        *QUICK, "--ort-no-results", "--ort-json=run.json", "-k", "latency", *files
    )
    assert "INTERNALERROR" not in result.stdout.str()
    assert "Traceback" not in result.stdout.str()
    assert run(["show", "run.json"]) == 0
    cases = json.loads(Path("run.json").read_bytes())["cases"]
    found = {case["case"]["model"]["name"]: case for case in cases}
    assert list(found) == [*bad, "good"]
    assert found["good"]["status"] == "measured"
    return found


def test_false_claims_cost_a_row_each(pytester: pytest.Pytester, model_file: ModelFile) -> None:
    bad = {name: claim.build() for name, claim in FALSE_CLAIMS.items()}
    found = _measured_beside(pytester, model_file, bad)
    for name, claim in FALSE_CLAIMS.items():
        failure = found[name]["failure"]
        assert isinstance(failure, dict)
        assert found[name]["status"] == failure["kind"] == "error"
        assert claim.what in failure["message"]
        assert failure["phase"] == "inputs"


def test_inputs_beyond_any_memory_cost_a_row_each(
    pytester: pytest.Pytester, model_file: ModelFile
) -> None:
    bad = {
        "one-axis": relu([2**62]),
        "twenty-axes": relu([2**62] * 20),
        "mixed": relu([2**62, "n", 2**62]),
        "more-than-there-is": relu([10**12]),
        "thousand-axes": relu([1] * 1000),
        "two-inputs": model(
            [node("Add", ["x", "z"], ["y"])],
            [value("x", [1, 4]), value("z", [2**40, 2**40, 2**40])],
            [value("y", None)],
        ),
    }
    found = _measured_beside(pytester, model_file, bad)
    for name in bad:
        assert found[name]["status"] == "unsupported", name
