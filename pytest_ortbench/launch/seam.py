"""The seam between whoever measures and the processes that are measured."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, TypeVar

from pytest_ortbench.core.accuracy import ReferenceSpread
from pytest_ortbench.core.case import Case, Provider, Runtime
from pytest_ortbench.core.outcome import Failure, RuntimeInfo
from pytest_ortbench.core.yardstick import Yardstick, YardstickBlock
from pytest_ortbench.launch.service_process import ServiceProcess
from pytest_ortbench.schema.case_questions import Opened
from pytest_ortbench.schema.question import CaseQuestion, Question

A = TypeVar("A")


class Worker(Protocol):
    """One case in one measured process, open and run once."""

    @property
    def opened(self) -> Opened:
        """What it said of itself when the case was opened."""

    def ask(self, question: CaseQuestion[A]) -> A:
        """Ask about the case, and return the answer.

        Raises:
            WorkerError: if there is none, or if it does not count.
            OSError: if a file that the worker wrote elsewhere can't be stored here.
        """

    def pause(self) -> None:
        """Suspend the process with all its threads."""

    def resume(self) -> None:
        """Let it go on."""

    def close(self) -> None:
        """End the process; safe to repeat."""


class YardstickWorker(Protocol):
    """Reference work in a process of its own, suspended but for its blocks."""

    @property
    def yardstick(self) -> Yardstick:
        """What decides how fast it is."""

    def time(self, units: int, *, untimed: int) -> YardstickBlock:
        """Let it go on, time units of its work, and suspend it again.

        Args:
            units: How many are timed.
            untimed: Units before these.

        Raises:
            WorkerError: if it died or hangs; it is gone then.
        """

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

    def service_of(self, case: Case) -> ServiceProcess | None:
        """Return the service of a case, started if it is not there; ``None`` if it has none."""

    def yardstick(self, name: str, *, threads: int) -> YardstickWorker:
        """Return the process of a yardstick, which is suspended then.

        It may be that of an earlier case.

        Args:
            name: A key of :data:`~pytest_ortbench.core.yardstick.YARDSTICKS`.
            threads: Threads that do its work.
        """

    def ask(
        self,
        question: Question[A],
        *,
        deadline: float,
        runtime: Runtime | None = None,
        label: str = "",
    ) -> A:
        """Ask a fresh process one question, after whose answer it ends.

        Args:
            question: What to ask.
            deadline: Until when the answer must have come, of ``time.monotonic()``.
            runtime: The interpreter; ``None`` takes that of the case that the question names, or
                the one that runs this.
            label: Names the process in logs, beside the question.
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

    def written_by_reference(
        self, case: Case, kind: str, question: Callable[[Case, Path], Question[None]]
    ) -> Path:
        """Return a file that the reference of a case writes, asked for once.

        Args:
            case: The case whose reference is asked.
            kind: What the file holds; part of its name.
            question: Takes the case of the reference, and the file to write.
        """

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
