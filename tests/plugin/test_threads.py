"""Tests that run in threads: one measurement at a time, once a case."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from pytest_ortbench.core.case import Case
from pytest_ortbench.core.outcome import CaseResult
from pytest_ortbench.execution import execution as engine
from tests.results_factory import make_result

from .conftest import QUICK

pytestmark = pytest.mark.live

#: Runs each test in several threads at once, as pytest-run-parallel does.
IN_THREADS = """
import functools
import threading

def pytest_collection_finish(session):
    for item in session.items:
        item.obj = in_threads(item.obj)

def in_threads(function):
    @functools.wraps(function)
    def run(**arguments):
        failures = []

        def one():
            try:
                function(**arguments)
            except BaseException as error:
                failures.append(error)

        threads = [threading.Thread(target=one) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        if failures:
            raise failures[0]
    return run
"""


def test_threads_wait_for_one_measurement_and_share_it(
    pytester: pytest.Pytester,
    model_file: Callable[..., Path],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now: list[int] = []
    most: list[int] = []
    lock = threading.Lock()

    def measure(case: Case, *_: object) -> CaseResult:
        with lock:
            now.append(1)
            most.append(len(now))
        time.sleep(0.05)
        with lock:
            now.pop()
        return make_result(case=case)

    monkeypatch.setattr(engine, "measure", measure)
    model_file("one.onnx")
    model_file("two.onnx")
    pytester.makeconftest(IN_THREADS)
    pytester.makepyfile(
        """
        import pytest

        @pytest.mark.ortbench(models=["one.onnx", "two.onnx"])
        def test_it(ortbench):
            assert ortbench.latency().p50 < 1
        """
    )
    limit = "--ort-limits=one*@latency_p50 <= 1 ns"
    result = pytester.runpytest(*QUICK, "--ort-no-results", limit)
    result.assert_outcomes(passed=1, failed=1)
    assert most == [1, 1]


def test_two_engines_of_one_process_take_turns() -> None:
    from pytest_ortbench.launch.turn import TURN

    held = threading.Event()
    taken = threading.Event()

    def other() -> None:
        held.wait(600)
        with TURN:
            taken.set()

    thread = threading.Thread(target=other)
    thread.start()
    with TURN, TURN:
        held.set()
        assert not taken.wait(0.1)
    assert taken.wait(600)
    thread.join()
