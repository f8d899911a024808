"""Passes beside the standard one: carried out once, only where asked for, never in the way."""

# ruff: noqa: ARG002, ARG005  (a fake takes what the seam hands it)
from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest

from pytest_ortbench.core.case import Case
from pytest_ortbench.core.energy import Energy, EnergyWindow
from pytest_ortbench.core.errors import WorkerError
from pytest_ortbench.core.outcome import CaseResult, Failure
from pytest_ortbench.engine.engine import Engine
from pytest_ortbench.engine.passes import due
from pytest_ortbench.plan.matrix import Planned
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
        self.no_energy = ""
        self.energy: Energy | WorkerError | KeyboardInterrupt = Energy(windows=(WINDOW,))

    def open(self, case: Case, *, worker: int, deadline: float | None) -> FakeWorker:
        opened = super().open(case, worker=worker, deadline=deadline)
        opened.no_energy = self.no_energy
        opened.energy = self._measure  # type: ignore[attr-defined]
        return opened

    def _measure(self, budget_s: float) -> Energy:
        self.asked.append(budget_s)
        if isinstance(self.energy, BaseException):
            raise self.energy
        return self.energy


Made = Callable[..., tuple[Engine, Planned, Journal, Listener]]


@pytest.fixture
def engine_of() -> Iterator[Made]:
    engines: list[Engine] = []

    def make(launcher: Metered, *passes: str) -> tuple[Engine, Planned, Journal, Listener]:
        made = _engine_of(launcher, *passes)
        engines.append(made[0])
        return made

    yield make
    for engine in engines:
        engine.close()


def _engine_of(launcher: Metered, *passes: str) -> tuple[Engine, Planned, Journal, Listener]:
    planned = Planned(case=make_case())
    journal, listener = Journal(), Listener()
    engine = Engine(
        launcher=launcher, header=make_run(), listener=listener, journal=journal,
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
    launcher.no_energy = "no driver"
    engine, planned, _, _ = engine_of(launcher, "energy")
    assert engine.result(planned).energy == Energy(reason="no driver")
    assert len(launcher.opened) == planned.case.sampling.workers


def test_a_pass_that_fails_costs_nothing_of_the_standard_one(engine_of: Made) -> None:
    launcher = Metered()
    launcher.energy = WorkerError(Failure(kind="crash", phase="energy", message="it died"))
    engine, planned, _, _ = engine_of(launcher, "energy")
    result = engine.result(planned)
    assert result.status == "measured"
    assert result.energy == Energy(reason="crash: it died")


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
