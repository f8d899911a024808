"""Two real sessions as the two sides of a gate, whichever is asked first."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

from pytest_ortbench.core.case import InputSpec
from pytest_ortbench.core.model import ValueHint
from pytest_ortbench.core.outcome import Accuracy
from pytest_ortbench.worker.sides import compare_side, write_side
from tests.results_factory import make_case
from tests.worker.sessions import cpu_session

pytestmark = pytest.mark.live

SPEC = InputSpec(name="x", type="tensor(float)", shape=(4, 8), hint=ValueHint(kind="normal"))
WEIGHT = np.random.default_rng(0).standard_normal((8, 3)).astype(np.float32)
BOTH_WAYS = pytest.mark.parametrize("baseline_first", [True, False])


def model(
    outputs: Sequence[str] = ("y",),
    *,
    factor: float = 1.0,
    shift: float = 0.0,
    kind: int = TensorProto.FLOAT,
    extra: Sequence[Any] = (),
) -> bytes:
    """Products of x with a weight, one for each name: the i-th is i + 1 times the first."""
    nodes = []
    weights = [numpy_helper.from_array(np.float32(shift).reshape(1), "shift")]
    for number, name in enumerate(outputs):
        weights.append(
            numpy_helper.from_array(WEIGHT * np.float32(factor * (number + 1)), f"w{number}")
        )
        nodes += [
            helper.make_node("MatMul", ["x", f"w{number}"], [f"p{number}"]),
            helper.make_node("Add", [f"p{number}", "shift"], [f"s{number}"]),
            helper.make_node("Cast", [f"s{number}"], [name], to=kind),
        ]
    nodes += extra
    graph = helper.make_graph(
        nodes,
        "products",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [4, 8])],
        [helper.make_tensor_value_info(name, kind, None) for name in outputs],
        weights,
    )
    opsets = [helper.make_opsetid("", 17)]
    return helper.make_model(graph, ir_version=8, opset_imports=opsets).SerializeToString()


def compared(baseline: bytes, contender: bytes, folder: Path, *, baseline_first: bool) -> Accuracy:
    first, second = cpu_session(baseline), cpu_session(contender)
    if not baseline_first:
        first, second = second, first
    path = folder / "outputs.npz"
    written = write_side(first, make_case(), path, inputs=[SPEC], magnitudes=(1.0, 10.0))
    assert written.types == {one.name: one.type for one in first.get_outputs()}
    found = compare_side(second, path, is_baseline=not baseline_first)
    assert found.types == {one.name: one.type for one in second.get_outputs()}
    return found.accuracy


@BOTH_WAYS
def test_the_same_model_is_exact(tmp_path: Path, baseline_first: bool):
    result = compared(model(), model(), tmp_path, baseline_first=baseline_first)
    assert (result.reason, result.samples) == ("", 8)
    assert result.outputs[0].exact
    assert result.outputs[0].compared == 8 * 4 * 3


@BOTH_WAYS
@pytest.mark.parametrize(
    ("change", "ratio"),
    [({"factor": 100.0}, -39.9), ({"factor": 1.0001}, 80.0), ({"factor": 0.0}, 0.0)],
)
def test_the_baseline_is_what_is_right_whoever_is_asked_first(
    tmp_path: Path, baseline_first: bool, change: dict[str, float], ratio: float
):
    result = compared(model(), model(**change), tmp_path, baseline_first=baseline_first)
    assert result.outputs[0].sqnr_db == pytest.approx(ratio, abs=0.1)


@BOTH_WAYS
def test_a_constant_on_top_is_seen(tmp_path: Path, baseline_first: bool):
    result = compared(model(), model(shift=1.0), tmp_path, baseline_first=baseline_first)
    assert result.outputs[0].sqnr_db < 30


@BOTH_WAYS
def test_swapped_outputs_are_compared_in_order(tmp_path: Path, baseline_first: bool):
    result = compared(model(["a", "b"]), model(["b", "a"]), tmp_path, baseline_first=baseline_first)
    assert [one.name for one in result.outputs] == ["a", "b"]
    assert all(one.exact for one in result.outputs)  # only their names were swapped


@BOTH_WAYS
def test_a_further_output_leaves_the_others_comparable(tmp_path: Path, baseline_first: bool):
    result = compared(model(["y"]), model(["z", "y"]), tmp_path, baseline_first=baseline_first)
    assert [one.name for one in result.outputs] == ["y"]
    assert result.outputs[0].sqnr_db == pytest.approx(0.0, abs=0.1)


@BOTH_WAYS
def test_no_common_name_is_a_reason(tmp_path: Path, baseline_first: bool):
    result = compared(model(["y"]), model(["a", "b"]), tmp_path, baseline_first=baseline_first)
    assert result.outputs == ()
    assert re.search(r"y of .* a, b of ", result.reason)


@BOTH_WAYS
def test_nan_is_counted_on_each_side(tmp_path: Path, baseline_first: bool):
    nan = model(factor=float("nan"))
    one = compared(model(), nan, tmp_path, baseline_first=baseline_first).outputs[0]
    assert not one.finite
    both = compared(nan, nan, tmp_path, baseline_first=baseline_first).outputs[0]
    assert both.nonfinite
    assert both.reference_nonfinite
    assert both.compared == 0


@BOTH_WAYS
@pytest.mark.parametrize("kind", [TensorProto.INT64, TensorProto.STRING])
def test_whole_values_are_compared_one_by_one(tmp_path: Path, baseline_first: bool, kind: int):
    other = model(kind=kind, factor=2.0)
    one = compared(model(kind=kind), other, tmp_path, baseline_first=baseline_first).outputs[0]
    assert one.rows == 8 * 4 * 3
    assert one.agree < one.rows


@BOTH_WAYS
def test_another_type_counts_as_zeros(tmp_path: Path, baseline_first: bool):
    other = model(kind=TensorProto.INT64)
    one = compared(model(), other, tmp_path, baseline_first=baseline_first).outputs[0]
    assert one.sqnr_db == pytest.approx(0.0)
