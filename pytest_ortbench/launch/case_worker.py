"""A worker with an open case that is a real process."""

from __future__ import annotations

from typing import TypeVar

from pytest_ortbench.launch.process import WorkerProcess
from pytest_ortbench.launch.questioner import Questioner
from pytest_ortbench.schema.case_questions import Open, Opened
from pytest_ortbench.schema.question import CaseQuestion

A = TypeVar("A")


class ProcessWorker:
    """A :class:`~pytest_ortbench.launch.seam.Worker` that is a real process.

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
