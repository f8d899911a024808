"""Lines on the timed loop, where a loop with a fault is put in the place of the real one."""

from __future__ import annotations

import time
from array import array
from pathlib import Path

import pytest

from pytest_ortbench.schema.case_questions import TimeBlock
from pytest_ortbench.selfcheck.checks import callers, loop
from pytest_ortbench.selfcheck.questions import TimeBare
from pytest_ortbench.worker.measured import MeasuredCase
from tests.launch.cases import CPU, case_of, relu
from tests.worker.asking import ask

pytestmark = pytest.mark.live


@pytest.fixture
def measured(tmp_path: Path) -> MeasuredCase:
    """An open case of one Relu."""
    opened = MeasuredCase(case_of(relu(tmp_path / "m.onnx")), lambda _: None)
    opened.open()
    return opened


def test_a_loop_that_does_more_than_an_application_must_is_found(measured: MeasuredCase) -> None:
    run, feeds = measured.live().run, measured.feeds

    def busy(durations: array[int]) -> None:
        for place in range(len(durations)):
            started = time.perf_counter_ns()
            for _ in range(20):
                run(None, feeds)
            durations[place] = time.perf_counter_ns() - started

    measured._loop = busy
    facts = ask(measured, TimeBare(rounds=33, iterations=2, within_s=600.0, least=33))
    finding = loop.CHECK.judge(facts, CPU)
    assert (finding.verdict, finding.cause) == ("fail", "differs")


def test_callers_that_wait_outside_of_what_is_timed_are_found(measured: MeasuredCase) -> None:
    run, feeds = measured.live().run, measured.feeds

    def idle(durations: array[int]) -> None:
        # One caller in the place of two, who share a lock that nobody times.
        for place in range(len(durations)):
            started = time.perf_counter_ns()
            run(None, feeds)
            durations[place] = time.perf_counter_ns() - started

    measured._loop = idle
    blocks = (ask(measured, TimeBlock(iterations=20)),)
    finding = callers.CHECK.judge(callers._Busy(blocks=blocks), CPU)
    assert (finding.verdict, finding.cause) == ("fail", "too little")
