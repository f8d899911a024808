"""Workers that are real processes, and the launcher that starts them."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

from pytest_ortbench.core.accuracy import ReferenceSpread
from pytest_ortbench.core.case import Case, Provider, Runtime
from pytest_ortbench.core.errors import WorkerError
from pytest_ortbench.core.failures import case_failure
from pytest_ortbench.core.outcome import Failure, RuntimeInfo
from pytest_ortbench.core.own_folder import OwnFolder
from pytest_ortbench.core.provider_kinds import CPU
from pytest_ortbench.launch.ahead import Ahead
from pytest_ortbench.launch.diagnose import graph_refused
from pytest_ortbench.launch.diagnose_providers import problem_of_plugin
from pytest_ortbench.launch.machine_lock import MachineLock
from pytest_ortbench.launch.memory_limit import default_limit
from pytest_ortbench.launch.native_text import readable
from pytest_ortbench.launch.process import WorkerProcess
from pytest_ortbench.launch.questioner import Questioner
from pytest_ortbench.launch.reference import reference_case, reference_file, reference_key
from pytest_ortbench.launch.seam import Launcher, ProbeOutcome, Worker
from pytest_ortbench.launch.service_process import ServiceProcess, Services
from pytest_ortbench.launch.yardstick_process import KeptYardsticks, YardstickProcess
from pytest_ortbench.passes.registry import PASSES
from pytest_ortbench.schema.case_questions import Open, Opened
from pytest_ortbench.schema.model_questions import MeasureSpread, WriteReference
from pytest_ortbench.schema.question import CaseQuestion, Question, case_in
from pytest_ortbench.schema.runtime_questions import (
    ChunkTaken,
    Inspect,
    Probed,
    ProbeProvider,
    TakeChunk,
)

A = TypeVar("A")

__all__ = ["Launcher", "ProbeOutcome", "ProcessLauncher", "ProcessWorker", "Worker"]

#: Inspecting or probing a runtime; engines of tiny models take seconds on some providers.
_LOOK_S = 120.0
_CURRENT = Runtime()

#: A first chunk that nothing else in a process comes near.
CHUNK_BYTES = 512 << 20

_ARENA_HINT = (
    "Leave arena_extend_strategy and arena_initial_chunk_bytes out of --ort-session-option"
)


class ProcessWorker:
    """A :class:`Worker` that is a real process.

    Attributes:
        opened: What it said of itself when the case was opened.

    Args:
        process: The process.
        questioner: Asks it.
        question: What opens the case.
    """

    def __init__(self, process: WorkerProcess, questioner: Questioner, question: Open) -> None:
        self._process = process
        self._questioner = questioner
        self.opened: Opened = questioner.ask(question)

    @property
    def pid(self) -> int:
        """Process id."""
        return self._process.pid

    @property
    def deadline(self) -> float:
        """Until when it must be done, of ``time.monotonic()``; may be moved."""
        return self._questioner.deadline

    @deadline.setter
    def deadline(self, deadline: float) -> None:
        self._questioner.deadline = deadline

    def ask(self, question: CaseQuestion[A]) -> A:
        """Ask about the case, and return the answer."""
        return self._questioner.ask(question)

    def pause(self) -> None:
        """Suspend the process with all its threads."""
        self._process.pause()

    def resume(self) -> None:
        """Let it go on."""
        self._process.resume()

    def close(self) -> None:
        """End the process; safe to repeat."""
        self._process.close()


class ProcessLauncher:
    """A :class:`Launcher` of real processes.

    Attributes:
        start_s: Seconds that a process of each runtime took to start, look at itself and end, by
            the label of the runtime; only of those that were inspected.
        services: Services that the run starts for its cases.

    Args:
        on_phase: Called with each phase that a worker enters; it must be quick.
        log_folder: Where native logs are kept, those that are not empty; ``None`` keeps none.
        memory_bytes: What memory a worker may take; ``None``: nearly all that is free.
        machine: The machine's turn, taken before a case is opened; ``None`` takes none.
    """

    def __init__(
        self,
        *,
        on_phase: Callable[[str], None] | None = None,
        log_folder: Path | None = None,
        memory_bytes: int | None = None,
        machine: MachineLock | None = None,
    ) -> None:
        self._machine = machine
        self.services = Services()
        self._memory_bytes = memory_bytes
        self._on_phase = on_phase
        self._own_logs: OwnFolder | None = None
        self._own_engines: OwnFolder | None = None
        self._own_answers: OwnFolder | None = None
        self._log_folder = log_folder
        self._numbers = itertools.count(1)
        self._live: list[WorkerProcess] = []
        self._yardsticks = KeptYardsticks(
            lambda runtime, label: self._start(runtime, label, quiet=True)
        )
        self._ahead = Ahead()
        self._inspected: dict[str, RuntimeInfo] = {}
        self.start_s: dict[str, float] = {}
        self._current_refers = True
        self._failed: dict[tuple[Path, str, float], Failure] = {}
        self._spreads: dict[tuple[Path, tuple[float, ...]], ReferenceSpread] = {}
        self._arenas = ArenaProofs(
            lambda question, runtime: self.ask(
                question, deadline=time.monotonic() + _LOOK_S, runtime=runtime
            )
        )

    def open(self, case: Case, *, worker: int, deadline: float | None) -> ProcessWorker:
        """Start a fresh process, create the session, run the first inference."""
        if deadline is None:
            deadline = time.monotonic() + case.sampling.timeout_s
        if self._machine is not None:
            deadline += self._machine.take()
        refusal = self._arenas.refusal(case)
        if refusal is not None:
            raise WorkerError(refusal)
        # A service that starts is no part of what the case takes.
        began = time.monotonic()
        service = self.services.of(case)
        deadline += time.monotonic() - began
        process = self._ahead.take(case) or self._start_for(case, worker)
        try:
            told = None if service is None else service.read_log
            questioner = Questioner(process, case.runtime, deadline, case=case, service_log=told)
            return ProcessWorker(process, questioner, self._open(case))
        except BaseException:
            process.close()
            raise

    @contextmanager
    def ahead(self, cases: Sequence[Case], *, worker: int, deadline: float) -> Iterator[None]:
        """Let the processes of cases start side by side that are opened inside the block."""
        try:
            self._ahead.start(cases, lambda case: self._start_for(case, worker), deadline)
            yield
        finally:
            self._ahead.close()

    def service_of(self, case: Case) -> ServiceProcess | None:
        """Return the service of a case, if the run starts it."""
        return self.services.of(case)

    def yardstick(self, name: str, *, threads: int) -> YardstickProcess:
        """Return the process of a yardstick; the progress that is shown stays that of its case."""
        return self._yardsticks.of(name, threads=threads)

    def ask(
        self,
        question: Question[A],
        *,
        deadline: float,
        runtime: Runtime | None = None,
        label: str = "",
    ) -> A:
        """Ask a fresh process one question, after whose answer it ends."""
        case = case_in(question)
        if runtime is None:
            runtime = _CURRENT if case is None else case.runtime
        name = label or ("" if case is None else case.case_id)
        process = self._start(runtime, f"{name}-{type(question).__name__}".lstrip("-"))
        try:
            return Questioner(process, runtime, deadline, case=case).ask(question)
        finally:
            process.close()

    def inspect(self, runtime: Runtime) -> RuntimeInfo:
        """Say what a runtime is; asked once for each label."""
        if runtime.label not in self._inspected:
            began = time.monotonic()
            self._inspected[runtime.label] = self._inspect(runtime)
            self.start_s[runtime.label] = time.monotonic() - began
        return self._inspected[runtime.label]

    def probe(self, runtime: Runtime, candidates: Sequence[Provider]) -> list[ProbeOutcome]:
        """Say which of the providers really run there, each in a throwaway process."""
        return [self._probe(runtime, provider) for provider in candidates]

    def reference(self, case: Case, folder: Path) -> Path:
        """Return a file of feeds and reference outputs for the case, tried once a folder.

        The reference that the user named, else the model's own file, runs on the CPU without
        optimisation, on the same inputs: in the interpreter that runs pytest if it can, else in
        the case's own.
        """
        case = reference_case(case)
        path = reference_file(case, folder)
        if path.exists():
            return path
        folder.mkdir(parents=True, exist_ok=True)
        # The file appears when it is complete, so a killed worker leaves none.
        self._ask_reference(case, path, lambda case: WriteReference(case=case, path=str(path)))
        return path

    def written_by_reference(
        self, case: Case, kind: str, question: Callable[[Case, Path], Question[None]]
    ) -> Path:
        """Return a file that the reference of a case writes, asked for once."""
        case = reference_case(case)
        if self._own_answers is None:
            self._own_answers = OwnFolder("answers")
        path = self._own_answers.path / f"{kind}-{reference_key(case)}.npz"
        if not path.exists():
            self._ask_reference(case, path, lambda case: question(case, path))
        return path

    def reference_spread(
        self, case: Case, reference: Path, magnitudes: tuple[float, ...] = ()
    ) -> ReferenceSpread:
        """Say how far the reference behind a file of :meth:`reference` differs from itself."""
        key = (reference, magnitudes)
        if key not in self._spreads:
            self._spreads[key] = self._ask_reference(
                reference_case(case),
                reference,
                lambda case: MeasureSpread(
                    case=case, reference=str(reference), magnitudes=magnitudes
                ),
            )
        return self._spreads[key]

    def _ask_reference(self, case: Case, path: Path, question: Callable[[Case], Question[A]]) -> A:
        """Ask in the interpreter that runs pytest if that can answer, else in the case's own.

        Args:
            case: A case of :func:`reference_case`.
            path: The file that the question is about.
            question: Asks about the case in another runtime.
        """
        own = case.runtime
        if own.label != _CURRENT.label and not case.session.custom_ops and self._current_refers:
            try:
                return self._ask_once(replace(case, runtime=_CURRENT), path, question)
            except WorkerError as error:
                # Without ONNX Runtime here, or with one that is too old for the model, the case's
                # own runtime has to do; custom operators may be built for that one only.
                self._current_refers = error.failure.kind != "unavailable"
        return self._ask_once(case, path, question)

    def _ask_once(self, case: Case, path: Path, question: Callable[[Case], Question[A]]) -> A:
        """Ask, or fail as it failed there before: every provider and precision asks.

        A reference that is too slow would take its whole timeout again for each of them.
        """
        key = (path, case.runtime.label, case.sampling.timeout_s)
        if key in self._failed:
            raise WorkerError(self._failed[key])
        try:
            # The process has the case's timeout for itself.
            deadline = time.monotonic() + case.sampling.timeout_s
            return self.ask(question(case), deadline=deadline)
        except WorkerError as error:
            self._failed[key] = error.failure
            raise

    def close(self) -> None:
        """End every worker that is left."""
        for process in self._live:
            process.close()
        self._live.clear()
        self.services.close()
        for folder in (self._own_logs, self._own_engines, self._own_answers):
            if folder is not None:
                folder.close()
        self._own_logs = self._own_engines = self._own_answers = None

    def _inspect(self, runtime: Runtime) -> RuntimeInfo:
        try:
            info = self._look(runtime, Inspect(plugins=runtime.plugins))
            problems = info.plugin_problems.items()
            told = {name: problem_of_plugin(name, text) for name, text in problems}
            return replace(info, plugin_problems=told)
        except WorkerError as error:
            if error.failure.phase != "plug-ins":
                raise
            # A library that kills whoever loads it must not hide the providers that work.
            info = self._look(runtime, Inspect(load_plugins=False))
            told = {"plug-ins": f"one of them ends the process: {error.failure.message}"}
            return replace(info, plugin_problems=told)

    def _look(self, runtime: Runtime, question: Inspect) -> RuntimeInfo:
        deadline = time.monotonic() + _LOOK_S
        return self.ask(question, deadline=deadline, runtime=runtime, label=runtime.label)

    def _probe(self, runtime: Runtime, provider: Provider) -> ProbeOutcome:
        deadline = time.monotonic() + _LOOK_S
        try:
            process = self._start(runtime, f"probe-{provider.label}")
            try:
                questioner = Questioner(process, runtime, deadline, provider=provider)
                probed = questioner.ask(ProbeProvider(provider=provider))
                refused = graph_refused(process.read_log(), provider)
            finally:
                process.close()
        except WorkerError as error:
            failure = error.failure
            return ProbeOutcome(
                provider=provider, usable=False, reason=failure.message, failure=failure
            )
        executed: dict[str, int] = {}
        for placement in probed.placements.values():
            for name, count in placement.executed.items():
                executed[name] = executed.get(name, 0) + count
        if executed.get(provider.name, 0) > 0:
            return ProbeOutcome(provider=provider, usable=True, executed=executed)
        if refused is not None:
            reason = refused.message
        else:
            reason = _took_nothing(probed, ", ".join(sorted(executed)))
        return ProbeOutcome(
            provider=provider, usable=False, reason=reason, failure=refused, executed=executed
        )

    def _open(self, case: Case) -> Open:
        return Open(
            case=case,
            engines=self._engines(case),
            why_not={
                entry.name: entry.full_name(entry.why_not) for entry in PASSES if entry.why_not
            },
        )

    def _engines(self, case: Case) -> str:
        """Folder of the engines of this run, which one worker builds and the others load."""
        if not case.runtime.shares_files:
            return ""
        if self._own_engines is None:
            self._own_engines = OwnFolder("engines")
        return str(self._own_engines.path)

    def _start_for(self, case: Case, worker: int) -> WorkerProcess:
        return self._start(case.runtime, f"{case.case_id}-w{worker}")

    def _start(self, runtime: Runtime, label: str, *, quiet: bool = False) -> WorkerProcess:
        self._live = [process for process in self._live if not process.closed]
        name = "".join(c if c.isalnum() or c in "-.+" else "_" for c in label)[:120]
        number = next(self._numbers)
        log = self._logs() / f"{number:04d}-{name}.log"
        # Compiled modules are for workers on this machine, since they are larger than their
        # sources. All of these get them, the first one too: a heap in which sources were compiled
        # lets a session take some megabytes more or fewer.
        process = WorkerProcess(
            runtime,
            compiled=runtime.shares_files,
            log=log,
            memory_bytes=self._memory_bytes or default_limit(),
            on_phase=None if quiet else self._on_phase,
        )
        self._live.append(process)
        return process

    def _logs(self) -> Path:
        if self._log_folder is not None:
            self._log_folder.mkdir(parents=True, exist_ok=True)
            return self._log_folder
        if self._own_logs is None:
            self._own_logs = OwnFolder("logs")
        return self._own_logs.path


class ArenaProofs:
    """Proves once for each runtime that the two settings of its arena do something.

    Args:
        ask: Callable[[TakeChunk, Runtime], ChunkTaken]s a fresh process of a runtime.
    """

    def __init__(self, ask: Callable[[TakeChunk, Runtime], ChunkTaken]) -> None:
        self._ask = ask
        self._unproven: dict[str, str] = {}

    def refusal(self, case: Case) -> Failure | None:
        """Return why the arena of a case proves nothing; ``None`` if it works, or none is asked.

        Args:
            case: What is to be measured.

        Raises:
            WorkerError: if the runtime can't be asked.
        """
        if not case.session.sets_arena:
            return None
        if case.provider.name != CPU:
            reason = (
                "arena_extend_strategy and arena_initial_chunk_bytes are options of the CPU's "
                f"memory, but the provider is {case.provider.alias}"
            )
        else:
            label = case.runtime.label
            if label not in self._unproven:
                self._unproven[label] = self._try(case.runtime)
            reason = self._unproven[label]
        return case_failure(reason, _ARENA_HINT, phase="session") if reason else None

    def _try(self, runtime: Runtime) -> str:
        """Say why no effect is proven; empty if one is.

        Growing by powers of two, an arena begins with its first chunk; growing by what is
        requested, it takes no more than that. If both are seen, both settings are in force.
        """
        rises: list[int] = []
        for strategy in ("kNextPowerOfTwo", "kSameAsRequested"):
            taken = self._ask(TakeChunk(strategy=strategy, chunk_bytes=CHUNK_BYTES), runtime)
            if taken.risen_bytes is None:
                return (
                    "whether arena_extend_strategy and arena_initial_chunk_bytes have an effect "
                    f"can't be seen here: {taken.reason}"
                )
            rises.append(taken.risen_bytes)
        whole, exact = rises
        if whole < CHUNK_BYTES:
            return "this ONNX Runtime ignores arena_initial_chunk_bytes"
        if exact >= CHUNK_BYTES:
            return "this ONNX Runtime ignores arena_extend_strategy"
        return ""


def _took_nothing(probed: Probed, ran: str) -> str:
    # The quantised forms were tried after these, and went the same way.
    plain = [name for name in probed.placements if not name.startswith("quantised")]
    models = " and a ".join(plain or probed.placements)
    reason = f"it ran no computing node of a {models}, which ran on {ran or 'nothing'}"
    for model, text in probed.refused.items():
        reason += f"; a {model} failed: {readable(text)}"
    return reason
