"""A worker that is a real process: a question goes out, its answer or a failure comes back."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TypeVar

from pytest_ortbench.core.case import Case, InputSpec, Provider
from pytest_ortbench.core.energy import Energy
from pytest_ortbench.core.errors import WorkerError
from pytest_ortbench.core.load import LoadTest
from pytest_ortbench.core.outcome import (
    Accuracy,
    Block,
    Memory,
    OutputCheck,
    Placement,
    WarmUp,
)
from pytest_ortbench.core.placement import is_fallback
from pytest_ortbench.core.profile import OperatorProfile
from pytest_ortbench.core.soak import Soak
from pytest_ortbench.core.stages import FrameBlock, StagesReady
from pytest_ortbench.core.task import TaskAccuracy
from pytest_ortbench.launch.diagnose import Evidence, diagnose, graph_refused, left_device
from pytest_ortbench.launch.ending import tail
from pytest_ortbench.launch.process import Refused, WorkerProcess
from pytest_ortbench.launch.seal import Seal
from pytest_ortbench.launch.staging import Files, dataset_for
from pytest_ortbench.schema.protocol import (
    CheckOutputs,
    CompareOutputs,
    CompareSides,
    Done,
    LoadStages,
    MeasureEnergy,
    Opened,
    OutputsCompared,
    OutputsWritten,
    ProfileOperators,
    ProfilePlacement,
    PutUnderLoad,
    Question,
    ReadMemory,
    RunFrames,
    ScoreTask,
    SoakFor,
    TimeBlock,
    WarmUpFor,
    WriteOutputs,
    WriteOwnScores,
)

_T = TypeVar("_T")


class ProcessWorker:
    """A :class:`Worker` that is a real process.

    Attributes:
        deadline: Until when it must be done, of ``time.monotonic()``; may be moved.

    Args:
        process: The process, with the case open.
        case: What it measures.
        opened: What it said when it opened.
        deadline: Until when it must be done, of ``time.monotonic()``.
        files: How it gets the host's files.
        sealed: What its files were.
    """

    def __init__(
        self,
        process: WorkerProcess,
        case: Case,
        opened: Opened,
        deadline: float,
        files: Files,
        sealed: Seal,
    ) -> None:
        self._process = process
        self._files = files
        self._sealed = sealed
        self._case = case
        self.deadline = deadline
        self.info = opened.info
        self.startup = opened.startup
        self.threads = opened.threads
        self.threads_source = opened.threads_source
        self.cpus = opened.cpus
        self.options_in_force = opened.options_in_force
        self.unconfirmed = opened.unconfirmed
        self.clock_pair_ns = opened.clock_pair_ns
        self.no_energy = opened.no_energy

    @property
    def pid(self) -> int:
        """Process id."""
        return self._process.pid

    def warm(self, budget_s: float) -> WarmUp:
        """Run until no trend is left, ``budget_s`` seconds at most."""
        return self._ask(WarmUpFor(budget_s=budget_s), WarmUp)

    def block(self, iterations: int) -> Block:
        """Time single inferences in a row."""
        return self._ask(TimeBlock(iterations=iterations), Block)

    def memory(self) -> Memory:
        """Say what session and runs took."""
        return self._ask(ReadMemory(), Memory)

    def check(self, run: str) -> OutputCheck:
        """Look at the outputs of one more, untimed inference."""
        return self._ask(CheckOutputs(run=run), OutputCheck)

    def profile(self) -> Placement:
        """Prove what ran where; a plug-in that refused every graph is a failure with its reason."""
        placement = self._ask(ProfilePlacement(), Placement)
        if is_fallback(placement):
            log = self._process.read_log()
            failure = graph_refused(log, self._case.provider)
            if failure is not None:
                raise WorkerError(replace(failure, log_tail=tail(log)))
        return placement

    def accuracy(self, reference: Path) -> Accuracy:
        """Compare outputs with the reference's."""
        path = self._files.send(reference, reference.name)
        return self._ask(CompareOutputs(reference=path), Accuracy)

    def write_outputs(
        self, path: Path, inputs: tuple[InputSpec, ...], magnitudes: tuple[float, ...]
    ) -> OutputsWritten:
        """Write outputs on drawn inputs to a file, for the other side of a gate."""
        there = self._files.place_of(path, self._files.case(self._case).variant.path)
        question = WriteOutputs(path=there, inputs=inputs, magnitudes=magnitudes)
        written = self._ask(question, OutputsWritten)
        self._files.fetch(there, path)
        return written

    def compare_sides(self, path: Path, *, is_baseline: bool) -> OutputsCompared:
        """Compare outputs with what the other side of a gate wrote."""
        there = self._files.send(path, path.name)
        return self._ask(CompareSides(path=there, is_baseline=is_baseline), OutputsCompared)

    def energy(self, budget_s: float) -> Energy:
        """Put the session under load and read the device's meter meanwhile."""
        return self._ask(MeasureEnergy(budget_s=budget_s), Energy)

    def soak(self, seconds: float, shapes: tuple[tuple[InputSpec, ...], ...] = ()) -> Soak:
        """Run on and on for so long, and watch resident memory."""
        return self._ask(SoakFor(seconds=seconds, shapes=shapes), Soak)

    def task(self, reference: Path | None) -> TaskAccuracy:
        """Score the case's labelled data, beside the reference's scores if there are some."""
        question = ScoreTask(
            dataset=dataset_for(self._files, self._case),
            reference="" if reference is None else self._files.send(reference, reference.name),
        )
        return self._ask(question, TaskAccuracy)

    def write_scores(self, path: Path) -> None:
        """Score the case's labelled data, and write the scores to a file."""
        there = self._files.place_of(path, self._files.case(self._case).variant.path)
        dataset = dataset_for(self._files, self._case)
        self._ask(WriteOwnScores(dataset=dataset, path=there), Done)
        self._files.fetch(there, path)

    def load_stages(self, path: str, budget_s: float) -> StagesReady:
        """Load the user's file of stages, check it, and warm it up."""
        return self._ask(LoadStages(path=path, budget_s=budget_s), StagesReady)

    def frames(self, count: int, *, overlapped: bool = False) -> FrameBlock:
        """Send frames through the stages that were loaded."""
        return self._ask(RunFrames(count=count, overlapped=overlapped), FrameBlock)

    def load(self, asked: PutUnderLoad) -> LoadTest:
        """Run one test of MLPerf's load generator."""
        return self._ask(asked, LoadTest)

    def operators(self, trace: Path | None = None) -> OperatorProfile:
        """Say where the time of an inference goes, and keep the profiler's trace if asked."""
        there = ""
        if trace is not None:
            there = self._files.place_of(trace, self._files.case(self._case).variant.path)
        found = self._ask(ProfileOperators(keep=there), OperatorProfile)
        if trace is None:
            return found
        self._files.fetch(there, trace)
        return replace(found, trace=str(trace))

    def pause(self) -> None:
        """Suspend the process with all its threads."""
        self._process.pause()

    def resume(self) -> None:
        """Let it go on."""
        self._process.resume()

    def close(self) -> None:
        """End the process; safe to repeat."""
        self._process.close()

    def _ask(self, question: Question, answer: type[_T]) -> _T:
        given = ask(self._process, question, answer, self.deadline, self._case)
        # An answer counts if it is about the files that the case names.
        self._sealed.check()
        return given


def require_device(process: WorkerProcess, provider: Provider) -> None:
    """Refuse a session whose provider left the asked device for another one by itself."""
    log = process.read_log()
    failure = left_device(log, provider)
    if failure is not None:
        raise WorkerError(replace(failure, log_tail=tail(log)))


def ask(
    process: WorkerProcess,
    question: Question,
    answer: type[_T],
    deadline: float,
    case: Case | None = None,
    *,
    provider: Provider | None = None,
) -> _T:
    """Ask a process, and turn a refusal into a failure with the native log's end."""
    process.begin(question, deadline)
    return finish(process, answer, deadline, case, provider=provider)


def finish(
    process: WorkerProcess,
    answer: type[_T],
    deadline: float,
    case: Case | None = None,
    *,
    provider: Provider | None = None,
) -> _T:
    """Wait for the answer to what a process was asked, with failures as of :func:`ask`."""
    try:
        return process.finish(answer, deadline)
    except Refused as refused:
        log = process.read_log()
        evidence = Evidence(
            refusal=refused.refusal,
            log=log,
            provider=provider if case is None else case.provider,
            custom_ops=() if case is None else case.session.custom_ops,
        )
        raise WorkerError(replace(diagnose(evidence), log_tail=tail(log))) from refused
