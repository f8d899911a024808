"""A gate measures at the default sizes of the baseline's model, and says where they differ."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pytest_ortbench.core.gate import GateResult
from pytest_ortbench.gate.measuring.gate import Gate
from pytest_ortbench.gate.measuring.pair import Pair

from .conftest import QUICK as KEPT

pytestmark = pytest.mark.usefixtures("shared_machine", "drawn_numbers")

QUICK = (*KEPT, "--ort-no-results", "--ort-json=run.json")

SUMMED = {"input": "x", "fed": [1, 8], "baseline": [1, 8], "contender": [128, 8]}


def net(path: Path, *, summed: bool = False, rows: int | str = "n") -> None:
    """A product of [n, 8]; ``summed`` adds the sum over the first axis, which is then no batch."""
    from onnx import TensorProto, helper, numpy_helper, save

    nodes = [helper.make_node("MatMul", ["x", "w"], ["h"])]
    if summed:
        nodes += [
            helper.make_node("ReduceSum", ["h", "first"], ["sum"], keepdims=1),
            helper.make_node("Add", ["h", "sum"], ["y"]),
        ]
    else:
        nodes.append(helper.make_node("Relu", ["h"], ["y"]))
    weights = [
        numpy_helper.from_array(np.eye(8, dtype=np.float32), "w"),
        numpy_helper.from_array(np.array([0], np.int64), "first"),
    ]
    sides = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [rows, 8]) for name in "xy"]
    graph = helper.make_graph(nodes, "net", sides[:1], sides[1:], weights)
    path.parent.mkdir(parents=True, exist_ok=True)
    save(helper.make_model(graph, ir_version=8, opset_imports=[helper.make_opsetid("", 13)]), path)


@pytest.fixture
def pairs(monkeypatch: pytest.MonkeyPatch) -> list[Pair]:
    """What gates are given to measure; each verdict is ``same``."""
    given: list[Pair] = []

    def judge(self: Gate, pair: Pair, rules: object, *, baseline: str, **_: object) -> GateResult:
        given.append(pair)
        result = GateResult.undecided(pair.contender, baseline=baseline, before=pair.baseline)
        return replace(result, verdict="same")

    monkeypatch.setattr(Gate, "judge", judge)
    return given


@pytest.fixture
def suite(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        import pytest

        @pytest.mark.ortbench(models="new.onnx")
        def test_latency(ortbench):
            assert ortbench.latency().min > 0
        """
    )


def document(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / "run.json").read_text())
    return found


def fed(run: dict[str, Any]) -> list[list[int]]:
    return [spec["shape"] for result in run["cases"] for spec in result["case"]["inputs"]]


def against_revision(folder: Path) -> str:
    net(folder / "new.onnx")
    for words in (
        ("init", "-q"),
        ("add", "new.onnx"),
        ("-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "first"),
    ):
        subprocess.run(("git", *words), cwd=folder, check=True)
    return "git:HEAD"


def against_file(folder: Path) -> str:
    net(folder / "old.onnx")
    return "model:old.onnx"


@pytest.fixture
def changed(pytester: pytest.Pytester) -> str:
    """A file that a change gave another default, and what it is compared with."""
    net(pytester.path / "new.onnx", summed=True)
    return against_file(pytester.path)


@pytest.mark.needs("git")
@pytest.mark.usefixtures("suite")
@pytest.mark.parametrize("earlier", [against_revision, against_file])
def test_a_changed_model_does_not_choose_what_it_is_fed(
    earlier: Callable[[Path], str], pytester: pytest.Pytester, pairs: list[Pair]
) -> None:
    side = earlier(pytester.path)
    net(pytester.path / "new.onnx", summed=True)
    summary = "--ort-summary=summary.md"
    result = pytester.runpytest(*QUICK, f"--ort-against={side}", summary)
    result.assert_outcomes(passed=1)
    (pair,) = pairs
    shapes = [case.inputs[0].shape for case in (pair.baseline, pair.contender)]
    assert shapes == [(1, 8), (1, 8)]
    run = document(pytester.path)
    assert fed(run) == [[1, 8]]  # its row, too: what the gate says is about these numbers
    assert run["gate"][0]["default_sizes"] == [SUMMED]
    first = (pytester.path / "summary.md").read_text().partition("<details>")[0]
    for text in (result.stdout.str(), first):
        assert "[1, 8]" in text
        assert "[128, 8]" in text


@pytest.mark.usefixtures("suite")
def test_a_test_that_makes_its_model_is_fed_as_its_baseline(
    pytester: pytest.Pytester, pairs: list[Pair], changed: str
) -> None:
    pytester.makepyfile("def test_latency(ortbench): ortbench.measure('new.onnx')")
    result = pytester.runpytest(*QUICK, f"--ort-against={changed}")
    result.assert_outcomes(passed=1)
    run = document(pytester.path)
    assert (fed(run), run["gate"][0]["default_sizes"]) == ([[1, 8]], [SUMMED])


@pytest.mark.usefixtures("suite")
def test_sizes_that_the_user_names_are_fed_to_both(
    pytester: pytest.Pytester, pairs: list[Pair], changed: str
) -> None:
    result = pytester.runpytest(*QUICK, f"--ort-against={changed}", "--ort-dims=n:5")
    result.assert_outcomes(passed=1)
    (pair,) = pairs
    assert [case.inputs[0].shape for case in (pair.baseline, pair.contender)] == [(5, 8), (5, 8)]
    run = document(pytester.path)
    assert fed(run) == [[5, 8]]
    assert [verdict["default_sizes"] for verdict in run["gate"]] == [[]]


@pytest.mark.usefixtures("suite")
def test_a_stored_baseline_says_what_is_fed(pytester: pytest.Pytester) -> None:
    net(pytester.path / "new.onnx")
    kept = (*KEPT, "--ort-json=run.json")
    pytester.runpytest(*kept).assert_outcomes(passed=1)
    net(pytester.path / "new.onnx", summed=True)
    pytester.runpytest(*kept, "--ort-baseline=latest", "--ort-gate=model_size:200%")
    run = document(pytester.path)
    assert fed(run) == [[1, 8]]
    assert run["gate"][0]["default_sizes"] == [SUMMED]


@pytest.mark.usefixtures("suite")
def test_a_stored_baseline_of_other_sizes_is_not_judged_in_silence(
    pytester: pytest.Pytester,
) -> None:
    net(pytester.path / "new.onnx")
    kept = (*KEPT, "--ort-json=run.json", "--ort-gate=model_size:200%")
    first = [option for option in kept if "gate" not in option]
    pytester.runpytest(*first).assert_outcomes(passed=1)
    kept = (*kept, f"--ort-baseline={document(pytester.path)['run_id']}")
    net(pytester.path / "new.onnx", rows=128, summed=True)
    pytester.runpytest(*kept, "--ort-gate-strict").assert_outcomes(failed=1)
    pytester.runpytest(*kept).assert_outcomes(passed=1, warnings=1)
    (verdict,) = document(pytester.path)["gate"]
    assert (verdict["verdict"], verdict["cause"]) == ("incomparable", "workload")
    metrics = {metric["metric"]: metric["verdict"] for metric in verdict["metrics"]}
    assert metrics["peak_rss"] == "incomparable"
    assert metrics["model_size"] == "same"
