"""Cases whose provider replays a recorded graph: what is looked at is what was computed.

Only GPUs record graphs. Here a session of the CPU stands in for theirs, which after its first
inference returns nothing from ``run`` and writes into what was bound at that inference.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import helper

from pytest_ortbench.core.case import Case, Provider
from pytest_ortbench.core.dataset import Dataset
from pytest_ortbench.core.graph_capture import without_capture
from pytest_ortbench.passes.profile.worker import operators as operator_profile
from pytest_ortbench.passes.startup import worker as start_up
from pytest_ortbench.passes.startup.facts import FurtherShape, ShapeStart
from pytest_ortbench.passes.startup.questions import StartUp
from pytest_ortbench.passes.task.questions import ScoreTask
from pytest_ortbench.schema.case_questions import (
    CheckOutputs,
    CompareOutputs,
    ProfilePlacement,
    TimeBlock,
)
from pytest_ortbench.selfcheck.questions import Replay
from pytest_ortbench.selfcheck.worker import loops
from pytest_ortbench.worker import measured, profiling, session
from pytest_ortbench.worker.accuracy import compare, write_reference
from pytest_ortbench.worker.measured import MeasuredCase
from pytest_ortbench.worker.state import WorkerState
from tests.launch.cases import CPU, case_of, relu, save, x_input
from tests.worker.asking import ask

from .sessions import Spoiled, cpu_session

pytestmark = pytest.mark.live

RECORDING = replace(CPU, options={"enable_cuda_graph": "1"})


class Replaying:
    """A session that records its first inference and replays it."""

    def __init__(self, made: Any) -> None:
        self._made = made
        self._recorded: Any = None

    def __getattr__(self, name: str) -> Any:
        return getattr(self._made, name)

    def run(self, names: Any, feeds: Any) -> list[Any]:
        if self._recorded is not None:
            return []
        self._recorded = feeds
        found: list[Any] = self._made.run(names, feeds)
        return found

    def run_with_iobinding(self, binding: Any) -> None:
        if self._recorded is None:
            self._recorded = binding
        self._made.run_with_iobinding(self._recorded)


@pytest.fixture
def recorded(monkeypatch: pytest.MonkeyPatch) -> list[Replaying]:
    """The sessions that recorded a graph."""
    replaying: list[Replaying] = []

    def create(model: str, provider: Provider, options: Any) -> tuple[Any, int]:
        made, took_ns = session.create(model, replace(provider, options={}), options)
        if not provider.options:
            return made, took_ns
        replaying.append(Replaying(made))
        return replaying[-1], took_ns

    for module in (measured, profiling, operator_profile, loops):
        monkeypatch.setattr(module, "create", create)
    return replaying


def captured(path: Path) -> Case:
    return replace(case_of(path), provider=RECORDING, io="device")


def test_the_switches_are_taken_out_and_nothing_else() -> None:
    switches = {
        "enable_cuda_graph": "1",
        "trt_cuda_graph_enable": "1",
        "nv_cuda_graph_enable": "1",
        "enable_hip_graph": "0",
        "ep.webgpuexecutionprovider.enableGraphCapture": "1",
    }
    both = replace(CPU, options={**switches, "device_id": "1"})
    assert without_capture(both).options == {"device_id": "1"}
    assert without_capture(CPU) is CPU


def test_checks_see_the_outputs_of_replays(tmp_path: Path, recorded: list[Replaying]) -> None:
    plain = MeasuredCase(case_of(relu(tmp_path / "m.onnx")), lambda _: None)
    plain.open()
    expected = ask(plain, CheckOutputs(run="first"))
    assert expected.norm
    measured = MeasuredCase(captured(tmp_path / "m.onnx"), lambda _: None)
    measured.open()
    first = ask(measured, CheckOutputs(run="first"))
    assert len(ask(measured, TimeBlock(iterations=10)).durations_ns) == 10
    assert first == expected
    assert ask(measured, CheckOutputs(run="first")) == expected
    assert len(recorded) == 1


def test_placement_and_accuracy_are_of_a_session_that_records_nothing(
    tmp_path: Path, recorded: list[Replaying]
) -> None:
    case = captured(relu(tmp_path / "m.onnx"))
    reference = cpu_session((tmp_path / "m.onnx").read_bytes())
    write_reference(tmp_path / "r.npz", session=reference, specs=case.inputs, seed=case.seed)
    measured = MeasuredCase(case, lambda _: None)
    measured.open()
    assert ask(measured, ProfilePlacement()).executed == {CPU.name: 1}
    accuracy = ask(measured, CompareOutputs(reference=str(tmp_path / "r.npz")))
    # Inputs of several magnitudes, not one and the same.
    assert (accuracy.reason, accuracy.samples, len(accuracy.magnitudes)) == ("", 8, 3)
    assert [output.exact for output in accuracy.outputs] == [True]
    assert len(recorded) == 1


def test_operators_are_those_of_a_session_that_records_nothing(
    tmp_path: Path, recorded: list[Replaying]
) -> None:
    setting = operator_profile._Setting(
        case=captured(relu(tmp_path / "m.onnx")),
        feeds={"x": np.ones((2, 4), np.float32)},
        threads=1,
        folder=tmp_path,
    )
    profile = setting.profiled(setting.case.session, runs=3)
    assert [event.op for event in profile.events] == ["Relu"] * 3
    assert recorded == []


def test_labelled_samples_are_not_the_one_that_was_recorded(
    tmp_path: Path, recorded: list[Replaying]
) -> None:
    path = save(tmp_path / "m.onnx", [helper.make_node("Identity", ["x"], ["y"])])
    samples = np.float32([[9, 1, 0, 0], [1, 8, 0, 0], [0, 1, 7, 0], [2, 3, 5, 0]])
    np.savez(tmp_path / "data.npz", x=samples, labels=np.int64([0, 1, 2, 1]))
    measured = MeasuredCase(replace(captured(path), batch=2), lambda _: None)
    measured.open()
    found = ask(measured, ScoreTask(dataset=Dataset(path=str(tmp_path / "data.npz"))))
    assert (found.samples, found.reason) == (4, "")
    assert found.score_sum == 3.0
    assert len(recorded) == 1


def answers_to_other_values(path: Path) -> tuple[float, ...]:
    """What a replay answers to 0 … 7 where its graph was recorded with ones."""
    measured = MeasuredCase(captured(relu(path)), lambda _: None)
    measured.open()
    question = Replay(recorded=(1.0,) * 8, given=tuple(map(float, range(8))))
    return ask(measured, question).answers


def test_a_replay_answers_the_values_that_lie_where_it_was_recorded(
    tmp_path: Path, recorded: list[Replaying]
) -> None:
    assert answers_to_other_values(tmp_path / "m.onnx") == tuple(range(8))
    assert len(recorded) == 2


def test_a_replay_that_computes_nothing_answers_the_recorded_values(
    tmp_path: Path, recorded: list[Replaying], monkeypatch: pytest.MonkeyPatch
) -> None:
    run = Replaying.run_with_iobinding

    def only_once(replaying: Replaying, binding: Any) -> None:
        if replaying._recorded is None:
            run(replaying, binding)

    monkeypatch.setattr(Replaying, "run_with_iobinding", only_once)
    assert answers_to_other_values(tmp_path / "m.onnx") == (1.0,) * 8


def test_a_start_says_that_further_shapes_would_not_be_run(
    tmp_path: Path, recorded: list[Replaying]
) -> None:
    case = captured(relu(tmp_path / "m.onnx"))
    further = FurtherShape(label="b8", inputs=(x_input((8, 4)),))
    question = StartUp(case=case, engines="", page_cache="warm", shapes=(further,))
    found = start_up.start_case(question, WorkerState(lambda _: None))
    reason = "a recorded graph replays one shape only"
    assert found.shapes == (ShapeStart(label="b8", reason=reason),)
    assert found.first_inference_ns > 0
    assert len(recorded) == 1


def test_outputs_that_are_not_there_are_a_reason(tmp_path: Path) -> None:
    case = case_of(relu(tmp_path / "m.onnx"))
    model = cpu_session((tmp_path / "m.onnx").read_bytes())
    write_reference(tmp_path / "r.npz", session=model, specs=case.inputs, seed=case.seed)
    empty = Spoiled(model, lambda call, outputs: [] if call else outputs)
    found = compare(empty, tmp_path / "r.npz")
    assert found.outputs == ()
    assert "magnitude" in found.reason
