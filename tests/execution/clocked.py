"""Fake workers on a clock of their own: how a case shares its time, without spending any."""

# ruff: noqa: ARG005  (a fake takes what the seam hands it)
from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from pytest_ortbench.core.case import Case
from pytest_ortbench.core.errors import WorkerError
from pytest_ortbench.core.outcome import (
    Accuracy,
    Block,
    Failure,
    OutputCheck,
    Placement,
    Startup,
    WarmUp,
)
from pytest_ortbench.execution import pace, standard
from pytest_ortbench.schema.case_questions import (
    CheckOutputs,
    CompareOutputs,
    ProfilePlacement,
    TimeBlock,
    WarmUpFor,
)

from .fakes import FakeLauncher, FakeWorker

#: What a worker says that comes to the end of its time.
TOO_LATE = "too late"
#: Inferences that are compared, as in a real worker.
COMPARED = 8


def too_late(phase: str) -> WorkerError:
    return WorkerError(Failure(kind="timeout", phase=phase, message=TOO_LATE))


class Clock:
    """Stands for the module ``time``: it goes on when somebody works."""

    def __init__(self) -> None:
        self.now = 1000.0

    def monotonic(self) -> float:
        return self.now

    def monotonic_ns(self) -> int:
        return round(self.now * 1e9)


class ClockedWorker(FakeWorker):
    """Takes its time, and is killed at its deadline as a real one is."""

    owner: ClockedLauncher
    deadline = 0.0

    def spend(self, inferences: float, phase: str) -> None:
        clock = self.owner.clock
        clock.now += inferences * self.owner.each_s
        if clock.now > self.deadline:
            clock.now = self.deadline
            raise too_late(phase)

    def warm(self, question: WarmUpFor) -> WarmUp:
        self.warm_up_runs = max(3, int(question.budget_s / self.owner.each_s))
        self.spend(self.warm_up_runs, "warm-up")
        return super().warm(question)

    def block(self, question: TimeBlock) -> Block:
        self.spend(question.iterations, "measure")
        return super().block(question)

    def check(self, question: CheckOutputs) -> OutputCheck:
        self.spend(1, "measure")
        return super().check(question)

    def profile(self, question: ProfilePlacement) -> Placement:
        self.owner.clock.now += self.owner.start_s
        self.spend(1 if self.owner.each_s > 1 else 3, "profile")
        return super().profile(question)

    def accuracy(self, question: CompareOutputs) -> Accuracy:
        self.spend(COMPARED, "accuracy")
        return super().accuracy(question)


class ClockedLauncher(FakeLauncher):
    """Its workers start in ``start_s`` and take ``each_s`` an inference, the first one too."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *, each_s: float, start_s: float) -> None:
        super().__init__(lambda case, index: each_s * 1e9)
        self.clock, self.each_s, self.start_s = Clock(), each_s, start_s
        self.start_of: Callable[[int], float] = lambda index: start_s
        self.no_reference_after_s: float | None = None
        for module in (standard, pace):
            monkeypatch.setattr(module, "time", self.clock)

    def open(self, case: Case, *, worker: int, deadline: float | None) -> ClockedWorker:
        assert deadline is not None
        failure = self.fails.get(case.model.name)
        if failure is not None and worker >= self.fails_from:
            raise WorkerError(failure)
        self.clock.now += self.start_of(worker)
        if self.clock.now > deadline:
            self.clock.now = deadline
            raise too_late("start")
        made = ClockedWorker(self, case, worker, warm_up_runs=3)
        made.deadline = deadline
        startup = Startup(
            import_ns=1,
            session_create_ns=round(self.start_of(worker) * 1e9),
            first_inference_ns=round(self.each_s * 1e9),
        )
        made.opened = replace(made.opened, startup=startup)
        self.opened.append(made)
        made.spend(1, "first")
        return made

    def reference(self, case: Case, folder: Path) -> Path:
        if self.no_reference_after_s is not None:
            self.clock.now += self.no_reference_after_s
            raise too_late("reference")
        return super().reference(case, folder)
