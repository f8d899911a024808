"""Callers side by side: every inference once, timed singly, errors handed over."""

from __future__ import annotations

import contextlib
import threading
from array import array
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pytest_ortbench.core.case import Case, Provider
from pytest_ortbench.schema.case_questions import CheckOutputs, ProfilePlacement, TimeBlock
from pytest_ortbench.worker import session
from pytest_ortbench.worker.callers import Callers
from pytest_ortbench.worker.measured import MeasuredCase
from tests.launch.cases import case_of, relu
from tests.worker.asking import ask


def test_each_inference_is_run_once_and_all_callers_take_part() -> None:
    together = threading.Barrier(3)
    ran: list[int] = []

    def caller(number: int) -> None:
        # Nobody gets on before all three are in an inference at the same time.
        together.wait(timeout=600)
        ran.append(number)

    callers = Callers([lambda number=number: caller(number) for number in range(3)])
    for _ in range(2):
        ran.clear()
        durations = array("q", bytes(8 * 30))
        callers(durations)
        assert len(ran) == 30
        assert {ran.count(number) for number in range(3)} == {10}
        assert all(duration > 0 for duration in durations)
    callers.close()


def test_fewer_inferences_than_callers() -> None:
    ran: list[int] = []
    callers = Callers([lambda: ran.append(1)] * 4)
    callers(array("q", bytes(8)))
    assert ran == [1]
    callers.close()


def test_what_an_inference_raises_reaches_whoever_asked() -> None:
    failing = threading.Event()

    def fail() -> None:
        failing.set()
        raise ValueError("no such tensor")

    # The first caller does not come back before the other one was there.
    callers = Callers([lambda: failing.wait(timeout=600), fail])
    durations = array("q", bytes(8 * 3))
    with pytest.raises(ValueError, match="no such tensor"):
        callers(durations)
    callers.close()


class Round:
    """Callers that get on together only, and a count of what each has run."""

    def __init__(self, callers: int, enough: int) -> None:
        self.together = threading.Barrier(callers)
        self.ran = [0] * callers
        self.enough = enough

    def call(self) -> None:
        # Nobody gets on before all are in an inference at the same time.
        with contextlib.suppress(threading.BrokenBarrierError):
            self.together.wait(timeout=600)

    def over(self, caller: int) -> bool:
        self.ran[caller] += 1
        if sum(self.ran) == self.enough:
            self.together.abort()
        return sum(self.ran) >= self.enough


def test_all_callers_are_busy_until_it_is_enough() -> None:
    found = Round(3, enough=30)
    callers = Callers([found.call] * 3)
    callers.until(found.over)
    # Ten each, and what two of them were in when the third one had the last of thirty.
    assert all(ran in (10, 11) for ran in found.ran)
    assert 30 <= sum(found.ran) <= 32
    # Blocks are timed as before.
    durations = array("q", bytes(8 * 4))
    callers(durations)
    assert all(duration > 0 for duration in durations)
    callers.close()


def test_what_an_inference_raises_ends_all_callers() -> None:
    failing = threading.Event()

    def fail() -> None:
        failing.set()
        raise ValueError("no such tensor")

    callers = Callers([lambda: failing.wait(timeout=600), fail])
    # Nobody says that it is enough.
    with pytest.raises(ValueError, match="no such tensor"):
        callers.until(lambda _: False)
    callers.close()


def test_threads_end_with_close() -> None:
    before = set(threading.enumerate())
    callers = Callers([lambda: None] * 3)
    own = set(threading.enumerate()) - before
    assert len(own) == 2
    callers.close()
    for each in own:
        each.join(timeout=600)
    assert not [each for each in own if each.is_alive()]


@pytest.mark.live
@pytest.mark.parametrize("io", ["end-to-end", "device"])
def test_a_real_case_with_two_sessions_of_two_callers(tmp_path: Path, io: str) -> None:
    plain = case_of(relu(tmp_path / "m.onnx"))
    case: Case = replace(plain, concurrency=2, sessions=2, io=io)
    assert case.callers == 4
    measured = MeasuredCase(case, lambda _: None)
    opened = measured.open()
    assert opened.first_inference_ns > 0
    block = ask(measured, TimeBlock(iterations=40))
    assert len(block.durations_ns) == 40
    assert all(duration > 0 for duration in block.durations_ns)
    assert ask(measured, CheckOutputs(run="first")).nonfinite == 0
    placement = ask(measured, ProfilePlacement())
    assert placement.executed == {"CPUExecutionProvider": 1}
    with pytest.raises(RuntimeError, match="session"):
        ask(measured, TimeBlock(iterations=1))


@pytest.mark.live
def test_each_session_has_options_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A session of a plug-in adds its device to them, which they take once."""
    given: list[object] = []

    def create(model: str, provider: Provider, options: Any) -> tuple[Any, int]:
        given.append(options)
        return session.create(model, provider, options)

    monkeypatch.setattr("pytest_ortbench.worker.measured.create", create)
    case = replace(case_of(relu(tmp_path / "m.onnx")), sessions=3)
    measured = MeasuredCase(case, lambda _: None)
    measured.open()
    assert len({id(options) for options in given}) == len(given) == 3
    ask(measured, ProfilePlacement())  # ends the callers
