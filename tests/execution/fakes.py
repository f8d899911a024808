"""A launcher whose workers take as long as a test says, without any clock or process."""

# ruff: noqa: ARG002, ARG005  (a fake takes what the seam hands it)
from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

from pytest_ortbench.core.accuracy import ReferenceSpread
from pytest_ortbench.core.case import Case
from pytest_ortbench.core.errors import WorkerError
from pytest_ortbench.core.outcome import (
    Accuracy,
    Block,
    Failure,
    Memory,
    OutputAccuracy,
    OutputCheck,
    Placement,
    WarmUp,
)
from pytest_ortbench.core.yardstick import YardstickBlock
from pytest_ortbench.schema.case_questions import (
    CheckOutputs,
    CompareOutputs,
    Opened,
    ProfilePlacement,
    ReadMemory,
    TimeBlock,
    WarmUpFor,
)
from pytest_ortbench.schema.question import CaseQuestion
from pytest_ortbench.schema.side_questions import (
    CompareSides,
    OutputsCompared,
    OutputsWritten,
    WriteOutputs,
)
from tests.results_factory import (
    make_accuracy,
    make_measurement,
    make_memory,
    make_placement,
    make_yardstick,
)

#: Takes a case and the number of the launch, gives nanoseconds of one inference.
TimeOf = Callable[[Case, int], float]

RECORDED = make_measurement()

SAME_ANSWERS = Accuracy(
    samples=8,
    magnitudes=(0.1, 1.0, 10.0),
    outputs=(OutputAccuracy(name="y", kind="float", finite=True, exact=True, compared=80),),
)


class FakeWorker:
    """Draws durations: a floor that its launch fixes, and a tail above it."""

    def __init__(self, owner: FakeLauncher, case: Case, index: int, warm_up_runs: int) -> None:
        self.owner, self.case = owner, case
        self.floor_ns = owner.time_of(case, index)
        self.draw = random.Random(f"{len(owner.opened)} {owner.seed}")
        self.warm_up_runs = warm_up_runs
        self.runs = 0
        self.blocks: list[int] = []
        self.paused = self.closed = False
        self.opened = Opened(
            info=RECORDED.runtime,
            startup=RECORDED.startup,
            threads=owner.threads,
            threads_source="affinity",
            cpus=2,
            options_in_force={},
            clock_pair_ns=100,
        )
        self.run: Callable[[int], tuple[int, ...]] = self._drawn
        self._answers: dict[type, Callable[[Any], Any]] = {}

    def ask(self, question: CaseQuestion[Any]) -> Any:
        """Answer as the test said, else as the method does that takes such a question."""
        answer = self._answers.get(type(question)) or getattr(self, METHODS[type(question)])
        return answer(question)

    def answering(self, answers: dict[type, Callable[[Any], Any]]) -> FakeWorker:
        """The same worker, whose answers to these questions are the test's."""
        self._answers.update(answers)
        return self

    def _drawn(self, count: int) -> tuple[int, ...]:
        assert not self.paused, "a suspended worker can't run"
        others = [one for one in self.owner.opened if one is not self and not one.closed]
        assert all(one.paused for one in others), "the other side is not suspended"
        self.runs += count
        return tuple(
            round(self.floor_ns * (1 + 0.01 * self.draw.lognormvariate(0, 0.5)))
            for _ in range(count)
        )

    def warm(self, question: WarmUpFor) -> WarmUp:
        durations = self.run(self.warm_up_runs)
        return WarmUp(
            durations_ns=durations,
            count=len(durations),
            total_ns=sum(durations),
            steady=True,
            rule="fake",
        )

    def block(self, question: TimeBlock) -> Block:
        durations = self.run(question.iterations)
        self.blocks.append(question.iterations)
        wall = sum(durations)
        return Block(
            durations_ns=durations,
            wall_ns=wall,
            cpu_ns=round(self.owner.busy_of(self.case) * wall),
            steal_ticks=0,
            total_ticks=2,
            throttled_ns=0,
        )

    def memory(self, question: ReadMemory) -> Memory:
        return make_memory(peak_bytes=self.owner.peak_of(self.case))

    def check(self, question: CheckOutputs) -> OutputCheck:
        return OutputCheck(run=question.run, nonfinite=0, constant=False, digest="d")

    def profile(self, question: ProfilePlacement) -> Placement:
        return self.owner.placement_of(self.case)

    def accuracy(self, question: CompareOutputs) -> Accuracy:
        return self.owner.accuracy_of(self.case)

    def write_outputs(self, question: WriteOutputs) -> OutputsWritten:
        self.owner.wrote.append(self.case)
        return OutputsWritten(types=self.owner.types_of(self.case))

    def compare_sides(self, question: CompareSides) -> OutputsCompared:
        other = self.owner.wrote[-1]
        sides = (self.case, other) if question.is_baseline else (other, self.case)
        return OutputsCompared(
            types=self.owner.types_of(self.case), accuracy=self.owner.difference_of(*sides)
        )

    def pause(self) -> None:
        self.paused = True

    def resume(self) -> None:
        self.paused = False

    def close(self) -> None:
        self.closed = True


