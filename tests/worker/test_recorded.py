"""Recorded outputs beside the inputs are the reference."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

from pytest_ortbench.core.case import InputSpec
from pytest_ortbench.core.model import TensorInfo, ValueHint
from pytest_ortbench.worker.accuracy import compare
from pytest_ortbench.worker.reference import recorded_outputs, write_expected, write_recorded
from tests.results_factory import make_case

from .graphs import serialised, value
from .sessions import cpu_session

FLOAT = TensorProto.FLOAT
OUTPUTS = (
    TensorInfo(name="double", type="tensor(float)", shape=("N",)),
    TensorInfo(name="half", type="tensor(float)", shape=("N",)),
)
X = np.arange(1, 5, dtype=np.float32)


def recorded(folder: Path, *outputs: np.ndarray) -> InputSpec:
    """A folder of ONNX test data, and the spec of its input."""
    folder.mkdir()
    (folder / "input_0.pb").write_bytes(numpy_helper.from_array(X, "x").SerializeToString())
    for number, output in enumerate(outputs):
        content = numpy_helper.from_array(output, "o").SerializeToString()
        (folder / f"output_{number}.pb").write_bytes(content)
    return InputSpec(
        name="x",
        type="tensor(float)",
        shape=(4,),
        hint=ValueHint(kind="normal"),
        path=str(folder / "input_0.pb"),
    )


def model() -> bytes:
    return serialised(
        [
            helper.make_node("Mul", ["x", "two"], ["double"], name="mul"),
            helper.make_node("Div", ["x", "two"], ["half"], name="div"),
        ],
        [value("x", FLOAT, ["N"])],
        [value("double", FLOAT, ["N"]), value("half", FLOAT, ["N"])],
        {"two": np.array(2, np.float32)},
    )


@pytest.mark.live
def test_outputs_are_compared_with_what_was_recorded(tmp_path: Path) -> None:
    spec = recorded(tmp_path / "test_data_set_0", X * 2, X * 0.55)
    files = recorded_outputs((spec,), OUTPUTS)
    path = tmp_path / "reference.npz"
    write_recorded(path, files, (spec,), ["double", "half"], seed=0)
    found = compare(cpu_session(model()), path)
    assert found.reference == "outputs recorded in test_data_set_0"
    assert found.samples == 1
    double, half = found.outputs
    assert double.exact
    # A tenth of 0.5 is off: 0.05 of 0.55.
    assert half.sqnr_db == pytest.approx(20 * np.log10(0.55 / 0.05), abs=0.01)


@pytest.mark.live
def test_outputs_are_compared_with_those_that_are_expected(tmp_path: Path) -> None:
    data = tmp_path / "data.npz"
    np.savez(data, x=X, half=X.astype(np.float64) * 0.55)
    given, wanted = (
        InputSpec(
            name=name,
            type=kind,
            shape=(4,),
            hint=ValueHint(kind="normal"),
            path=str(data),
            member=name,
        )
        for name, kind in (("x", "tensor(float)"), ("half", "tensor(double)"))
    )
    case = replace(make_case(), inputs=(given,), expected=(wanted,))
    path = tmp_path / "reference.npz"
    write_expected(path, case)
    found = compare(cpu_session(model()), path)
    assert found.reference == "outputs expected in data.npz"
    (half,) = found.outputs
    assert half.name == "half"
    assert half.sqnr_db == pytest.approx(20 * np.log10(0.55 / 0.05), abs=0.01)


def test_a_folder_without_all_outputs_is_no_reference(tmp_path: Path) -> None:
    spec = recorded(tmp_path / "set", X)
    assert recorded_outputs((spec,), OUTPUTS) == ()
    assert len(recorded_outputs((spec,), OUTPUTS[:1])) == 1
    assert recorded_outputs((spec,), ()) == ()


def test_drawn_inputs_have_no_recorded_outputs(tmp_path: Path) -> None:
    spec = recorded(tmp_path / "set", X, X)
    assert recorded_outputs((spec, replace(spec, name="y", path="")), OUTPUTS) == ()
    assert recorded_outputs((replace(spec, path=str(tmp_path / "x.npy")),), OUTPUTS) == ()


def test_sequences_are_not_read(tmp_path: Path) -> None:
    spec = recorded(tmp_path / "set", X)
    sequence = replace(OUTPUTS[0], type="seq(tensor(float))")
    assert recorded_outputs((spec,), (sequence,)) == ()
