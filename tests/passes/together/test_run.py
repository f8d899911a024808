"""Models together: in turns, everybody ended, and failures said with whose they are."""

# ruff: noqa: ARG005  (a fake takes what the seam hands it)
from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from pytest_ortbench.analysis.paired_ratio import PairedRatio, ratio_in_turns
from pytest_ortbench.core.case import Case, Sampling
from pytest_ortbench.core.errors import WorkerError
from pytest_ortbench.core.outcome import Block, CaseResult, Failure, WarmUp
from pytest_ortbench.execution.means import Means
from pytest_ortbench.execution.rounds import FEWEST_ROUNDS
from pytest_ortbench.launch.launcher import ProcessLauncher
from pytest_ortbench.passes.together.facts import WAYS, Together
from pytest_ortbench.passes.together.questions import BesideBlock, OpenBeside, TimeBeside
from pytest_ortbench.passes.together.run import measure
from pytest_ortbench.schema.case_questions import TimeBlock, WarmUpFor
from tests.execution.fakes import FakeLauncher, FakeWorker
from tests.launch.cases import case_of, relu
from tests.results_factory import make_case, make_result

MS = 1_000_000


def named(name: str) -> Case:
    case = make_case()
    sampling = Sampling(time_s=0.001, workers=2)
    return replace(case, model=replace(case.model, name=name, place=""), sampling=sampling)


DET, REC = replace(named("det"), together=("rec",)), replace(named("rec"), together=("det",))


class Beside(FakeLauncher):
    """Its cases take 5 ms alone, and 8 ms while another one runs."""

    def __init__(self) -> None:
        super().__init__(lambda case, index: 1e6)
        self.busy: set[str] = set()
        self.broken: dict[str, str] = {}
        self.seen: list[frozenset[str]] = []
        self.stepped = threading.Event()

    def open(self, case: Case, *, worker: int, deadline: float | None) -> FakeWorker:
        self._fail(case, "open")
        opened = super().open(case, worker=worker, deadline=deadline)
        return opened.answering(
            {
                WarmUpFor: lambda _: WarmUp(
                    durations_ns=(5 * MS,), count=1, total_ns=5 * MS, steady=True, rule="fake"
                ),
                TimeBlock: lambda question: self._block(case, question),
                OpenBeside: lambda question: self._fail(question.case, "open"),
                TimeBeside: lambda question: BesideBlock(block=block_of(8), neighbour_runs=3),
            }
        )

    def _fail(self, case: Case, when: str) -> None:
        if self.broken.get(case.model.name) == when:
            raise WorkerError(Failure(kind="crash", phase="session", message="died"))

    def _block(self, case: Case, _: TimeBlock) -> Block:
        self._fail(case, "run")
        if case.model.name != DET.model.name:
            self.busy.add(case.model.name)
            self.stepped.set()
            time.sleep(0.001)  # a step of the neighbour, while the other thread looks
            self.busy.discard(case.model.name)
            return block_of(5)
        beside = any(
            worker.case.model.name != DET.model.name and not worker.paused and not worker.closed
            for worker in self.opened
        )
        return block_of(8 if beside else 5)


def block_of(each_ms: int) -> Block:
    each = each_ms * MS
    return Block(
        durations_ns=(each,) * 10, wall_ns=10 * each, cpu_ns=20 * each,
        steal_ticks=0, total_ticks=2, throttled_ns=0,
    )  # fmt: skip


def measured(
    launcher: FakeLauncher,
    *,
    results: tuple[CaseResult, ...] = (),
    others: tuple[Case, ...] = (REC,),
    prepare: Callable[[Case], Case] = lambda case: case,
) -> tuple[Together, ...]:
    means = Means(launcher=launcher, others=others, results=results, prepare=prepare)
    return measure(make_result(case=DET), means)


def test_each_round_has_a_block_alone_and_one_beside() -> None:
    launcher = Beside()
    found = measured(launcher)
    assert [one.way for one in found] == list(WAYS)
    for one in found:
        assert (one.reason, one.neighbours) == ("", (REC.case_id,))
        assert len(one.launches) == DET.sampling.workers
        for launch in one.launches:
            assert set(launch.alone_ns) == {5 * MS}
            assert set(launch.beside_ns) == {8 * MS}
            assert len(launch.alone_ns) >= FEWEST_ROUNDS
            assert min(launch.neighbour_runs) >= 1
        cost = ratio_in_turns(one)
        assert isinstance(cost, PairedRatio)
        assert cost.value == pytest.approx(1.6)
    assert all(worker.closed for worker in launcher.opened)


@pytest.mark.parametrize("when", ["open", "run"])
def test_a_neighbour_that_fails_is_named_and_all_are_ended(when: str) -> None:
    launcher = Beside()
    launcher.broken = {"rec": when}
    found = {one.way: one for one in measured(launcher)}
    assert found["apart"].reason.startswith(f"{REC.case_id}: crash")
    assert found["apart"].launches == ()
    if when == "open":
        assert found["shared"].reason.startswith(f"{REC.case_id}: crash")
    assert all(worker.closed for worker in launcher.opened)


def test_a_case_that_fails_itself_names_nobody_else() -> None:
    launcher = Beside()
    launcher.broken = {"det": "open"}
    assert {one.reason for one in measured(launcher)} == {"crash: died"}
    assert all(worker.closed for worker in launcher.opened)


def test_a_neighbour_that_is_known_to_fail_is_not_started() -> None:
    failed = make_result(case=REC, status="unsupported")
    launcher = Beside()
    assert failed.failure is not None
    found = measured(launcher, results=(failed,))
    assert {one.reason.partition(": ")[0] for one in found} == {REC.case_id}
    assert launcher.opened == []


def test_a_neighbour_without_a_file_is_not_started() -> None:
    def refuse(case: Case) -> Case:
        raise WorkerError(Failure(kind="unsupported", phase="convert", message="no such operator"))

    launcher = Beside()
    found = measured(launcher, prepare=refuse)
    assert {one.reason.partition(": ")[0] for one in found} == {REC.case_id}
    assert launcher.opened == []


def test_without_a_neighbour_there_is_a_reason_for_each_way() -> None:
    launcher = Beside()
    found = measured(launcher, others=())
    assert [one.way for one in found] == list(WAYS)
    assert all(one.reason for one in found)
    assert launcher.opened == []


@pytest.mark.live
def test_real_models_run_beside_each_other_in_both_ways(tmp_path: Path) -> None:
    det, rec = (case_of(relu(tmp_path / name)) for name in ("det.onnx", "rec.onnx"))
    sampling = replace(det.sampling, time_s=0.1, workers=1)
    det = replace(det, together=(rec.model.path,), sampling=sampling)
    with closing(ProcessLauncher()) as launcher:
        found = measure(make_result(case=det), Means(launcher=launcher, others=(rec,)))
    assert [(one.way, one.reason) for one in found] == [("shared", ""), ("apart", "")]
    for one in found:
        [launch] = one.launches
        assert len(launch.alone_ns) >= FEWEST_ROUNDS
        assert min(launch.neighbour_runs) >= 1
        assert isinstance(ratio_in_turns(one), PairedRatio)
