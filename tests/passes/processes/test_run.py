"""Several processes at a time: all of them at once, counted while all ran, failures said."""

# ruff: noqa: ARG005  (a fake takes what the seam hands it)
from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import replace

import pytest

from pytest_ortbench.core.case import Case, Sampling
from pytest_ortbench.core.errors import WorkerError
from pytest_ortbench.core.outcome import Block, CaseResult, Failure, WarmUp
from pytest_ortbench.execution.means import Means
from pytest_ortbench.passes.processes.numbers import process_scaling
from pytest_ortbench.passes.processes.report import process_tables
from pytest_ortbench.passes.processes.run import measure
from pytest_ortbench.report.entries import shown_run
from pytest_ortbench.schema.case_questions import ReadMemory, TimeBlock, WarmUpFor
from tests.execution.fakes import FakeLauncher, FakeWorker
from tests.results_factory import make_case, make_memory, make_result, make_run

MS = 1_000_000
CASE = replace(make_case(), batch=2, sampling=Sampling(time_s=0.3, workers=1, processes=(1, 2)))


class Together(FakeLauncher):
    """Its workers take 5 ms alone and 8 ms each of two; none goes on before all are there."""

    def __init__(self) -> None:
        super().__init__(lambda case, index: 1e6)
        self.fails_at = 100
        self.live = 0
        self.block: Callable[[TimeBlock], Block] = self._timed
        self.barrier = threading.Barrier(1)

    def open(self, case: Case, *, worker: int, deadline: float | None) -> FakeWorker:
        if worker == self.fails_at:
            failure = Failure(kind="out_of_memory", phase="session", message="full")
            raise WorkerError(failure)
        opened = super().open(case, worker=worker, deadline=deadline)
        self.live = worker + 1
        self.barrier = threading.Barrier(self.live)
        return opened.answering(
            {
                WarmUpFor: self._warm,
                TimeBlock: self.block,
                ReadMemory: lambda _: make_memory(peak_bytes=1000),
            }
        )

    def _warm(self, _: WarmUpFor) -> WarmUp:
        self.barrier.wait(timeout=600)
        return WarmUp(durations_ns=(5 * MS,), count=1, total_ns=5 * MS, steady=True, rule="fake")

    def _timed(self, _: TimeBlock) -> Block:
        each = {1: 5, 2: 8}[self.live] * MS
        return Block(
            durations_ns=(each,) * 10, wall_ns=10 * each, cpu_ns=20 * each,
            steal_ticks=0, total_ticks=2, throttled_ns=0,
        )  # fmt: skip


def measured(launcher: Together) -> CaseResult:
    result = make_result(case=CASE)
    return replace(result, processes=measure(result, Means(launcher=launcher)))


def test_rate_and_memory_are_those_of_all() -> None:
    launcher = Together()
    result = measured(launcher)
    assert [len(point.processes) for point in result.processes] == [1, 2]
    assert all(worker.closed for worker in launcher.opened)
    one, two = process_scaling(result)
    # Two items an inference.
    assert (one.rate, two.rate) == pytest.approx((400, 500))
    assert (one.latency_s, two.latency_s) == pytest.approx((0.005, 0.008))
    assert (one.efficiency, two.efficiency) == pytest.approx((1.0, 500 / 800))
    assert (one.peak_bytes, two.peak_bytes) == (1000, 2000)
    assert (one.cpu_s, two.cpu_s) == pytest.approx((0.010, 0.016))
    assert (one.total_threads, two.total_threads) == (2, 4)


def test_a_number_that_does_not_fit_is_said_and_the_others_stay() -> None:
    launcher = Together()
    launcher.fails_at = 1
    result = measured(launcher)
    assert [point.reason for point in result.processes] == ["", "out_of_memory: full"]
    [table] = process_tables(shown_run(make_run([result])))
    assert table.title.endswith("highest throughput 400 /s with 1 process")
    assert [row[0] for row in table.rows] == ["1"]
    # That of one process is told to be no copy of the case's own row.
    assert [remark.partition(":")[0] for remark in table.remarks] == ["1 process", "2 processes"]
    assert table.remarks[1].endswith("out_of_memory: full")


def test_a_process_that_fails_meanwhile_ends_the_others() -> None:
    launcher = Together()

    def die(iterations: int) -> Block:
        raise WorkerError(Failure(kind="crash", phase="measure", message="died"))

    launcher.block = die
    result = measured(launcher)
    assert [point.reason for point in result.processes] == ["crash: died"] * 2
    assert process_scaling(result)[1].reason == "crash: died"
    assert all(worker.closed for worker in launcher.opened)


def test_memory_of_which_one_part_is_unknown_is_unknown() -> None:
    result = measured(Together())
    two = result.processes[1]
    unread = replace(two.processes[0], peak_bytes=None)
    point = replace(two, processes=(unread, two.processes[1]))
    [found] = process_scaling(replace(result, processes=(point,)))
    assert found.peak_bytes is None
