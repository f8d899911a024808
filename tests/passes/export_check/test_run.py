"""Exports of a callable, right and wrong, through real workers."""

from __future__ import annotations

import runpy
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pytest_ortbench.core.accuracy import ReferenceSpread
from pytest_ortbench.core.case import Case
from pytest_ortbench.core.errors import WorkerError
from pytest_ortbench.core.model import TensorInfo
from pytest_ortbench.core.outcome import CaseResult, Failure
from pytest_ortbench.core.source import Source
from pytest_ortbench.execution.means import Means
from pytest_ortbench.launch.launcher import ProcessLauncher
from pytest_ortbench.passes.export_check.facts import ExportCheck
from pytest_ortbench.passes.export_check.numbers.faults import export_faults
from pytest_ortbench.passes.export_check.numbers.verdict import judge_export
from pytest_ortbench.passes.export_check.questions import FindFirstDifference
from pytest_ortbench.passes.export_check.run import measure
from pytest_ortbench.planning.feeds import resolve_inputs
from pytest_ortbench.schema.model_questions import MeasureSpread
from tests.launch.cases import case_of
from tests.results_factory import make_result

_NETS = """
import numpy as np
from onnx import TensorProto, helper, numpy_helper

draw = np.random.default_rng(3)
WEIGHT = draw.normal(size=(8, 8)).astype("float32")
VARIANCE = draw.uniform(0.5, 1.5, 8).astype("float32")


def net(feeds):
    states = feeds["x"].astype("float64") / np.sqrt(VARIANCE + 1e-5)
    return [(states @ WEIGHT).astype("float32"), states.astype("float32")]


def exported(epsilon=1e-5, names=("scores", "states"), frozen=0):
    zeros, ones = np.zeros(8, "float32"), np.ones(8, "float32")
    values = {"scale": ones, "bias": zeros, "mean": zeros, "var": VARIANCE, "w": WEIGHT}
    nodes = [helper.make_node("BatchNormalization", ["x", *list(values)[:4]], ["n"],
                              epsilon=epsilon)]
    if frozen:
        values["shape"] = np.array([frozen, 8])
        nodes.append(helper.make_node("Reshape", ["n", "shape"], ["r"]))
    last = nodes[-1].output[0]
    nodes += [helper.make_node("MatMul", [last, "w"], [names[0]]),
              helper.make_node("Identity", [last], [names[1]])]
    info = [helper.make_tensor_value_info(name, TensorProto.FLOAT, ["batch", 8])
            for name in ("x", "scores", "states")]
    weights = [numpy_helper.from_array(value, name) for name, value in values.items()]
    graph = helper.make_graph(nodes, "net", info[:1], info[1:], weights)
    opset = helper.make_opsetid("", 17)
    made = helper.make_model(graph, opset_imports=[opset], ir_version=9)
    return net, {"x": draw.normal(size=(4, 8)).astype("float32")}, {
        "onnx": made.SerializeToString()}


def right():
    return exported()

def epsilon():
    return exported(epsilon=1e-3)

def frozen():
    return exported(frozen=4)

def swapped():
    return exported(names=("states", "scores"))
"""


def exported(folder: Path, function: str) -> Case:
    """A case of an export, as planning makes it."""
    file = folder / "nets.py"
    file.write_text(_NETS, encoding="utf-8")
    made = runpy.run_path(str(file))[function]()[2]["onnx"]
    (folder / "net.onnx").write_bytes(made)
    case = case_of(folder / "net.onnx")
    x, scores, states = (
        TensorInfo(name=name, type="tensor(float)", shape=("batch", 8))
        for name in ("x", "scores", "states")
    )
    source = Source(path=str(file), function=function, framework="python")
    model = replace(case.model, inputs=(x,), outputs=(scores, states), exported_from=source)
    return replace(case, model=model, inputs=resolve_inputs(model, batch=None, dims={}))


def checked(case: Case, launcher: ProcessLauncher) -> ExportCheck:
    return measure(make_result(case=case), Means(launcher=launcher))


@pytest.mark.parametrize(
    ("function", "faults"),
    [
        ("right", []),
        ("epsilon", [("different", ("scores", "states"))]),
        ("frozen", [("frozen", "batch")]),
        ("swapped", [("swapped", ("scores",)), ("swapped", ("states",))]),
    ],
)
def test_wrong_exports_are_named_and_the_right_one_is_not_accused(
    launcher: ProcessLauncher,
    tmp_path: Path,
    function: str,
    faults: list[tuple[str, str | tuple[str, ...]]],
) -> None:
    case = exported(tmp_path, function)
    check = checked(case, launcher)
    assert check.reason == ""
    assert [
        (fault.kind, fault.dimension or fault.outputs) for fault in export_faults(check, case.model)
    ] == faults
    assert {choice.sizes["batch"] for choice in check.choices} >= {1, 2, 3}


def test_a_model_is_checked_once_for_all_its_cases(tmp_path: Path) -> None:
    case = exported(tmp_path, "right")
    known = CaseResult(case=case, status="measured", export_check=ExportCheck(framework="python"))
    other = replace(case, batch=8)

    nobody: Any = object()  # whoever starts something fails
    means = Means(launcher=nobody, results=(known,))
    assert measure(make_result(case=other), means) is known.export_check


_KILLED = "it was killed"


class Dying:
    """A launcher whose workers die where the file is run again, or its nodes are looked at."""

    def __init__(self, launcher: ProcessLauncher) -> None:
        self._launcher = launcher

    def open(self, *asked: Any, **named: Any) -> Any:
        return self._launcher.open(*asked, **named)

    def ask(self, question: Any, **named: Any) -> Any:
        if isinstance(question, MeasureSpread | FindFirstDifference):
            raise WorkerError(Failure(kind="crash", phase="accuracy", message=_KILLED))
        return self._launcher.ask(question, **named)


def test_a_check_stands_where_the_file_can_not_be_run_again(
    launcher: ProcessLauncher, tmp_path: Path
) -> None:
    case = exported(tmp_path, "epsilon")
    dying: Any = Dying(launcher)
    check = measure(make_result(case=case), Means(launcher=dying))
    assert check.spread == ReferenceSpread(reason=_KILLED)
    assert check.samples > 8
    assert export_faults(check, case.model) == ()
    judgement = judge_export(replace(make_result(case=case), export_check=check))
    assert judgement is not None
    assert judgement.is_unjudged
