"""Passes beside the standard one: carried out once, only where asked for, never in the way."""

# ruff: noqa: ARG002, ARG005  (a fake takes what the seam hands it)
from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from pytest_ortbench.convert.variants import Variants
from pytest_ortbench.core.case import Case
from pytest_ortbench.core.errors import WorkerError
from pytest_ortbench.core.outcome import CaseResult, Failure
from pytest_ortbench.execution.execution import Execution
from pytest_ortbench.execution.passes import due, without
from pytest_ortbench.passes.energy.facts import Energy, EnergyWindow
from pytest_ortbench.passes.energy.questions import MeasureEnergy
from pytest_ortbench.passes.load import run as load_run
from pytest_ortbench.passes.load.facts import Load, LoadSpec
from pytest_ortbench.passes.load.run import missing_loads
from pytest_ortbench.passes.processes.facts import ProcessPoint
from pytest_ortbench.passes.registry import PASSES
from pytest_ortbench.passes.soak import run as soak_run
from pytest_ortbench.passes.soak.facts import Soak
from pytest_ortbench.passes.stages.facts import Stages
from pytest_ortbench.planning.matrix import Planned
from pytest_ortbench.report.blocks import block_lines
from pytest_ortbench.report.entries import shown_run
from tests.results_factory import make_case, make_result, make_run

from .fakes import FakeLauncher, FakeWorker

WINDOW = EnergyWindow(
    source="nvml energy counter", device="GPU-0", duration_ns=5 * 10**9, inferences=100.5,
    energy_j=1000.0, idle_w=50.0, counter_j=1000.0, integral_j=500.0,
)  # fmt: skip


class Listener:
    """Notes what it hears."""

    def __init__(self) -> None:
        self.heard: list[str] = []

    def begin(self, case: Case) -> None:
        self.heard.append("begin")

    def end(self, result: CaseResult) -> None:
        self.heard.append("end")

    def warn(self, text: str) -> None:
        self.heard.append(text)


class Journal:
    """Keeps results in memory."""

    def __init__(self) -> None:
        self.results: list[CaseResult] = []

    def append(self, result: CaseResult) -> None:
        self.results.append(result)


class Metered(FakeLauncher):
    """Its workers have a meter, or the reason why not."""

    def __init__(self) -> None:
        super().__init__(lambda case, index: 1e6)
        self.asked: list[float] = []
        self.impossible: dict[str, str] = {}
        self.energy: Energy | WorkerError | KeyboardInterrupt = Energy(windows=(WINDOW,))

    def open(self, case: Case, *, worker: int, deadline: float | None) -> FakeWorker:
        opened = super().open(case, worker=worker, deadline=deadline)
        opened.opened = replace(opened.opened, impossible=self.impossible)
        return opened.answering({MeasureEnergy: self._measure})

    def _measure(self, question: MeasureEnergy) -> Energy:
        self.asked.append(question.budget_s)
        if isinstance(self.energy, BaseException):
            raise self.energy
        return self.energy


Made = Callable[..., tuple[Execution, Planned, Journal, Listener]]


@pytest.fixture
def engine_of() -> Iterator[Made]:
    engines: list[Execution] = []

    def make(launcher: Metered, *passes: str) -> tuple[Execution, Planned, Journal, Listener]:
        made = _engine_of(launcher, *passes)
        engines.append(made[0])
        return made

    yield make
    for engine in engines:
        engine.close()


def _engine_of(launcher: Metered, *passes: str) -> tuple[Execution, Planned, Journal, Listener]:
    planned = Planned(case=make_case())
    journal, listener = Journal(), Listener()
    engine = Execution(
        launcher=launcher, variants=Variants(launcher=launcher, folder=Path("unused")),
        header=make_run(), listener=listener, journal=journal,
        passes={planned.case.key: set(passes)},
    )  # fmt: skip
    return engine, planned, journal, listener


def test_a_pass_that_a_test_needs_is_part_of_the_first_result(engine_of: Made) -> None:
    launcher = Metered()
    engine, planned, journal, listener = engine_of(launcher, "energy")
    result = engine.result(planned)
    assert result.energy == Energy(windows=(WINDOW,))
    assert "ENERGY-DISAGREE" in [flag.name for flag in result.flags]
    assert journal.results == [result]
    assert listener.heard == ["begin", "end"]
    # In a worker of its own, that is closed like the others.
    assert len(launcher.opened) == planned.case.sampling.workers + 1
    assert all(worker.closed for worker in launcher.opened)
    assert 0 < launcher.asked[0] <= planned.case.sampling.timeout_s
    engine.result(planned, "energy")
    assert len(launcher.asked) == 1


def test_without_a_test_that_needs_it_there_is_none(engine_of: Made) -> None:
    launcher = Metered()
    engine, planned, _, _ = engine_of(launcher)
    assert engine.result(planned).energy is None
    assert launcher.asked == []


