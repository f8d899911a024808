"""Inputs and outputs that stay on the provider's device; here, that of the CPU."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper

from pytest_ortbench.core.case import InputSpec, Provider
from pytest_ortbench.core.model import ValueHint
from pytest_ortbench.schema.case_questions import CheckOutputs
from pytest_ortbench.worker.binding import bind
from pytest_ortbench.worker.calling import binding_of, call_of, outputs_of
from pytest_ortbench.worker.inputs import make_feeds
from pytest_ortbench.worker.measured import MeasuredCase
from tests.launch.cases import case_of, relu
from tests.worker.asking import ask
from tests.worker.graphs import labels, serialised, shapes, value
from tests.worker.sessions import CPU, cpu_session

pytestmark = pytest.mark.live


def test_a_scalar_input_stays_a_scalar() -> None:
    """A sampling rate, say: ``sr`` of rank 0."""
    inputs = [value("x", TensorProto.FLOAT, [3, 2]), value("sr", TensorProto.FLOAT, [])]
    scale = helper.make_node("Mul", ["x", "sr"], ["y"])
    session = cpu_session(serialised([scale], inputs, [value("y", TensorProto.FLOAT, [3, 2])]))
    specs = [
        InputSpec(name=name, type="tensor(float)", shape=shape, hint=ValueHint(kind="normal"))
        for name, shape in (("x", (3, 2)), ("sr", ()))
    ]
    feeds = make_feeds(specs, seed=1)
    # One that is not contiguous keeps its shape, too.
    x = np.arange(6, dtype=np.float32).reshape(2, 3).T
    binding = bind(session, {**feeds, "x": x}, Provider(alias="cpu", name=CPU))
    session.run_with_iobinding(binding)
    [found] = binding.copy_outputs_to_cpu()
    np.testing.assert_allclose(found, x * feeds["sr"])
    assert np.shape(feeds["sr"]) == ()


def test_what_was_bound_comes_back_from_where_it_is() -> None:
    session = cpu_session(shapes())
    case = replace(case_of(Path("none.onnx")), io="device")
    x = np.random.default_rng(3).standard_normal((2, 3, 4, 4)).astype(np.float32)
    [found] = outputs_of(session, {}, binding_of(case, session, {"x": x}), nullcontext)
    [expected] = session.run(None, {"x": x})
    np.testing.assert_array_equal(found, expected)


def test_outputs_of_text_are_looked_at_too(tmp_path: Path) -> None:
    """With bound ones, bringing them to the host ends the process."""
    (tmp_path / "m.onnx").write_bytes(labels())
    x = InputSpec(name="x", type="tensor(float)", shape=(2, 16), hint=ValueHint(kind="normal"))
    case = replace(case_of(tmp_path / "m.onnx", inputs=(x,)), io="device")
    measured = MeasuredCase(case, lambda _: None)
    measured.open()
    plain = MeasuredCase(replace(case, io="end-to-end"), lambda _: None)
    plain.open()
    assert ask(measured, CheckOutputs(run="first")) == ask(plain, CheckOutputs(run="first"))


def test_a_bound_case_is_looked_at_in_what_it_has_bound(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else host arrays would take memory of the device that the case never takes."""
    case = replace(case_of(relu(tmp_path / "m.onnx")), io="device")
    measured = MeasuredCase(case, lambda _: None)
    measured.open()
    plain = MeasuredCase(replace(case, io="end-to-end"), lambda _: None)
    plain.open()
    expected = ask(plain, CheckOutputs(run="first"))
    monkeypatch.setattr(measured.live(), "run", None)
    assert ask(measured, CheckOutputs(run="first")) == expected


class Noted:
    """A session and its binding that note what is done with them."""

    def __init__(self) -> None:
        self.done: list[str] = []

    def run_with_iobinding(self, _: object) -> None:
        self.done.append("run")

    def synchronize_outputs(self) -> None:
        self.done.append("synchronise")


@pytest.mark.parametrize(
    ("name", "concurrency", "done"),
    [
        ("CUDAExecutionProvider", 1, ["run", "synchronise"]),
        ("CUDAExecutionProvider", 2, ["run"]),
        ("TensorrtExecutionProvider", 2, ["run"]),
        ("DmlExecutionProvider", 2, ["run", "synchronise"]),
    ],
)
def test_of_several_callers_none_waits_for_the_whole_device(
    name: str, concurrency: int, done: list[str]
) -> None:
    provider = Provider(alias="x", name=name)
    case = replace(
        case_of(Path("none.onnx")), provider=provider, io="device", concurrency=concurrency
    )
    noted: Any = Noted()
    call_of(case, noted, {}, noted)()
    assert noted.done == done


class Binding:
    """Notes where each output is bound."""

    def __init__(self) -> None:
        self.outputs: dict[str, tuple[str, int]] = {}

    def bind_output(self, name: str, device: str, index: int) -> None:
        self.outputs[name] = (device, index)


class WithTexts:
    """A session of which one output is made on the host."""

    def __init__(self) -> None:
        self.bound = Binding()

    def io_binding(self) -> Binding:
        return self.bound

    def get_inputs(self) -> list[SimpleNamespace]:
        return []

    def get_outputs(self) -> list[SimpleNamespace]:
        types = {"y": "tensor(float)", "label": "tensor(string)", "all": "seq(map(int64,float))"}
        return [SimpleNamespace(name=name, type=kind) for name, kind in types.items()]


def test_only_numbers_are_bound_on_the_device() -> None:
    session: Any = WithTexts()
    cuda = Provider(alias="cuda", name="CUDAExecutionProvider", options={"device_id": "1"})
    bind(session, {}, cuda)
    assert session.bound.outputs == {"y": ("cuda", 1), "label": ("cpu", 0), "all": ("cpu", 0)}
