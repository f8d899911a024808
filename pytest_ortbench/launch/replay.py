"""A launcher without processes: it replays what a stored run recorded.

Whoever measures can be run and tested on it, with real durations and no clock.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

from pytest_ortbench.core.accuracy import ReferenceSpread
from pytest_ortbench.core.case import Case, InputSpec, Provider, Runtime
from pytest_ortbench.core.energy import Energy
from pytest_ortbench.core.errors import WorkerError
from pytest_ortbench.core.load import LoadTest
from pytest_ortbench.core.outcome import (
    Accuracy,
    Block,
    CaseResult,
    Failure,
    Measurement,
    Memory,
    OutputCheck,
    Placement,
    RuntimeInfo,
    WarmUp,
)
from pytest_ortbench.core.profile import OperatorProfile
from pytest_ortbench.core.recipe import Conversion, Converted
from pytest_ortbench.core.run import Run
from pytest_ortbench.core.soak import Soak
from pytest_ortbench.core.stages import FrameBlock, StagesReady
from pytest_ortbench.core.start_up import StartTrial
from pytest_ortbench.core.task import TaskAccuracy
from pytest_ortbench.launch.launcher import ProbeOutcome
from pytest_ortbench.schema.pass_questions import PutUnderLoad, StartUp
from pytest_ortbench.schema.protocol import ModelInterface, OutputsCompared, OutputsWritten


class ReplayWorker:
    """One recorded measurement, played again from its first duration on.

    Args:
        result: The recorded case.
        measurement: The recorded worker.
    """

    def __init__(self, result: CaseResult, measurement: Measurement) -> None:
        self._result = result
        self._measurement = measurement
        self._durations = itertools.cycle(measurement.samples.durations_ns)
        self.info = measurement.runtime
        self.startup = measurement.startup
        self.threads = measurement.threads
        self.threads_source = measurement.threads_source
        self.cpus = measurement.cpus
        self.options_in_force = measurement.options_in_force
        self.unconfirmed = measurement.unconfirmed
        self.clock_pair_ns = measurement.samples.clock_pair_ns
        energy = result.energy
        self.no_energy = energy.reason if energy is not None and not energy.windows else ""
        self.closed = False
        self.paused = False

    def warm(self, budget_s: float) -> WarmUp:  # noqa: ARG002 - a recording took what it took
        """Return the recorded warm-up."""
        return self._measurement.warm_up

    def block(self, iterations: int) -> Block:
        """Return the next recorded durations, from the first again after the last.

        Wall and CPU time are the recorded ones' share of these durations.
        """
        samples = self._measurement.samples
        durations = tuple(itertools.islice(self._durations, iterations))
        if len(durations) < iterations:
            raise self._failure("the recording holds no durations")
        share = sum(durations) / samples.sum_ns if samples.sum_ns else 0.0
        return Block(
            durations_ns=durations,
            wall_ns=max(sum(durations), round(samples.wall_ns * share)),
            cpu_ns=round(samples.cpu_ns * share),
        )

    def memory(self) -> Memory:
        """Return the recorded memory."""
        return self._measurement.memory

    def check(self, run: str) -> OutputCheck:
        """Return the recorded look at that run."""
        for check in self._measurement.output_checks:
            if check.run == run:
                return check
        raise self._failure(f"the recording holds no look at the {run} run")

    def profile(self) -> Placement:
        """Return the recorded placement."""
        if self._result.placement is None:
            raise self._failure("the recording holds no placement")
        return self._result.placement

    def accuracy(self, reference: Path) -> Accuracy:  # noqa: ARG002 - it was compared back then
        """Return the recorded accuracy."""
        return self._result.accuracy or Accuracy(reason="the recording holds no accuracy")

    def write_outputs(
        self,
        path: Path,  # noqa: ARG002
        inputs: tuple[InputSpec, ...],  # noqa: ARG002
        magnitudes: tuple[float, ...],  # noqa: ARG002
    ) -> OutputsWritten:
        """Refuse: outputs are not kept."""
        raise self._failure("a recording holds no outputs")

    def compare_sides(self, path: Path, *, is_baseline: bool) -> OutputsCompared:  # noqa: ARG002
        """Refuse, likewise."""
        raise self._failure("a recording holds no outputs")

    def energy(self, budget_s: float) -> Energy:  # noqa: ARG002 - it was measured back then
        """Return the recorded energy."""
        return self._result.energy or Energy(reason="the recording holds no energy")

    def soak(  # it was soaked back then
        self,
        seconds: float,  # noqa: ARG002
        shapes: tuple[tuple[InputSpec, ...], ...] = (),  # noqa: ARG002
    ) -> Soak:
        """Return the recorded soak."""
        return self._result.soak or Soak(reason="the recording holds no soak")

    def load_stages(self, path: str, budget_s: float) -> StagesReady:  # noqa: ARG002
        """Refuse: frames are not kept one by one."""
        raise self._failure("a recording can't run stages")

    def frames(self, count: int, *, overlapped: bool = False) -> FrameBlock:  # noqa: ARG002
        """Refuse, likewise."""
        raise self._failure("a recording can't run stages")

    def load(self, asked: PutUnderLoad) -> LoadTest:
        """Return a recorded test of that scenario, rate and bound."""
        wanted = (asked.scenario, asked.rate_per_s, asked.latency_s)
        for load in self._result.loads:
            # A search for the peak is made of tests of a server.
            scenario = "server" if load.spec.scenario == "peak" else load.spec.scenario
            for test in load.tests:
                if (scenario, test.rate_per_s, load.spec.latency_s) == wanted:
                    return test
        return LoadTest(reasons=("the recording holds no such test",))

    def operators(self, trace: Path | None = None) -> OperatorProfile:  # noqa: ARG002
        """Return the recorded profile."""
        return self._result.profile or OperatorProfile(reason="the recording holds no profile")

    def task(self, reference: Path | None) -> TaskAccuracy:  # noqa: ARG002
        """Return the recorded scores."""
        recorded = self._result.task
        return recorded or TaskAccuracy(dataset="", reason="the recording holds no scores")

    def write_scores(self, path: Path) -> None:  # noqa: ARG002
        """Refuse: scores are not kept one by one."""
        raise self._failure("a recording holds no scores of single samples")

    def pause(self) -> None:
        """Note that it is paused."""
        self.paused = True

    def resume(self) -> None:
        """Note that it goes on."""
        self.paused = False

    def close(self) -> None:
        """Note that it is closed."""
        self.closed = True

    def _failure(self, message: str) -> WorkerError:
        return _failure(f"{self._result.case.case_id}: {message}")


class ReplayLauncher:
    """Opens the workers of a stored run again.

    Attributes:
        opened: Every worker that was opened, in order.

    Args:
        run: The stored run; its cases are found by id and runtime label.
    """

    def __init__(self, run: Run) -> None:
        self._run = run
        self._results = {result.case.key: result for result in run.cases}
        self.opened: list[ReplayWorker] = []

    def open(self, case: Case, *, worker: int, deadline: float | None) -> ReplayWorker:  # noqa: ARG002
        """Play the recorded worker; after the last one the first comes again.

        Raises:
            WorkerError: with the recorded failure where no worker finished, or if the run has no
                such case.
        """
        result = self._results.get(case.key)
        if result is None:
            raise _failure(f"run {self._run.run_id} has no case {case.case_id}")
        recorded = result.measurements
        if result.failure is not None and worker >= len(recorded):
            raise WorkerError(result.failure)
        if not recorded:
            raise _failure(f"the recording of {case.case_id} holds no measurement")
        player = ReplayWorker(result, recorded[worker % len(recorded)])
        self.opened.append(player)
        return player

    def ahead(
        self, cases: Sequence[Case], *, worker: int, deadline: float
    ) -> AbstractContextManager[None]:
        """Nothing is started, so nothing can start earlier."""
        del cases, worker, deadline
        return nullcontext()

    def inspect(self, runtime: Runtime) -> RuntimeInfo:
        """Return what the run observed of that runtime."""
        info = self._run.runtimes.get(runtime.label)
        if info is None:
            raise _failure(f"run {self._run.run_id} has no runtime {runtime.label!r}")
        return info

    def probe(self, runtime: Runtime, candidates: Sequence[Provider]) -> list[ProbeOutcome]:
        """Say which candidates have a measured case in the run."""
        return [self._probe(runtime, provider) for provider in candidates]

    def reference(self, case: Case, folder: Path) -> Path:
        """Return a path; nothing is written, since accuracy is recorded too."""
        return folder / f"replayed-{case.model.digest[:16]}.npz"

    def reference_spread(
        self, case: Case, reference: Path, magnitudes: tuple[float, ...] = ()
    ) -> ReferenceSpread:
        """Return the recorded spread."""
        del reference, magnitudes
        result = self._results.get(case.key)
        recorded = result.accuracy if result is not None else None
        spread = recorded.spread if recorded is not None else None
        return spread or ReferenceSpread(reason="the recording holds no spread of the reference")

    def reference_scores(self, case: Case) -> Path:
        """Return a path; nothing is written, since scores are recorded too."""
        return Path(f"replayed-scores-{case.model.digest[:16]}.npz")

    def start_up(self, question: StartUp, *, deadline: float) -> StartTrial:  # noqa: ARG002
        """Refuse: a recording starts nothing."""
        raise _failure(f"run {self._run.run_id} can't start {question.case.case_id} again")

    def describe(self, path: Path, custom_ops: tuple[str, ...] = ()) -> ModelInterface:  # noqa: ARG002
        """Refuse: a recording opens no models."""
        raise _failure(f"run {self._run.run_id} can't describe {path.name}")

    def convert(self, conversion: Conversion, folder: Path, *, deadline: float) -> Converted:  # noqa: ARG002
        """Refuse: a recording holds durations and no models."""
        raise _failure(f"run {self._run.run_id} holds no {conversion.recipe.name} variant")

    def close(self) -> None:
        """Close every worker that was opened."""
        for worker in self.opened:
            worker.close()

    def _probe(self, runtime: Runtime, provider: Provider) -> ProbeOutcome:
        for result in self._run.cases:
            same = result.case.provider.label == provider.label
            if same and result.case.runtime.label == runtime.label and result.measurements:
                executed = result.placement.executed if result.placement is not None else {}
                return ProbeOutcome(provider=provider, usable=True, executed=executed)
        return ProbeOutcome(
            provider=provider, usable=False, reason=f"run {self._run.run_id} measured no case on it"
        )


def _failure(message: str) -> WorkerError:
    return WorkerError(Failure(kind="error", phase="start", message=message))