def test_a_pass_that_is_asked_for_later_is_added_and_stored_again(engine_of: Made) -> None:
    launcher = Metered()
    engine, planned, journal, _ = engine_of(launcher)
    first = engine.result(planned)
    second = engine.result(planned, "energy")
    assert second.measurements == first.measurements
    assert second.energy == Energy(windows=(WINDOW,))
    assert journal.results == [first, second]
    assert engine.results == (second,)


def test_without_a_meter_no_worker_is_started_for_it(engine_of: Made) -> None:
    launcher = Metered()
    launcher.impossible = {"energy": "no driver"}
    engine, planned, _, _ = engine_of(launcher, "energy")
    assert engine.result(planned).energy == Energy(reason="no driver")
    assert len(launcher.opened) == planned.case.sampling.workers


def test_a_pass_that_fails_costs_nothing_of_the_standard_one(engine_of: Made) -> None:
    launcher = Metered()
    launcher.energy = WorkerError(Failure(kind="crash", phase="energy", message="it died"))
    engine, planned, _, _ = engine_of(launcher, "energy")
    result = engine.result(planned)
    assert result.status == "measured"
    assert result.energy.reason.startswith("crash: ")
    assert result.energy == Energy(reason=result.energy.reason)


def test_an_interrupt_in_a_pass_leaves_the_standard_one_in_the_journal(engine_of: Made) -> None:
    launcher = Metered()
    launcher.energy = KeyboardInterrupt()
    engine, planned, journal, _ = engine_of(launcher, "energy")
    with pytest.raises(KeyboardInterrupt):
        engine.result(planned)
    [stored] = journal.results
    assert stored.status == "measured"
    assert engine.results == (stored,)


def test_a_case_that_failed_gets_no_further_pass() -> None:
    failure = Failure(kind="crash", phase="measure", message="it died")
    assert due(replace(make_result(), energy=None), ["energy"]) == ["energy"]
    assert due(replace(make_result(), energy=None, failure=failure), ["energy"]) == []


def test_what_an_interrupt_cut_off_says_so_and_is_measured_when_resumed(
    engine_of: Made, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without a word the row would look as if no load and no soak had been asked for."""

    def pressed(*_: object) -> tuple[Load, ...]:
        raise KeyboardInterrupt

    def soaked(*_: object) -> Soak:
        return Soak(seconds=1.0)

    load = Load(spec=LoadSpec(text="offline", scenario="offline", percent=99.0), reason="tested")
    monkeypatch.setattr(soak_run, "measure", soaked)
    monkeypatch.setattr(load_run, "measure", pressed)
    engine, planned, journal, _ = engine_of(Metered(), "load", "soak", "stages", "processes")
    sampling = replace(planned.case.sampling, loads=("offline", "single-stream"), processes=(2,))
    planned = replace(
        planned, case=replace(planned.case, sampling=sampling, stages="/somewhere/own.py")
    )
    with pytest.raises(KeyboardInterrupt):
        engine.result(planned)
    [stored] = journal.results
    assert engine.results == (stored,)
    assert stored.status == "measured"
    assert stored.soak == Soak(seconds=1.0)
    assert [(entry.spec.text, entry.interrupted) for entry in stored.loads] == [
        ("offline", True), ("single-stream", True),
    ]  # fmt: skip
    reason = stored.loads[0].reason
    assert stored.stages == Stages(file="own.py", reason=reason, interrupted=True)
    assert stored.processes == (ProcessPoint(asked=2, reason=reason, interrupted=True),)
    lines = block_lines(shown_run(make_run([stored])))
    name = stored.case.case_id
    assert (
        f"load of {name}: offline was not tested: {reason}; single-stream was not tested: {reason}"
    ) in lines
    assert f"stages of {name} (own.py): {reason}" in lines
    # A resumed run does what is missing, and nothing twice.
    wanted = {"load", "soak", "stages", "processes"}
    assert due(stored, wanted) == ["load", "stages", "processes"]
    half = replace(stored, loads=(load, stored.loads[1]))
    assert missing_loads(half, sampling.loads) == ["single-stream"]
    assert without(half, ["load"], reason, interrupted=True).loads == half.loads


@pytest.mark.parametrize("name", sorted(entry.name for entry in PASSES))
def test_every_pass_can_be_interrupted(name: str) -> None:
    sampling = replace(make_case().sampling, loads=("offline",), processes=(2,))
    result = make_result(case=replace(make_case(), sampling=sampling, stages="own.py"))
    assert due(result, [name]) == [name]
    marked = without(result, [name], "stopped", interrupted=True)
    assert due(marked, [name]) == [name]
    assert marked != result
    # Whatever its reason says, what was not interrupted is over.
    assert due(without(result, [name], "interrupted before it ended"), [name]) == []
