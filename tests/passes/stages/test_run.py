"""The pass over stages: where it is refused, what a failure in it costs, what it keeps."""

# ruff: noqa: ARG002, ARG005  (a fake takes what the seam hands it)
from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pytest_ortbench.analysis.validity import flags_of
from pytest_ortbench.core.case import Case, Runtime, Sampling
from pytest_ortbench.core.errors import WorkerError
from pytest_ortbench.core.outcome import Failure
from pytest_ortbench.execution.means import Means
from pytest_ortbench.passes.stages import run as stages
from pytest_ortbench.passes.stages.facts import FrameBlock, Stages, StagesReady
from pytest_ortbench.passes.stages.questions import LoadStages, RunFrames
from pytest_ortbench.passes.stages.run import measure
from tests.execution.clocked import Clock, too_late
from tests.execution.fakes import FakeLauncher, FakeWorker
from tests.results_factory import make_case, make_result

MS = 1_000_000


class Staged(FakeLauncher):
    """Its workers take 1 ms before, 3 ms for and 2 ms after each inference."""

    def __init__(self) -> None:
        super().__init__(lambda case, index: 1e6)
        self.failure: Failure | None = None
        self.asked: list[tuple[int, bool]] = []

    def open(self, case: Case, *, worker: int, deadline: float | None) -> FakeWorker:
        opened = super().open(case, worker=worker, deadline=deadline)
        return opened.answering({LoadStages: self._load, RunFrames: self._frames})

    def _load(self, question: LoadStages) -> StagesReady:
        if self.failure is not None:
            raise WorkerError(self.failure)
        functions = ("preprocess", "postprocess")
        return StagesReady(functions=functions, frames=2, typical_ns=6 * MS)

    def _frames(self, question: RunFrames) -> FrameBlock:
        count, overlapped = question.count, question.overlapped
        self.asked.append((count, overlapped))
        each = 3 if overlapped else 6
        return FrameBlock(
            preprocess_ns=(MS,) * count,
            inference_ns=(3 * MS,) * count,
            postprocess_ns=(2 * MS,) * count,
            frame_ns=(6 * MS,) * count,
            wall_ns=each * MS * (count - overlapped),
            cpu_ns=each * MS * count,
        )


@pytest.fixture
def case(tmp_path: Path) -> Case:
    path = tmp_path / "own.py"
    path.write_text("def preprocess(frame):\n    return frame\n")
    return replace(make_case(), stages=str(path), sampling=Sampling(time_s=3.0, workers=2))


def measured(case: Case, launcher: Staged) -> Stages:
    return measure(make_result(case=case), Means(launcher=launcher))


def test_every_worker_gives_frames_in_turn_and_overlapped(case: Case) -> None:
    launcher = Staged()
    found = measured(case, launcher)
    assert (found.file, found.functions, found.frames) == (
        "own.py",
        ("preprocess", "postprocess"),
        2,
    )
    assert len(found.digest) == 64
    assert len(found.workers) == len(launcher.opened) == 2
    assert all(worker.closed for worker in launcher.opened)
    for worker in found.workers:
        assert worker.preprocess is not None
        assert worker.postprocess is not None
        # 1.5 s a worker at 6 ms a frame; the constant median is known before that.
        assert 184 <= worker.frame.count <= 250
        assert worker.frame.sum_ns == worker.frame.count * 6 * MS
        assert worker.inference.count == worker.preprocess.count == worker.frame.count
        assert worker.preprocess.max_ns == MS
        assert worker.postprocess.max_ns == 2 * MS
        # Half of its time, 125 frames, between the first answer and the last.
        assert (worker.overlapped, worker.overlapped_ns) == (124, 3 * MS * 124)


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"runtime": Runtime(label="onnxruntime-1.30.0")}, "in the runtime 'current' only"),
        ({"io": "device"}, "with --ort-io=end-to-end only"),
        ({"concurrency": 2}, "with one caller on one session"),
        ({"call": "async"}, "around run, not run_async"),
        ({"stages": ""}, "no file of stages applies"),
    ],
)
def test_where_stages_can_not_be_had_no_worker_is_started(
    case: Case, changes: dict[str, Any], reason: str
) -> None:
    launcher = Staged()
    found = measured(replace(case, **changes), launcher)
    assert reason in found.reason
    assert not found.faulty
    assert (found.workers, launcher.opened) == ((), [])


