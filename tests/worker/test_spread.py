"""A reference on the real CPU provider, run again in ways that don't change what is right."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from pytest_ortbench.convert.double import to_float64
from pytest_ortbench.core.accuracy import TRIALS, ReferenceSpread, SpreadTrial
from pytest_ortbench.core.case import InputSpec
from pytest_ortbench.core.model import ValueHint
from pytest_ortbench.worker.accuracy import compare, write_reference
from pytest_ortbench.worker.spread import moved, spread_of
from tests.worker.graphs import serialised, value, weights
from tests.worker.sessions import Spoiled, cpu_session

pytestmark = pytest.mark.live


def linear() -> bytes:
    """MatMul, a constant added, and Relu."""
    half = helper.make_node("Constant", [], ["half"], value_float=0.5)
    nodes = [
        half,
        helper.make_node("MatMul", ["x", "w"], ["a"]),
        helper.make_node("Add", ["a", "half"], ["b"]),
        helper.make_node("Relu", ["b"], ["y"]),
    ]
    return serialised(
        nodes,
        [value("x", TensorProto.FLOAT, ["N", 16])],
        [value("y", TensorProto.FLOAT, ["N", 8])],
        {"w": weights(16, 8)},
    )


def fragile() -> bytes:
    """The sine of a hundred million times its input: one unit in the last place is everything."""
    nodes = [helper.make_node("Mul", ["x", "k"], ["a"]), helper.make_node("Sin", ["a"], ["y"])]
    return serialised(
        nodes,
        [value("x", TensorProto.FLOAT, ["N", 16])],
        [value("y", TensorProto.FLOAT, ["N", 16])],
        {"k": np.float32(1e8)},
    )


def convolution() -> bytes:
    """One Conv, which the CPU provider does not have in float64."""
    return serialised(
        [helper.make_node("Conv", ["x", "w"], ["y"])],
        [value("x", TensorProto.FLOAT, ["N", 3, 8, 8])],
        [value("y", TensorProto.FLOAT, ["N", 4, 6, 6])],
        {"w": weights(4, 3, 3, 3)},
    )


def specs_of(session: Any) -> list[InputSpec]:
    return [
        InputSpec(
            name=declared.name,
            type=declared.type,
            shape=tuple(size if isinstance(size, int) else 4 for size in declared.shape),
            hint=ValueHint(kind="normal"),
        )
        for declared in session.get_inputs()
    ]


def spread(model: bytes, folder: Path, **how: Any) -> ReferenceSpread:
    file = folder / "m.onnx"
    file.write_bytes(model)
    session = cpu_session(model, optimise=False)
    path = folder / "reference.npz"
    write_reference(path, session=session, specs=specs_of(session), seed=0)
    return spread_of(
        path,
        lambda _: cpu_session(model, optimise=False),
        lambda: cpu_session(to_float64(file), optimise=False),
        **how,
    )


def by_name(found: ReferenceSpread) -> dict[str, SpreadTrial]:
    assert [trial.name for trial in found.trials] == list(TRIALS)
    return {trial.name: trial for trial in found.trials}


def test_sums_of_another_order_are_near(tmp_path: Path) -> None:
    trials = by_name(spread(linear(), tmp_path))
    assert trials["again"].outputs[0].exact
    for name in ("moved", "moved-back", "float64"):
        (output,) = trials[name].outputs
        assert trials[name].samples == 8
        assert output.sqnr_db is not None
        assert output.sqnr_db > 110


def test_a_fragile_output_differs_from_itself(tmp_path: Path) -> None:
    trials = by_name(spread(fragile(), tmp_path))
    assert trials["again"].outputs[0].exact
    for name in ("moved", "moved-back", "float64"):
        (output,) = trials[name].outputs
        assert output.sqnr_db is not None
        assert output.sqnr_db < 10


def test_what_has_no_float64_says_so(tmp_path: Path) -> None:
    trials = by_name(spread(convolution(), tmp_path))
    assert trials["float64"].outputs == ()
    assert "Conv" in trials["float64"].reason
    assert trials["moved"].outputs[0].sqnr_db is not None


def test_only_the_asked_magnitudes_count(tmp_path: Path) -> None:
    found = spread(linear(), tmp_path, magnitudes=(1.0,))
    assert {trial.samples for trial in found.trials} == {3}


def test_a_second_run_that_differs_is_seen(tmp_path: Path) -> None:
    model = linear()
    session = cpu_session(model, optimise=False)
    path = tmp_path / "reference.npz"
    write_reference(path, session=session, specs=specs_of(session), seed=0)
    drifting = Spoiled(session, lambda call, outputs: [outputs[0] * (1 + 0.01 * call)])

    def fails() -> Any:
        raise ValueError("no float64 here")

    trials = by_name(spread_of(path, lambda _: drifting, fails))
    again = trials["again"].outputs[0].sqnr_db
    assert again is not None
    assert again < 30
    assert trials["float64"].reason == "no float64 here"


def test_a_comparison_ends_with_its_budget(tmp_path: Path) -> None:
    session = cpu_session(linear(), optimise=False)
    path = tmp_path / "reference.npz"
    write_reference(path, session=session, specs=specs_of(session), seed=0)
    assert compare(session, path, budget_s=0.0).samples == 1


def test_inputs_move_by_one_unit_and_whole_numbers_stay() -> None:
    x = np.array([0.1, 3.7, -2.5, 4.0, 0.0, np.nan, np.inf], dtype=np.float32)
    feeds: dict[str, object] = {
        "x": x,
        "ids": np.array([1, 2]),
        "half": x.astype(np.float16),
        "seq": [x],
    }
    there, back = moved(feeds, ways=1), moved(feeds, ways=-1)
    up, down = np.nextafter(x, np.float32(np.inf)), np.nextafter(x, np.float32(-np.inf))
    one, other = np.asarray(there["x"]), np.asarray(back["x"])
    assert one.dtype == np.float32
    for index in range(3):
        assert {one[index], other[index]} == {up[index], down[index]}
    assert np.array_equal(one[3:], x[3:], equal_nan=True)
    assert there["ids"] is feeds["ids"]
    half = np.asarray(there["half"])
    assert half.dtype == np.float16
    assert half[0] != x.astype(np.float16)[0]
    assert there["seq"] is feeds["seq"]


def test_a_widened_model_is_float64_throughout(tmp_path: Path) -> None:
    file = tmp_path / "m.onnx"
    file.write_bytes(linear())
    wide = onnx.load_from_string(to_float64(file))
    kinds = {tensor.data_type for tensor in wide.graph.initializer}
    assert kinds == {TensorProto.DOUBLE}
    onnx.checker.check_model(wide)
