"""Processes that start side by side before their cases are opened in turn."""

from __future__ import annotations

import time
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import NoReturn

import psutil
import pytest

from pytest_ortbench.core.case import Case, Runtime
from pytest_ortbench.core.errors import WorkerError
from pytest_ortbench.launch.launcher import ProcessLauncher
from pytest_ortbench.launch.process import WorkerProcess
from pytest_ortbench.schema.case_questions import TimeBlock
from tests.launch.cases import case_of, relu
from tests.launch.moved_clock import moved_clock

NOWHERE = Runtime(label="nowhere", command=("/no/such/python",))


@pytest.fixture
def case(tmp_path: Path) -> Case:
    return case_of(relu(tmp_path / "m.onnx"))


def children() -> set[int]:
    return {process.pid for process in psutil.Process().children()}


def test_each_case_gets_a_process_that_runs_already(launcher: ProcessLauncher, case: Case) -> None:
    other = replace(case, seed=case.seed + 1)
    before = children()
    with launcher.ahead([case, other], worker=3, deadline=1e12):
        started = children() - before
        assert len(started) == 2
        second = launcher.open(other, worker=3, deadline=1e12)
        first = launcher.open(case, worker=3, deadline=1e12)
        assert {first.pid, second.pid} == started
        third = launcher.open(case, worker=3, deadline=1e12)
        assert third.pid not in started
    # Those that were taken belong to who took them.
    assert (
        len(first.ask(TimeBlock(iterations=2)).durations_ns)
        == len(second.ask(TimeBlock(iterations=2)).durations_ns)
        == 2
    )
    for worker in (first, second, third):
        worker.close()
    assert children() == before


def test_equal_sides_get_one_each(launcher: ProcessLauncher, case: Case) -> None:
    with launcher.ahead([case, case], worker=0, deadline=1e12):
        one = launcher.open(case, worker=0, deadline=1e12)
        other = launcher.open(case, worker=0, deadline=1e12)
        assert one.pid != other.pid


def test_what_nobody_opens_is_gone(launcher: ProcessLauncher, case: Case) -> None:
    before = children()
    with launcher.ahead([case, case], worker=0, deadline=1e12):
        assert len(children() - before) == 2
    assert children() == before


def test_what_can_not_start_fails_when_it_is_opened(launcher: ProcessLauncher, case: Case) -> None:
    lost = replace(case, runtime=NOWHERE)
    with launcher.ahead([lost, case], worker=0, deadline=1e12):
        launcher.open(case, worker=0, deadline=1e12)
        with pytest.raises(WorkerError, match="'/no/such/python'") as caught:
            launcher.open(lost, worker=0, deadline=1e12)
    assert (caught.value.failure.kind, caught.value.failure.phase) == ("unavailable", "start")


def test_an_import_that_fails_is_told_as_without_it(
    tmp_path: Path, launcher: ProcessLauncher, case: Case
) -> None:
    package = tmp_path / "broken"
    package.mkdir()
    (package / "onnxruntime.py").write_text("raise ImportError('libcudart.so.12: not found')\n")
    broken = replace(
        case, runtime=Runtime(label="broken", environment={"PYTHONPATH": str(package)})
    )
    with pytest.raises(WorkerError) as plain:
        launcher.open(broken, worker=0, deadline=1e12)
    with launcher.ahead([broken], worker=0, deadline=1e12), pytest.raises(WorkerError) as ahead:
        launcher.open(broken, worker=0, deadline=1e12)
    assert plain.value.failure.phase == "import"
    assert "libcudart.so.12" in plain.value.failure.message
    one, other = (replace(error.value.failure, log_tail="") for error in (plain, ahead))
    assert one == other


@pytest.mark.live
def test_its_deadline_counts(tmp_path: Path, case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    package, never_over = tmp_path / "slow", "import time; time.sleep(600)\n"
    package.mkdir()
    (package / "onnxruntime.py").write_text(never_over)
    slow = replace(case, runtime=Runtime(label="slow", environment={"PYTHONPATH": str(package)}))
    clock, before = moved_clock(monkeypatch), children()
    give_up = WorkerProcess._give_up

    def given_up(process: WorkerProcess, *why: str, **more: bool) -> NoReturn:
        clock.ahead_s = 0.0  # what comes behind has all the time
        give_up(process, *why, **more)

    monkeypatch.setattr(WorkerProcess, "_give_up", given_up)
    launcher = ProcessLauncher(on_phase=clock.at("import"))
    ahead = launcher.ahead([slow, case], worker=0, deadline=time.monotonic() + 600)
    with closing(launcher), ahead:
        # The others are not held up by it.
        launcher.open(case, worker=0, deadline=1e12)
        with pytest.raises(WorkerError) as caught:
            launcher.open(slow, worker=0, deadline=1e12)
    assert (caught.value.failure.kind, caught.value.failure.phase) == ("timeout", "import")
    assert children() == before


@pytest.mark.parametrize(("own", "threads"), [({}, "1"), ({"OPENBLAS_NUM_THREADS": "2"}, "2")])
def test_blas_has_one_thread_unless_the_runtime_says_otherwise(
    launcher: ProcessLauncher,
    case: Case,
    monkeypatch: pytest.MonkeyPatch,
    own: dict[str, str],
    threads: str,
) -> None:
    """Its threads go on spinning after their work, beside what is timed."""
    monkeypatch.delenv("OPENBLAS_NUM_THREADS", raising=False)
    told = replace(case, runtime=replace(case.runtime, environment=own))
    worker = launcher.open(told, worker=0, deadline=1e12)
    held = psutil.Process(worker.pid).environ()
    worker.close()
    assert held["OPENBLAS_NUM_THREADS"] == threads
