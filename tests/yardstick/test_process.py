"""A yardstick is a real process, which sleeps but for its blocks."""

from __future__ import annotations

import os
import signal
import sys
import time

import psutil
import pytest

from pytest_ortbench.core.errors import WorkerError
from pytest_ortbench.launch.launcher import ProcessLauncher
from pytest_ortbench.launch.yardstick_process import YardstickProcess
from pytest_ortbench.yardstick.worker.answers import Crew
from pytest_ortbench.yardstick.worker.handover import Handover
from pytest_ortbench.yardstick.worker.workloads import WORKLOADS, MatrixProduct, digest_of_work


def test_each_does_its_work_on_its_threads_and_sleeps_in_between(
    launcher: ProcessLauncher, monkeypatch: pytest.MonkeyPatch
) -> None:
    # What the user set for numpy is none of its business.
    monkeypatch.setenv("OPENBLAS_NUM_THREADS", "2")
    for name, threads in (
        ("serial", 1),
        ("mixed", 1),
        ("parallel", 2),
        ("memory", 1),
    ):
        process = launcher.yardstick(name, threads=threads)
        try:
            yardstick = process.yardstick
            assert (yardstick.name, yardstick.threads) == (name, threads)
            assert yardstick.digest == digest_of_work(WORKLOADS[name])
            assert yardstick.library
            assert yardstick.version
            turn = process.time(5, untimed=2)
            block = turn.block
            assert len(block.durations_ns) == 5
            assert min(block.durations_ns) > 0
            if name in ("mixed", "parallel"):
                parts = zip(turn.memory_ns, block.durations_ns, strict=True)
                assert all(0 < memory < unit for memory, unit in parts)
            else:
                assert turn.memory_ns == ()
            assert block.wall_ns >= sum(block.durations_ns) or threads > 1
            assert psutil.Process(process.pid).status() == psutil.STATUS_STOPPED
            helpers = psutil.Process(process.pid).children()
            # One that sends values back, which ends with its yardstick.
            assert len(helpers) == (threads > 1)
            assert turn.handover_ns is None or turn.handover_ns > 0
        finally:
            process.close()
        assert not psutil.pid_exists(process.pid)
        psutil.wait_procs(helpers, timeout=10)
        assert not any(helper.is_running() for helper in helpers)


@pytest.mark.live
def test_a_value_comes_back_from_another_cpu_or_from_none() -> None:
    handover = Handover()
    looks = [handover.time() for _ in range(30)]
    assert all(look is None or look > 0 for look in looks)
    handover.close()
    assert handover.time() is None


@pytest.mark.skipif(sys.platform == "win32", reason="signals")
def test_one_that_is_killed_says_so_and_one_that_is_open_goes_with_the_launcher(
    launcher: ProcessLauncher,
) -> None:
    killed = launcher.yardstick("serial", threads=1)
    assert isinstance(killed, YardstickProcess)
    os.kill(killed.pid, signal.SIGKILL)
    with pytest.raises(WorkerError) as caught:
        killed.time(5, untimed=0)
    assert (caught.value.failure.kind, caught.value.failure.signal) == ("crash", "SIGKILL")
    open_still = launcher.yardstick("serial", threads=1)
    assert open_still.pid != killed.pid
    launcher.close()
    assert not psutil.pid_exists(open_still.pid)


def test_one_serves_all_cases_that_take_the_same_until_it_dies(launcher: ProcessLauncher) -> None:
    first = launcher.yardstick("serial", threads=1)
    assert isinstance(first, YardstickProcess)
    assert launcher.yardstick("serial", threads=1) is first
    # Nobody asked it anything since, so that only its process tells that it is gone.
    psutil.Process(first.pid).kill()
    while not first.has_ended:
        time.sleep(0.01)
    second = launcher.yardstick("serial", threads=1)
    assert len(second.time(2, untimed=0).block.durations_ns) == 2
    assert not psutil.pid_exists(first.pid)
    other = launcher.yardstick("memory", threads=1)
    assert other.yardstick.name == "memory"
    assert launcher.yardstick("serial", threads=1) is second
    other.close()
    assert launcher.yardstick("memory", threads=1).pid != other.pid


def test_those_that_would_take_much_memory_together_end(
    launcher: ProcessLauncher, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(YardstickProcess.__module__ + ".MOST_KEPT_THREADS", 2)
    first, second, third = (
        launcher.yardstick(name, threads=1) for name in ("serial", "memory", "mixed")
    )
    assert not psutil.pid_exists(first.pid)
    for process in (second, third):
        assert launcher.yardstick(process.yardstick.name, threads=1) is process


def test_the_parts_of_a_unit_are_those_of_the_thread_that_took_longest() -> None:
    """Two threads, of which the second sleeps 20 ms in its product and not at all in its pass."""
    made = iter(
        [
            (lambda: None, lambda: time.sleep(0.001)),
            (lambda: time.sleep(0.02), lambda: None),
        ]
    )
    crew = Crew(lambda: next(made), threads=2)
    assert crew.parts == 2
    for product, memory in crew.time(3, untimed=1):
        assert product >= 20_000_000 > memory


def test_other_work_has_another_digest() -> None:
    same, other = MatrixProduct(), MatrixProduct(side=320)
    assert digest_of_work(same) == digest_of_work(WORKLOADS["serial"])
    assert len({digest_of_work(work) for work in (same, other, WORKLOADS["memory"])}) == 3
