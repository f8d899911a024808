"""Asks one process: a question goes out with its files, its answer or a failure comes back."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, TypeVar

from pytest_ortbench.core.case import Case, Provider, Runtime
from pytest_ortbench.core.errors import WorkerError
from pytest_ortbench.core.outcome import Failure, Placement
from pytest_ortbench.core.placement import is_fallback
from pytest_ortbench.launch import seal
from pytest_ortbench.launch.diagnose import Evidence, diagnose, graph_refused, left_device
from pytest_ortbench.launch.diagnose_providers import at_fault
from pytest_ortbench.launch.ending import tail
from pytest_ortbench.launch.other_side import with_side
from pytest_ortbench.launch.process import Refused, WorkerProcess
from pytest_ortbench.launch.staging import Files, SharedFiles, StagedFiles, travelling
from pytest_ortbench.launch.steps import EndSteps
from pytest_ortbench.schema.case_questions import ProfilePlacement
from pytest_ortbench.schema.file_questions import SeeContents
from pytest_ortbench.schema.question import Question, case_in

A = TypeVar("A")

#: Says what the native log, read when it is called, tells against an answer; ``None`` for nothing.
_Doubt = Callable[[Any, Callable[[], str], Provider], "Failure | None"]


class Questioner:
    """Asks one process.

    Files that a question names go to a process that does not see them, and come back from it. What
    the files of a case were when it was planned is compared with what they are after every answer.

    Attributes:
        deadline: Until when the process must be done, of ``time.monotonic()``; may be moved.

    Args:
        process: The process.
        runtime: Its interpreter.
        deadline: Until when the process must be done, of ``time.monotonic()``.
        case: What it is asked about, if that is a case.
        provider: What it is asked about, if that is a provider.
        service_log: Reads what the service of the case has printed, if the run has started one.
    """

    def __init__(
        self,
        process: WorkerProcess,
        runtime: Runtime,
        deadline: float,
        *,
        case: Case | None = None,
        provider: Provider | None = None,
        service_log: Callable[[], str] | None = None,
    ) -> None:
        self.deadline = deadline
        self._service_log = service_log
        self._process = process
        self._case = case
        self._provider = provider if case is None else case.provider
        self._runtime = runtime
        if self._provider is not None and self._provider.role in ("engine", "framework"):
            process.steps = EndSteps(
                another=f"install another version of {self._provider.name}, or leave "
                f"{self._provider.alias} out of --ort-providers"
            )
        if case is not None and case.session.custom_ops:
            process.steps = replace(process.steps, own=" and ".join(case.session.custom_ops))
        process.case = case
        if case is not None:
            process.time_limit_s = case.sampling.timeout_s
        self._seals: list[seal.Seal] = []
        self._files: Files = (
            SharedFiles() if runtime.shares_files else StagedFiles(self._answer, runtime.label)
        )

    def ask(self, question: Question[A]) -> A:
        """Ask, and return the answer.

        Raises:
            WorkerError: if the worker refuses, dies or is too slow, if a file that was named is
                another one by now, or if the native log tells against the answer.
            OSError: if a file that the worker wrote can't be stored.
        """
        for own in seal.of_question(question):
            own.check()
            self._seals.append(own)
        asked, written = travelling(question, self._files)
        try:
            answer = self._answer(asked)
        except WorkerError as error:
            case = self._case or case_in(question)
            told = with_side(error.failure, question, case, self._runtime, self._see)
            if told is error.failure:
                raise
            raise WorkerError(told) from error
        self._doubt(question, answer)
        for place, path in written:
            self._files.fetch(place, path)
        try:
            # An answer counts if it is about the files that the case names.
            for sealed in self._seals:
                sealed.check()
        except WorkerError:
            for _, path in written:
                path.unlink(missing_ok=True)
            raise
        return answer

    def _answer(self, question: Question[A]) -> A:
        self._process.begin(question, self.deadline)
        try:
            return wait_for_answer(
                self._process, question, self.deadline, case=self._case, provider=self._provider
            )
        except WorkerError as error:
            if self._service_log is None:
                raise
            # The worker was only told that there is no answer; the service says why.
            log = tail(error.failure.log_tail + self._service_log())
            raise WorkerError(replace(error.failure, log_tail=log)) from error

    def _see(self, question: SeeContents) -> Mapping[str, str]:
        return self._answer(question).contents

    def _doubt(self, question: Question[Any], answer: object) -> None:
        doubt = _elsewhere if question.opens_session else _DOUBTS.get(type(question))
        if doubt is None or self._provider is None:
            return
        failure = doubt(answer, self._process.read_log, self._provider)
        if failure is not None:
            raise WorkerError(replace(failure, log_tail=tail(self._process.read_log())))


def wait_for_answer(
    process: WorkerProcess,
    question: Question[A],
    deadline: float,
    *,
    case: Case | None = None,
    provider: Provider | None = None,
) -> A:
    """Wait for the answer, and turn a refusal into a failure with the native log's end.

    Args:
        process: Was asked.
        question: What it was asked.
        deadline: When the answer must have come, of ``time.monotonic()``.
        case: What the question is about, if that is a case.
        provider: What it is about, if that is a provider.
    """
    try:
        return process.finish(question, deadline)
    except Refused as refused:
        log = process.read_log()
        evidence = Evidence(
            refusal=refused.refusal,
            log=log,
            provider=at_fault(provider if case is None else case.provider, refused.refusal),
            custom_ops=() if case is None else case.session.custom_ops,
            case=case,
        )
        raise WorkerError(replace(diagnose(evidence), log_tail=tail(log))) from refused


def _elsewhere(_: object, log: Callable[[], str], provider: Provider) -> Failure | None:
    """Return the failure of a provider that left the asked device for another one by itself."""
    return left_device(log(), provider)


def _nothing_taken(
    placement: Placement, log: Callable[[], str], provider: Provider
) -> Failure | None:
    """Return the failure of a plug-in that refused every graph, with its reason."""
    return graph_refused(log(), provider) if is_fallback(placement) else None


_DOUBTS: dict[type[Question[Any]], _Doubt] = {
    ProfilePlacement: _nothing_taken,
}