def test_an_error_of_the_users_code_is_told_from_others(case: Case) -> None:
    launcher = Staged()
    broke = Failure(kind="error", phase="stages", message="own.py:2: it broke", hint="Mend it")
    launcher.failure = broke
    found = measured(case, launcher)
    assert (found.reason, found.faulty, found.workers) == (broke.told, True, ())
    launcher.failure = Failure(kind="crash", phase="session", message="it died")
    found = measured(case, launcher)
    assert (found.reason, found.faulty) == ("crash: it died", False)


def test_a_file_that_is_gone_meanwhile(case: Case) -> None:
    Path(case.stages).unlink()
    found = measured(case, Staged())
    assert found.faulty
    assert found.reason == f"{case.stages} does not exist"


class Slow(Staged):
    """Its frames take a second each, and half of it where they overlap, on a clock of their own."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        super().__init__()
        self.clock, self.deadline = Clock(), 0.0
        monkeypatch.setattr(stages, "time", self.clock)

    def open(self, case: Case, *, worker: int, deadline: float | None) -> FakeWorker:
        assert deadline is not None
        self.deadline = deadline
        opened = super().open(case, worker=worker, deadline=deadline)
        self._spend(1.0)
        return opened

    def _load(self, question: LoadStages) -> StagesReady:
        self._spend(max(3.0, question.budget_s))
        return replace(super()._load(question), typical_ns=1000 * MS)

    def _frames(self, question: RunFrames) -> FrameBlock:
        count, overlapped = question.count, question.overlapped
        each_s = 0.5 if overlapped else 1.0
        self._spend(each_s * count)
        block = super()._frames(question)
        return replace(
            block,
            frame_ns=(1000 * MS,) * count,
            wall_ns=round(each_s * 1000 * MS * (count - overlapped)),
        )

    def _spend(self, seconds: float) -> None:
        self.clock.now += seconds
        if self.clock.now > self.deadline:
            self.clock.now = self.deadline
            raise too_late("stages")


def slow(case: Case, workers: int, timeout_s: float = 60.0) -> Case:
    sampling = Sampling(time_s=30.0, timeout_s=timeout_s, workers=workers, target=0.0)
    return replace(case, sampling=sampling)


def test_workers_share_the_time_of_a_case(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    launcher = Slow(monkeypatch)
    found = measured(slow(case, 3), launcher)
    # A third of the timeout each: 20 s for a start, a warm-up, and frames both ways.
    assert (found.reason, found.faulty, len(found.workers)) == ("", False, 3)
    assert all(worker.frame.count >= 5 for worker in found.workers)
    assert all(worker.overlapped_ns == worker.overlapped * 500 * MS for worker in found.workers)
    assert all(0 < worker.overlapped < 29 for worker in found.workers)


def test_without_time_for_two_frames_none_overlap(
    case: Case, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = measured(slow(case, 1, timeout_s=7.0), Slow(monkeypatch))
    (worker,) = found.workers
    assert worker.frame.count >= 1
    assert (worker.overlapped, worker.overlapped_ns) == (0, 0)


def test_a_late_worker_without_time_leaves_what_the_others_measured(
    case: Case, monkeypatch: pytest.MonkeyPatch
) -> None:
    launcher = Slow(monkeypatch)
    open_fast = launcher.open

    def open_late(case: Case, *, worker: int, deadline: float | None) -> FakeWorker:
        if worker == 2:
            raise too_late("start")
        return open_fast(case, worker=worker, deadline=deadline)

    monkeypatch.setattr(launcher, "open", open_late)
    result = make_result(case=slow(case, 3))
    result = replace(result, stages=measure(result, Means(launcher=launcher)))
    assert result.stages is not None
    assert (result.stages.reason, len(result.stages.workers)) == ("", 2)
    flags = {flag.name: flag.detail for flag in flags_of(result)}
    assert flags["FEWER-WORKERS"] == "stages: 2 of 3"
