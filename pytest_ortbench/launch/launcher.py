"""Workers that are real processes, and the launcher that starts them."""

from __future__ import annotations

import itertools
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from pytest_ortbench.core.accuracy import ReferenceSpread
from pytest_ortbench.core.case import Case, Provider, Runtime
from pytest_ortbench.core.errors import WorkerError
from pytest_ortbench.core.node_error import NodeErrors
from pytest_ortbench.core.outcome import Failure, RuntimeInfo
from pytest_ortbench.core.recipe import Conversion, Converted
from pytest_ortbench.core.start_up import StartTrial
from pytest_ortbench.launch import seal
from pytest_ortbench.launch.ahead import Ahead
from pytest_ortbench.launch.case_worker import ProcessWorker, ask, require_device
from pytest_ortbench.launch.diagnose import graph_refused
from pytest_ortbench.launch.native_text import readable
from pytest_ortbench.launch.process import WorkerProcess
from pytest_ortbench.launch.reference import reference_case, reference_key
from pytest_ortbench.launch.seam import Launcher, ProbeOutcome, Worker
from pytest_ortbench.launch.staging import Files, SharedFiles, StagedFiles, dataset_for
from pytest_ortbench.schema.pass_questions import StartUp
from pytest_ortbench.schema.protocol import (
    CompareNodes,
    Convert,
    DescribeModel,
    Done,
    Inspect,
    MeasureSpread,
    ModelInterface,
    Open,
    Opened,
    Probed,
    ProbeProvider,
    WriteReference,
    WriteScores,
)

__all__ = ["Launcher", "ProbeOutcome", "ProcessLauncher", "ProcessWorker", "Worker"]

#: Inspecting or probing a runtime; engines of tiny models take seconds on some providers.
_LOOK_S = 120.0
_CURRENT = Runtime()


