"""The seam between whoever measures and the processes that are measured."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from pytest_ortbench.core.accuracy import ReferenceSpread
from pytest_ortbench.core.case import Case, InputSpec, Provider, Runtime
from pytest_ortbench.core.energy import Energy
from pytest_ortbench.core.load import LoadTest
from pytest_ortbench.core.outcome import (
    Accuracy,
    Block,
    Failure,
    Memory,
    OutputCheck,
    Placement,
    RuntimeInfo,
    Startup,
    WarmUp,
)
from pytest_ortbench.core.profile import OperatorProfile
from pytest_ortbench.core.recipe import Conversion, Converted
from pytest_ortbench.core.soak import Soak
from pytest_ortbench.core.stages import FrameBlock, StagesReady
from pytest_ortbench.core.start_up import StartTrial
from pytest_ortbench.core.task import TaskAccuracy
from pytest_ortbench.schema.pass_questions import PutUnderLoad, StartUp
from pytest_ortbench.schema.protocol import ModelInterface, OutputsCompared, OutputsWritten


class Worker(Protocol):
    """One case in one measured process, open and run once.

    Every method raises :class:`~pytest_ortbench.core.errors.WorkerError`.
    """

    @property
    def info(self) -> RuntimeInfo:
        """The interpreter that measures."""

    @property
    def startup(self) -> Startup:
        """What happened once: import, session creation, first inference."""

    @property
    def threads(self) -> int:
        """Intra-op threads in force."""

    @property
    def threads_source(self) -> str:
        """Why that number."""

    @property
    def cpus(self) -> int:
        """CPUs that the process may use."""

    @property
    def options_in_force(self) -> dict[str, str]:
        """Provider options that the session reads back."""

    @property
    def unconfirmed(self) -> dict[str, str]:
        """Options of session and provider that nothing confirms, and why not."""

    @property
    def clock_pair_ns(self) -> int:
        """Cost of a pair of clock readings."""

    @property
    def no_energy(self) -> str:
        """Why the energy of the device can't be measured; empty if it can."""

    def warm(self, budget_s: float) -> WarmUp:
        """Run until no trend is left, ``budget_s`` seconds at most."""

    def block(self, iterations: int) -> Block:
        """Time single inferences in a row."""

    def memory(self) -> Memory:
        """Say what session and runs took; ask before :meth:`profile`."""

    def check(self, run: str) -> OutputCheck:
        """Look at the outputs of one more, untimed inference."""

    def profile(self) -> Placement:
        """Prove what ran where; the measured session is released, so no block can follow."""

    def accuracy(self, reference: Path) -> Accuracy:
        """Compare outputs with a file of :meth:`Launcher.reference`."""

    def write_outputs(
        self, path: Path, inputs: tuple[InputSpec, ...], magnitudes: tuple[float, ...]
    ) -> OutputsWritten:
        """Write outputs on drawn inputs to a file, for the other side of a gate.

        Args:
            path: The file to make.
            inputs: What both sides are fed.
            magnitudes: Factors on drawn float inputs.
        """

    def compare_sides(self, path: Path, *, is_baseline: bool) -> OutputsCompared:
        """Compare outputs with what the other side of a gate wrote.

        Args:
            path: What the other side wrote.
            is_baseline: Whether this side is the baseline.
        """

    def energy(self, budget_s: float) -> Energy:
        """Put the session under load and read the device's meter, ``budget_s`` at most."""

    def soak(self, seconds: float, shapes: tuple[tuple[InputSpec, ...], ...] = ()) -> Soak:
        """Run on and on for so long, and watch resident memory.

        Args:
            seconds: How long.
            shapes: Inputs that are fed in turn, from one caller; empty: the case's own.
        """

    def task(self, reference: Path | None) -> TaskAccuracy:
        """Score the case's labelled data, beside a file of :meth:`Launcher.reference_scores`."""

    def write_scores(self, path: Path) -> None:
        """Score the case's labelled data, and write the scores to a file for :meth:`task`."""

    def load_stages(self, path: str, budget_s: float) -> StagesReady:
        """Load the user's file of stages, check it, and warm it up, ``budget_s`` at most."""

    def frames(self, count: int, *, overlapped: bool = False) -> FrameBlock:
        """Send frames through the stages that were loaded, with a thread for each if asked."""

    def load(self, asked: PutUnderLoad) -> LoadTest:
        """Run one test of MLPerf's load generator."""

    def operators(self, trace: Path | None = None) -> OperatorProfile:
        """Say where the time of an inference goes, and keep the profiler's trace if asked.

        The measured session is released, so no block can follow.
        """

    def pause(self) -> None:
        """Suspend the process with all its threads."""

    def resume(self) -> None:
        """Let it go on."""

    def close(self) -> None:
        """End the process; safe to repeat."""


class Launcher(Protocol):
    """Starts workers. Every method raises :class:`~pytest_ortbench.core.errors.WorkerError`."""

    def open(self, case: Case, *, worker: int, deadline: float | None) -> Worker:
        """Start a fresh process, create the session, run the first inference.

        Args:
            case: What to measure.
            worker: Index among the case's workers, from 0.
            deadline: Until when the worker must be done with everything, of ``time.monotonic()``;
                ``None`` takes the case's own timeout from now on.
        """

    def ahead(
        self, cases: Sequence[Case], *, worker: int, deadline: float
    ) -> AbstractContextManager[None]:
        """Let the processes of cases start side by side that are opened inside the block.

        Starting an interpreter and importing ONNX Runtime takes longer than making a session of a
        small model. What is measured when a case is opened is still measured one at a time, but
        for the time of the import.

        Args:
            cases: What will be opened, each once.
            worker: As for :meth:`open`.
            deadline: As for :meth:`open`.
        """

    def inspect(self, runtime: Runtime) -> RuntimeInfo:
        """Say what a runtime is."""

    def probe(self, runtime: Runtime, candidates: Sequence[Provider]) -> list[ProbeOutcome]:
        """Say which of the providers really run there."""

    def reference(self, case: Case, folder: Path) -> Path:
        """Return a file of feeds and reference outputs for the case, tried once a folder."""

    def reference_spread(
        self, case: Case, reference: Path, magnitudes: tuple[float, ...] = ()
    ) -> ReferenceSpread:
        """Say how far the reference behind a file of :meth:`reference` differs from itself.

        Args:
            case: The case that the file was made for.
            reference: The file.
            magnitudes: Only input sets of these magnitudes count; empty for all.
        """

    def reference_scores(self, case: Case) -> Path:
        """Return a file of what the reference scores on the case's labelled data, tried once."""

    def start_up(self, question: StartUp, *, deadline: float) -> StartTrial:
        """Start a case in a fresh process under the conditions of the question."""

    def describe(self, path: Path, custom_ops: tuple[str, ...] = ()) -> ModelInterface:
        """Say what a model takes and gives that only ONNX Runtime can read."""

    def convert(self, conversion: Conversion, folder: Path, *, deadline: float) -> Converted:
        """Make a variant in an empty folder, in a worker of the host's own interpreter."""

    def close(self) -> None:
        """End every worker that is left."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbeOutcome:
    """Whether a provider really runs somewhere.

    Attributes:
        provider: The candidate.
        usable: Whether it executed a computing node of a tiny model.
        reason: Why not, in plain words; empty if it is usable.
        failure: The failure behind the reason, if there was one.
        executed: Number of computing nodes of the tiny models by provider.
    """

    provider: Provider
    usable: bool
    reason: str = ""
    failure: Failure | None = None
    executed: dict[str, int] = dataclasses.field(default_factory=dict)
