"""The energy of a case with several callers: all of them busy, and every inference counted."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pytest_ortbench.core.case import SessionConfig
from pytest_ortbench.passes.energy.facts import Energy
from pytest_ortbench.passes.energy.questions import MeasureEnergy
from pytest_ortbench.passes.energy.worker import energy_pass as energy_module
from pytest_ortbench.passes.energy.worker.energy_pass import EnergyPass, Procedure
from pytest_ortbench.passes.profile.facts import OperatorProfile
from pytest_ortbench.passes.profile.questions import ProfileOperators
from pytest_ortbench.passes.profile.worker import operators as operator_profile
from pytest_ortbench.schema.case_questions import TimeBlock
from pytest_ortbench.worker.callers import Callers
from pytest_ortbench.worker.measured import MeasuredCase
from tests.launch.cases import case_of, relu
from tests.worker.asking import ask

from . import energy_simulation as simulated
from .laid_energy import Laid

pytestmark = pytest.mark.live

Over = Callable[[int], bool]


def staggered(simulation: simulated.Simulation) -> Callable[[Over], None]:
    """Two callers of 40 ms each, one of them ending every 20 ms."""

    def load(over: Over) -> None:
        caller, ended = 0, False
        while not ended:
            simulation.infer()
            ended = over(caller)
            caller = 1 - caller
        # The other one ends what it is in.
        simulation.infer()
        over(caller)

    return load


def in_step(simulation: simulated.Simulation) -> Callable[[Over], None]:
    """Two callers of 40 ms each that end at the same time."""

    def load(over: Over) -> None:
        ended = False
        while not ended:
            simulation.infer()
            simulation.infer()
            # Both are asked, whatever the first one hears.
            ended = any([over(0), over(1)])

    return load


@pytest.mark.parametrize("load_of", [staggered, in_step])
def test_inferences_of_all_callers_count_those_at_the_ends_in_part(load_of: Any) -> None:
    meter = Laid(simulated.Board(window_ms=25))
    simulation = simulated.Simulation(meter.board, "steady", None, poll_s=meter.poll_s)
    made = EnergyPass(
        meter, load_of(simulation), callers=2, procedure=Procedure(trials=2),
        clock=simulation.clock, sleep=simulation.sleep, sampler=simulation.sampler(meter), seed=1,
    )  # fmt: skip
    energy = made.run(300)
    assert len(energy.windows) == 2
    for window in energy.windows:
        # Two inferences in 40 ms, at 400 W: 8 J each.
        assert window.inferences == pytest.approx(window.duration_ns / 20e6, rel=1e-9)
        assert window.energy_j / window.inferences == pytest.approx(8.0, rel=0.01)


def test_what_was_run_in_too_short_a_window_is_that_of_all_callers() -> None:
    meter = Laid(simulated.Board(window_ms=25))
    simulation = simulated.Simulation(meter.board, "steady", None, poll_s=meter.poll_s)
    made = EnergyPass(
        meter, in_step(simulation), callers=2, clock=simulation.clock, sleep=simulation.sleep,
        sampler=simulation.sampler(meter), seed=1,
    )  # fmt: skip
    # 5 s of cooling down leave 2 s for the load: some 50 steps of two.
    reason = made.run(7).reason
    assert reason.startswith("the window was too short")
    inferences = int(re.findall(r"\d+", reason)[0])
    assert 96 <= inferences <= 102


class Recorded:
    """Takes the place of the pass: runs the load, and keeps who ran it."""

    ends: list[int]

    def __init__(self, meter: object, load: Callable[[Over], object], **how: Any) -> None:
        self.meter, self.load, self.how = meter, load, how

    def run(self, budget_s: float) -> Energy:
        Recorded.ends = []
        self.load(self.over)
        return Energy(note=f"{self.how['callers']} callers, {budget_s:g} s")

    def over(self, caller: int) -> bool:
        Recorded.ends.append(caller)
        return len(Recorded.ends) >= 40


@pytest.fixture
def recorded(monkeypatch: pytest.MonkeyPatch) -> type[Recorded]:
    monkeypatch.setattr(energy_module, "open_meter", lambda _: object())
    monkeypatch.setattr(energy_module, "EnergyPass", Recorded)
    return Recorded


def test_all_callers_of_a_case_are_the_load(tmp_path: Path, recorded: type[Recorded]) -> None:
    case = replace(case_of(relu(tmp_path / "m.onnx")), concurrency=2, sessions=2)
    measured = MeasuredCase(case, lambda _: None)
    measured.open()
    together = threading.Barrier(4)

    def call() -> None:
        # Nobody gets on before all four are in an inference; after the end nobody has to.
        if len(recorded.ends) < 37:
            together.wait(timeout=600)

    assert isinstance(measured._loop, Callers)
    measured._loop.close()
    four = Callers([call] * 4)
    measured._loop = four
    assert ask(measured, MeasureEnergy(budget_s=9.0)).note == "4 callers, 9 s"
    four.close()
    assert 40 <= len(recorded.ends) <= 43
    assert all(recorded.ends[:36].count(caller) == 9 for caller in range(4))


@pytest.mark.parametrize(
    ("call", "concurrency", "callers"),
    [("sync", 1, {0}), ("async", 1, {0}), ("async", 3, {0, 1, 2})],
)
def test_real_sessions_are_the_load_however_they_are_called(
    tmp_path: Path, recorded: type[Recorded], call: str, concurrency: int, callers: set[int]
) -> None:
    case = case_of(relu(tmp_path / "m.onnx"))
    session = SessionConfig(intra_op_num_threads=2)
    measured = MeasuredCase(
        replace(case, session=session, call=call, concurrency=concurrency), lambda _: None
    )
    measured.open()
    ask(measured, MeasureEnergy(budget_s=9.0))
    assert set(recorded.ends) == callers
    assert 40 <= len(recorded.ends) <= 39 + concurrency
    # It can be measured again afterwards.
    assert len(ask(measured, TimeBlock(iterations=5)).durations_ns) == 5


def test_runs_beside_a_profile_are_those_of_one_caller(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What waits for other callers is no part of the inference that is profiled."""
    case = replace(case_of(relu(tmp_path / "m.onnx")), concurrency=3)
    measured = MeasuredCase(case, lambda _: None)
    measured.open()
    blocks: list[int] = []
    monkeypatch.setattr(Callers, "__call__", lambda _, durations: blocks.append(len(durations)))
    plain: list[operator_profile.PlainRuns] = []

    def profiled(case: object, feeds: object, runs: operator_profile.PlainRuns, **_: object) -> Any:
        plain.append(runs)
        return OperatorProfile(run_ns=1)

    monkeypatch.setattr(operator_profile, "profile_operators", profiled)
    assert ask(measured, ProfileOperators()).run_ns == 1
    assert blocks == []
    assert min(plain[0].durations_ns) > 0
