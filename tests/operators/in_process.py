"""Workers that answer in the process which asks, for thousands of models that take microseconds.

Nothing of the measuring is left out, but the process of its own, and the warm-up beyond three runs.
Whoever uses it starts a process for each case, since a model may end it.
"""

from __future__ import annotations

import io
from typing import Any

from pytest_ortbench.core.case import Case
from pytest_ortbench.core.errors import WorkerError
from pytest_ortbench.core.outcome import Failure
from pytest_ortbench.launch.diagnose import diagnose
from pytest_ortbench.launch.evidence import Evidence
from pytest_ortbench.schema.case_questions import Open, Opened, WarmUpFor
from pytest_ortbench.schema.question import Question
from pytest_ortbench.worker.main import Conversation


class Here(Conversation):
    """A worker whose answers are not sent.

    Args:
        case: What is opened.
        opens: Whether it is: not for a single question.
    """

    opened: Opened

    def __init__(self, case: Case, *, opens: bool = True) -> None:
        super().__init__(io.BytesIO(), "")
        self._case = case
        if opens:
            self.opened = self.ask(Open(case=case))

    def ask(self, question: Question[Any]) -> Any:
        """Answer a question, or raise what the host would say of its failure."""
        if isinstance(question, WarmUpFor):
            question = WarmUpFor(budget_s=0.0)
        try:
            return self._handled(question)
        except Exception as error:  # native errors have no common base class
            refusal = self._refusal(error)
            failure = diagnose(Evidence(refusal=refusal, provider=self._case.provider))
            raise WorkerError(failure) from error

    def close(self) -> None:
        """Leave nothing behind."""
        self.end()


class InProcess:
    """A launcher of such workers, without references."""

    def open(self, case: Case, **_: object) -> Here:
        """Open a case."""
        return Here(case)

    def reference(self, *_: object) -> None:
        """Refuse: what is right is known from elsewhere.

        Raises:
            WorkerError: always.
        """
        raise WorkerError(Failure(kind="unsupported", phase="accuracy", message="not asked for"))