#: Which method of a fake worker answers what.
METHODS: dict[type, str] = {
    WarmUpFor: "warm",
    TimeBlock: "block",
    ReadMemory: "memory",
    CheckOutputs: "check",
    ProfilePlacement: "profile",
    CompareOutputs: "accuracy",
    WriteOutputs: "write_outputs",
    CompareSides: "compare_sides",
}


class FakeYardstick:
    """A yardstick whose units take what its launcher says, until it fails."""

    def __init__(self, owner: FakeLauncher, name: str, threads: int) -> None:
        self.owner = owner
        self.yardstick = make_yardstick(name, threads=threads)
        #: Timed and untimed units of each block.
        self.blocks: list[tuple[int, int]] = []
        self.fails_after: int | None = None
        self.closed = False

    def time(self, units: int, *, untimed: int) -> YardstickBlock:
        assert not self.closed
        assert all(one.paused or one.closed for one in self.owner.opened), "the model goes on"
        if self.fails_after is not None and len(self.blocks) >= self.fails_after:
            raise WorkerError(Failure(kind="crash", phase="measure", message="it died"))
        self.blocks.append((units, untimed))
        wall_ns = round(units * self.owner.unit_ns)
        # The second unit is the fastest; three tenths of each unit go over memory.
        durations = tuple(
            round(self.owner.unit_ns * (0.9 if index == 1 else 1)) for index in range(units)
        )
        return YardstickBlock(
            block=Block(durations_ns=durations, wall_ns=wall_ns, cpu_ns=wall_ns),
            memory_ns=tuple(took * 3 // 10 for took in durations),
            handover_ns=350 if self.yardstick.threads > 1 else None,
        )

    def close(self) -> None:
        self.closed = True


class FakeLauncher:
    """Opens fake workers; one whose model or runtime ``fails`` names is refused.

    There is no yardstick unless ``unit_ns`` says what a unit of one takes.
    """

    def __init__(self, time_of: TimeOf, *, threads: int = 2, seed: int = 0) -> None:
        self.time_of = time_of
        self.threads = threads
        self.seed = seed
        self.opened: list[FakeWorker] = []
        self.unit_ns = 0.0
        self.yardsticks: list[FakeYardstick] = []
        self.fails: dict[str, Failure] = {}
        self.fails_from = 0
        self.spread = ReferenceSpread(reason="nobody said")
        self.spreads_asked: list[str] = []
        self.peak_of: Callable[[Case], int] = lambda case: 60_000_000
        #: How many of the two CPUs are busy all the time.
        self.busy_of: Callable[[Case], float] = lambda case: 2.0
        self.placement_of: Callable[[Case], Placement] = lambda case: make_placement()
        self.accuracy_of: Callable[[Case], Accuracy] = lambda case: make_accuracy()
        #: Cases whose outputs were written for the other side, in order.
        self.wrote: list[Case] = []
        self.types_of: Callable[[Case], dict[str, str]] = lambda case: {"y": "tensor(float)"}
        #: Takes the cases of baseline and contender.
        self.difference_of: Callable[[Case, Case], Accuracy] = lambda *_: SAME_ANSWERS

    def open(self, case: Case, *, worker: int, deadline: float | None) -> FakeWorker:
        failure = self.fails.get(case.model.name) or self.fails.get(case.runtime.label)
        if failure is not None and worker >= self.fails_from:
            raise WorkerError(failure)
        # Different numbers on the two sides, as real warm-ups have.
        made = FakeWorker(self, case, worker, warm_up_runs=20 + 5 * (len(self.opened) % 2))
        self.opened.append(made)
        return made

    def yardstick(self, name: str, *, threads: int) -> FakeYardstick:
        if not self.unit_ns:
            raise WorkerError(Failure(kind="unsupported", phase="measure", message="no library"))
        self.yardsticks.append(FakeYardstick(self, name, threads))
        return self.yardsticks[-1]

    def ahead(
        self, cases: Sequence[Case], *, worker: int, deadline: float
    ) -> AbstractContextManager[None]:
        del cases, worker, deadline
        return nullcontext()

    def reference(self, case: Case, folder: Path) -> Path:
        return folder / "reference.npz"

    def reference_spread(
        self, case: Case, reference: Path, magnitudes: tuple[float, ...] = ()
    ) -> ReferenceSpread:
        self.spreads_asked.append(case.case_id)
        return self.spread

    def close(self) -> None:
        for worker in self.opened:
            worker.close()
