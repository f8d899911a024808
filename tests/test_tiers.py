"""A unit test that starts something fails, and what is timed runs alone."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Generator
from types import SimpleNamespace
from typing import Any, cast

import pytest
from xdist.workermanage import WorkerController

from tests.tiers import HEAVY, LIVE, TIMED, UNIT, Forbidden, Guard, tier_of
from tests.timed_last import TimedLast


class Item:
    """A test with some markers and fixtures."""

    def __init__(self, *marks: str, fixtures: tuple[str, ...] = ()) -> None:
        self.marks, self.fixturenames = marks, fixtures

    def get_closest_marker(self, name: str) -> str | None:
        return name if name in self.marks else None


@pytest.mark.parametrize(
    ("item", "tier"),
    [
        (Item(), UNIT),
        (Item(fixtures=("tmp_path", "pytester")), LIVE),
        (Item(fixtures=("launcher",)), LIVE),
        (Item(LIVE), LIVE),
        (Item(HEAVY, fixtures=("launcher",)), HEAVY),
        (Item(fixtures=("launcher", "distribution")), HEAVY),
        (Item(TIMED), UNIT),
    ],
)
def test_the_tier_is_that_of_the_marker_else_of_the_fixtures(item: Any, tier: str) -> None:
    assert tier_of(item) == tier


def _session() -> None:
    import onnxruntime

    onnxruntime.InferenceSession(b"")


STARTS: dict[str, Callable[[], object]] = {
    "subprocess": lambda: subprocess.run([sys.executable, "-c", ""], check=False),
    "system": lambda: os.system("true"),
    "session": _session,
    **({"fork": os.fork} if hasattr(os, "fork") else {}),
}


@pytest.fixture(scope="module")
def guard() -> Guard:
    made = Guard()
    made.install()
    return made


def _run(guard: Guard, item: Any, body: Callable[[], object]) -> None:
    phase: Generator[None, None, None] = guard.pytest_runtest_call(item)
    next(phase)
    try:
        body()
    except BaseException as error:
        with pytest.raises(type(error)):
            phase.throw(error)
        raise
    with pytest.raises(StopIteration):
        phase.send(None)


@pytest.mark.live
@pytest.mark.parametrize("start", STARTS.values(), ids=STARTS)
def test_a_unit_test_that_starts_something_fails(guard: Guard, start: Callable[[], object]) -> None:
    with pytest.raises(Forbidden):
        _run(guard, Item(), start)


@pytest.mark.live
@pytest.mark.parametrize("start", STARTS.values(), ids=STARTS)
def test_it_fails_also_where_the_error_was_caught(
    guard: Guard, start: Callable[[], object]
) -> None:
    def body() -> None:
        with pytest.raises(Forbidden):
            start()

    item = cast(pytest.Item, Item())  # has what the guard looks at
    phase: Generator[None, None, None] = guard.pytest_runtest_call(item)
    next(phase)
    body()
    with pytest.raises(Forbidden):
        phase.send(None)


@pytest.mark.live
def test_a_live_test_may(guard: Guard) -> None:
    _run(guard, Item(LIVE), lambda: subprocess.run([sys.executable, "-c", ""], check=True))


class Process:
    """A process of pytest-xdist: what it was given, and whether it was told to end."""

    def __init__(self, name: str) -> None:
        self.gateway = SimpleNamespace(id=name)
        self.given: list[int] = []
        self.shutting_down = False

    def send_runtest_some(self, indices: list[int]) -> None:
        self.given += indices

    def shutdown(self) -> None:
        self.shutting_down = True


def spread(tests: list[str], count: int = 2) -> tuple[TimedLast, list[Process]]:
    """Give these tests to some processes."""
    config: Any = SimpleNamespace(
        getvalue=lambda _: ["popen"] * count,
        option=SimpleNamespace(loadscopereorder=False),
        rootpath=None,
    )
    scheduler = TimedLast(config)
    nodes: list[Any] = [Process(f"gw{index}") for index in range(count)]
    for node in nodes:
        scheduler.add_node(node)
    for node in nodes:
        scheduler.add_node_collection(node, tests)
    scheduler.schedule()
    return scheduler, nodes


def finish(scheduler: Any, node: Process) -> set[str]:
    """Let a process run what it can: all but its last test, and that one if it is to end."""
    left = [] if node.shutting_down else node.given[-1:]
    done = [index for index in node.given if index not in left]
    tests = scheduler.registered_collections[node]
    node.given = list(left)
    for index in done:
        scheduler.mark_test_complete(node, index)
    return {tests[index] for index in done}


QUICK = [f"{file}.py::test_{index}" for file in "abcd" for index in range(3)]
SLOW = [f"t.py::test_{index}@{TIMED}" for index in range(2)]


@pytest.mark.parametrize("count", [1, 2, 3])
@pytest.mark.parametrize("first", [0, -1])
def test_what_is_timed_runs_when_all_others_are_done(count: int, first: int) -> None:
    scheduler, nodes = spread(QUICK + SLOW, count)
    done: list[set[str]] = []
    for _ in range(20):
        for node in nodes if first == 0 else nodes[::-1]:
            ran = finish(scheduler, node)
            if any(test in SLOW for test in ran):
                assert set(QUICK) <= set().union(*done, ran)
                others = [other for other in nodes if other is not node]
                assert all(other.shutting_down and not other.given for other in others)
            done.append(ran)
    assert set().union(*done) == {*QUICK, *SLOW}


@pytest.mark.parametrize("tests", [SLOW, QUICK[:1], QUICK[:1] + SLOW, QUICK])
def test_few_tests_and_only_one_kind_end_too(tests: list[str]) -> None:
    scheduler, nodes = spread(tests)
    done: set[str] = set()
    for _ in range(20):
        for node in nodes:
            done |= finish(scheduler, node)
    assert done == set(tests)


def test_what_a_crashed_process_leaves_comes_before_what_is_timed() -> None:
    scheduler, nodes = spread(QUICK + SLOW)
    broken, node = nodes
    scheduler.remove_node(cast(WorkerController, broken))  # a stand-in of one
    done: list[str] = []
    for _ in range(20):
        done += sorted(finish(scheduler, node))
    assert set(done) == {*QUICK, *SLOW}
    assert done[-2:] == SLOW  # their names come last of any that ran together