class ProcessLauncher:
    """A :class:`Launcher` of real processes.

    Args:
        on_phase: Called with each phase that a worker enters; it must be quick.
        log_folder: Where native logs are kept, those that are not empty; ``None`` keeps none.
    """

    def __init__(
        self,
        *,
        on_phase: Callable[[str], None] | None = None,
        log_folder: Path | None = None,
    ) -> None:
        self._on_phase = on_phase
        self._own_logs: tempfile.TemporaryDirectory[str] | None = None
        self._own_engines: tempfile.TemporaryDirectory[str] | None = None
        self._own_scores: tempfile.TemporaryDirectory[str] | None = None
        self._log_folder = log_folder
        self._numbers = itertools.count(1)
        self._live: list[WorkerProcess] = []
        self._ahead = Ahead()
        self._inspected: dict[str, RuntimeInfo] = {}
        self._current_refers = True
        self._failed: dict[tuple[Path, str, float], Failure] = {}
        self._spreads: dict[tuple[Path, tuple[float, ...]], ReferenceSpread] = {}

    def open(self, case: Case, *, worker: int, deadline: float | None) -> ProcessWorker:
        """Start a fresh process, create the session, run the first inference."""
        if deadline is None:
            deadline = time.monotonic() + case.sampling.timeout_s
        process = self._ahead.take(case) or self._start_for(case, worker)
        try:
            sealed = seal.measured(case)
            sealed.check()
            files = _files(process, deadline, case)
            question = Open(case=files.case(case), engines=self._engines(case))
            opened = ask(process, question, Opened, deadline, case)
            require_device(process, case.provider)
            sealed.check()
        except BaseException:
            process.close()
            raise
        return ProcessWorker(process, case, opened, deadline, files, sealed)

    @contextmanager
    def ahead(self, cases: Sequence[Case], *, worker: int, deadline: float) -> Iterator[None]:
        """Let the processes of cases start side by side that are opened inside the block."""
        try:
            self._ahead.start(cases, lambda case: self._start_for(case, worker), deadline)
            yield
        finally:
            self._ahead.close()

    def start_up(self, question: StartUp, *, deadline: float) -> StartTrial:
        """Start a case in a fresh process under the conditions of the question."""
        case = question.case
        process = self._start(case.runtime, f"{case.case_id}-start-up")
        try:
            with seal.measured(case).held():
                there = _files(process, deadline, case).case(case)
                trial = ask(process, replace(question, case=there), StartTrial, deadline, case)
                require_device(process, case.provider)
            return trial
        finally:
            process.close()

    def inspect(self, runtime: Runtime) -> RuntimeInfo:
        """Say what a runtime is; asked once for each label."""
        if runtime.label not in self._inspected:
            self._inspected[runtime.label] = self._inspect(runtime)
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
        path = folder / f"reference-{reference_key(case)}.npz"
        if path.exists():
            return path
        folder.mkdir(parents=True, exist_ok=True)
        self._in_reference_runtime(case, path, self._write_reference)
        return path

    def reference_scores(self, case: Case) -> Path:
        """Return a file of what the reference scores on the case's labelled data, tried once."""
        case = reference_case(case)
        if self._own_scores is None:
            self._own_scores = _folder("scores")
        path = Path(self._own_scores.name) / f"scores-{reference_key(case)}.npz"
        if not path.exists():
            self._in_reference_runtime(case, path, self._write_scores)
        return path

    def reference_spread(
        self, case: Case, reference: Path, magnitudes: tuple[float, ...] = ()
    ) -> ReferenceSpread:
        """Say how far the reference behind a file of :meth:`reference` differs from itself."""
        key = (reference, magnitudes)
        if key not in self._spreads:
            case = reference_case(case)

            def look(case: Case, path: Path) -> None:
                self._spreads[key] = self._measure_spread(case, path, magnitudes)

            self._in_reference_runtime(case, reference, look)
        return self._spreads[key]

    def _measure_spread(
        self, case: Case, reference: Path, magnitudes: tuple[float, ...]
    ) -> ReferenceSpread:
        deadline = time.monotonic() + case.sampling.timeout_s
        process = self._start(case.runtime, f"{case.case_id}-spread")
        try:
            files = _files(process, deadline, case)
            with seal.source(case).held():
                question = MeasureSpread(
                    case=files.source(case),
                    reference=files.send(reference, reference.name),
                    magnitudes=magnitudes,
                )
                return ask(process, question, ReferenceSpread, deadline, case)
        finally:
            process.close()

    def _in_reference_runtime(
        self, case: Case, path: Path, write: Callable[[Case, Path], None]
    ) -> None:
        """Do it in the interpreter that runs pytest if that can, else in the case's own."""
        own = case.runtime
        if own.label != _CURRENT.label and not case.session.custom_ops and self._current_refers:
            try:
                self._try_once(replace(case, runtime=_CURRENT), path, write)
                return
            except WorkerError as error:
                # Without ONNX Runtime here, or with one that is too old for the model, the case's
                # own runtime has to do; custom operators may be built for that one only.
                self._current_refers = error.failure.kind != "unavailable"
        self._try_once(case, path, write)

    def _try_once(self, case: Case, path: Path, write: Callable[[Case, Path], None]) -> None:
        """Write it, or fail as it failed there before: every provider and precision asks for it.

        A reference that is too slow would take its whole timeout again for each of them.
        """
        key = (path, case.runtime.label, case.sampling.timeout_s)
        if key in self._failed:
            raise WorkerError(self._failed[key])
        try:
            write(case, path)
        except WorkerError as error:
            self._failed[key] = error.failure
            raise

    def _write_reference(self, case: Case, path: Path) -> None:
        deadline = time.monotonic() + case.sampling.timeout_s
        process = self._start(case.runtime, f"{case.case_id}-reference")
        try:
            # The file appears when it is complete, so a killed worker leaves none.
            files = _files(process, deadline, case)
            with seal.source(case).held(path):
                there = files.source(case)
                written = files.place_of(path, there.model.path)
                ask(process, WriteReference(case=there, path=written), Done, deadline, case)
                files.fetch(written, path)
        finally:
            process.close()

    def _write_scores(self, case: Case, path: Path) -> None:
        deadline = time.monotonic() + case.sampling.timeout_s
        process = self._start(case.runtime, f"{case.case_id}-scores")
        try:
            files = _files(process, deadline, case)
            with seal.source(case).held(path):
                there, dataset = files.source(case), dataset_for(files, case)
                written = files.place_of(path, there.model.path)
                question = WriteScores(case=there, dataset=dataset, path=written)
                ask(process, question, Done, deadline, case)
                files.fetch(written, path)
        finally:
            process.close()

    def describe(self, path: Path, custom_ops: tuple[str, ...] = ()) -> ModelInterface:
        """Say what a model takes and gives that only ONNX Runtime can read."""
        deadline = time.monotonic() + _LOOK_S
        process = self._start(_CURRENT, f"describe-{path.name}")
        try:
            return ask(
                process,
                DescribeModel(path=str(path), custom_ops=custom_ops),
                ModelInterface,
                deadline,
            )
        finally:
            process.close()

    def convert(self, conversion: Conversion, folder: Path, *, deadline: float) -> Converted:
        """Make a variant in an empty folder, in a worker of the host's own interpreter.

        The tools need ``onnx``, which the host has and a made runtime need not have; and what
        they leave in memory must not be there when something is measured.
        """
        name = f"convert-{Path(conversion.source).stem}-{conversion.recipe.name}"
        process = self._start(Runtime(command=(sys.executable,)), name)
        try:
            with seal.converted(conversion).held():
                question = Convert(conversion=conversion, folder=str(folder))
                return ask(process, question, Converted, deadline)
        finally:
            process.close()

    def node_errors(self, case: Case, *, samples: int) -> NodeErrors:
        """Compare the value of every node of a prepared case with its reference's, on the CPU."""
        right = reference_case(case)
        deadline = time.monotonic() + case.sampling.timeout_s
        process = self._start(_CURRENT, f"{case.case_id}-nodes")
        try:
            for sealed in (seal.measured(case), seal.source(right)):
                sealed.check()
            question = CompareNodes(
                case=replace(case, inputs=right.inputs), reference=right.model.path, samples=samples
            )
            return ask(process, question, NodeErrors, deadline, case)
        finally:
            process.close()

    def close(self) -> None:
        """End every worker that is left."""
        for process in self._live:
            process.close()
        self._live.clear()
        for folder in (self._own_logs, self._own_engines, self._own_scores):
            if folder is not None:
                folder.cleanup()
        self._own_logs = self._own_engines = self._own_scores = None

    def _inspect(self, runtime: Runtime) -> RuntimeInfo:
        try:
            return self._look(runtime, Inspect(plugins=runtime.plugins))
        except WorkerError as error:
            if error.failure.phase != "plug-ins":
                raise
            # A library that kills whoever loads it must not hide the providers that work.
            info = self._look(runtime, Inspect(load_plugins=False))
            problems = {"plug-ins": f"one of them ends the process: {error.failure.message}"}
            return replace(info, plugin_problems=problems)

    def _look(self, runtime: Runtime, question: Inspect) -> RuntimeInfo:
        deadline = time.monotonic() + _LOOK_S
        process = self._start(runtime, f"inspect-{runtime.label}")
        try:
            return ask(process, question, RuntimeInfo, deadline)
        finally:
            process.close()

    def _probe(self, runtime: Runtime, provider: Provider) -> ProbeOutcome:
        deadline = time.monotonic() + _LOOK_S
        try:
            process = self._start(runtime, f"probe-{provider.label}")
            try:
                question = ProbeProvider(provider=provider)
                probed = ask(process, question, Probed, deadline, provider=provider)
                require_device(process, provider)
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

    def _engines(self, case: Case) -> str:
        """Folder of the engines of this run, which one worker builds and the others load."""
        if not case.runtime.shares_files:
            return ""
        if self._own_engines is None:
            self._own_engines = _folder("engines")
        return self._own_engines.name

    def _start_for(self, case: Case, worker: int) -> WorkerProcess:
        return self._start(case.runtime, f"{case.case_id}-w{worker}")

    def _start(self, runtime: Runtime, label: str) -> WorkerProcess:
        self._live = [process for process in self._live if not process.closed]
        name = "".join(c if c.isalnum() or c in "-.+" else "_" for c in label)[:120]
        number = next(self._numbers)
        log = self._logs() / f"{number:04d}-{name}.log"
        # Of two workers the second one gains by what the host compiles; the modules are for those
        # on this machine, since they are larger than their sources.
        compiled = number > 1 and runtime.shares_files
        process = WorkerProcess(runtime, compiled=compiled, log=log, on_phase=self._on_phase)
        self._live.append(process)
        return process

    def _logs(self) -> Path:
        if self._log_folder is not None:
            self._log_folder.mkdir(parents=True, exist_ok=True)
            return self._log_folder
        if self._own_logs is None:
            self._own_logs = _folder("logs")
        return Path(self._own_logs.name)


def _folder(kind: str) -> tempfile.TemporaryDirectory[str]:
    """A folder of the run's own; what a worker on Windows holds open still is left behind."""
    return tempfile.TemporaryDirectory(prefix=f"ortbench-{kind}-", ignore_cleanup_errors=True)


def _files(process: WorkerProcess, deadline: float, case: Case) -> Files:
    """How the worker gets the host's files."""
    if case.runtime.shares_files:
        return SharedFiles()
    return StagedFiles(lambda question, answer: ask(process, question, answer, deadline, case))


def _took_nothing(probed: Probed, ran: str) -> str:
    # The quantised forms were tried after these, and went the same way.
    plain = [name for name in probed.placements if not name.startswith("quantised")]
    models = " and a ".join(plain or probed.placements)
    reason = f"it took no computing node of a {models}, which ran on {ran or 'nothing'}"
    for model, text in probed.refused.items():
        reason += f"; a {model} failed: {readable(text)}"
    return reason
