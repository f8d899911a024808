"""``run_async``: every inference once, as many in flight as asked, errors handed over."""

# ruff: noqa: ARG002, ARG005  (a stand-in takes what it is handed)
from __future__ import annotations

import contextlib
import threading
from array import array
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any, cast

import pytest

from pytest_ortbench.core.case import SessionConfig
from pytest_ortbench.core.errors import WorkerError
from pytest_ortbench.schema.case_questions import TimeBlock
from pytest_ortbench.worker.async_calls import AsyncCalls, AsyncFailed, require_async
from pytest_ortbench.worker.measured import MeasuredCase
from tests.launch.cases import case_of, relu
from tests.worker.asking import ask

Done = Callable[[object, object, str], None]


class Slow:
    """Answers asynchronous calls from threads of its own, when ``release`` says so."""

    def __init__(self, at_once: int, error: str = "") -> None:
        self.together = threading.Barrier(at_once)
        self.error = error
        self.ran = 0

    def run_async(self, names: None, feeds: object, done: Done, token: object) -> None:
        def work() -> None:
            # Nobody is done before as many as asked are in flight.
            with contextlib.suppress(threading.BrokenBarrierError):
                self.together.wait(timeout=600)
            self.ran += 1
            done([], token, self.error)

        threading.Thread(target=work).start()


def test_as_many_as_asked_are_in_flight_over_all_sessions() -> None:
    session = Slow(4)
    durations = array("q", bytes(8 * 20))
    # The same one stands for two sessions, so that their inferences wait for each other.
    AsyncCalls(cast("list[Any]", [session, session]), {}, 2)(durations)
    assert session.ran == 20
    assert all(duration > 0 for duration in durations)


def test_an_error_reaches_whoever_asked_after_all_are_done() -> None:
    session = Slow(1, error="no such tensor")
    with pytest.raises(AsyncFailed, match="no such tensor"):
        AsyncCalls(cast("list[Any]", [session]), {}, 1)(array("q", bytes(8 * 20)))
    assert session.ran == 1


def test_as_many_are_in_flight_until_it_is_enough() -> None:
    session = Slow(1)
    session.together = threading.Barrier(3)
    ran = [0, 0, 0]

    def over(slot: int) -> bool:
        ran[slot] += 1
        if sum(ran) == 30:
            # What was started meanwhile has nobody to wait for.
            session.together.abort()
        return sum(ran) >= 30

    calls = AsyncCalls(cast("list[Any]", [session]), {}, 3)
    calls.until(over)
    assert 30 <= sum(ran) <= 32
    assert all(ran)


def test_an_error_ends_what_is_kept_in_flight() -> None:
    session = Slow(1, error="no such tensor")
    with pytest.raises(AsyncFailed, match="no such tensor"):
        AsyncCalls(cast("list[Any]", [session]), {}, 1).until(lambda _: False)
    assert session.ran == 1


@pytest.mark.live
def test_a_real_session(tmp_path: Path) -> None:
    case = case_of(relu(tmp_path / "m.onnx"))
    session = SessionConfig(intra_op_num_threads=2)
    case = replace(case, session=session, call="async", concurrency=3)
    measured = MeasuredCase(case, lambda phase: None)
    measured.open()
    block = ask(measured, TimeBlock(iterations=50))
    assert len(block.durations_ns) == 50
    assert min(block.durations_ns) > 0
    # In flight at a time, so that together they last longer than the block.
    assert block.wall_ns > max(block.durations_ns)


def test_one_thread_is_refused_with_what_helps(tmp_path: Path) -> None:
    case = case_of(relu(tmp_path / "m.onnx"))
    case = replace(case, session=SessionConfig(intra_op_num_threads=1), call="async")
    entered: list[str] = []
    with pytest.raises(WorkerError) as caught:
        MeasuredCase(case, entered.append).open()
    assert (caught.value.failure.kind, entered[-1]) == ("unsupported", "session")
    assert "this one has 1" in caught.value.failure.message
    assert "--ort-threads=2" in caught.value.failure.hint


@pytest.mark.parametrize(
    ("methods", "io", "message"),
    [
        (
            {},
            "end-to-end",
            "ONNX Runtime 1.15.0 has no run_async, which --ort-calls=async measures",
        ),
        (
            {"run_async": None},
            "device",
            "--ort-calls=async can't measure --ort-io=device, since run_async takes arrays in the "
            "memory of the host",
        ),
    ],
)
def test_where_it_can_not_be_had(methods: dict[str, object], io: str, message: str) -> None:
    session = type("InferenceSession", (), methods)
    ort = cast(ModuleType, SimpleNamespace(InferenceSession=session, __version__="1.15.0"))
    with pytest.raises(WorkerError) as caught:
        require_async(ort, threads=2, io=io)
    assert caught.value.failure.message == message
    assert caught.value.failure.kind == "unsupported"
