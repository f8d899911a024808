"""Processes that start and import ONNX Runtime side by side, for cases that are opened in turn."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from pytest_ortbench.core.case import Case
from pytest_ortbench.core.errors import WorkerError
from pytest_ortbench.launch.process import WorkerProcess
from pytest_ortbench.launch.questioner import wait_for_answer
from pytest_ortbench.schema.runtime_questions import ImportRuntime


@dataclass(slots=True)
class _Started:
    case: Case
    process: WorkerProcess | None = None
    failed: WorkerError | None = None


class Ahead:
    """Processes that nobody has opened a case in yet; what failed is kept for who opens it."""

    def __init__(self) -> None:
        self._started: list[_Started] = []

    def start(
        self,
        cases: Sequence[Case],
        start: Callable[[Case], WorkerProcess],
        deadline: float,
    ) -> None:
        """Start a process for each case, and return when all have imported ONNX Runtime.

        That of another engine starts alone: it never loads ONNX Runtime.

        Args:
            cases: What will be opened, each once.
            start: Starts a process without waiting for it.
            deadline: Until when they must be there, of ``time.monotonic()``.
        """
        self._started = [_Started(case) for case in cases]

        def spawn(early: _Started) -> None:
            early.process = start(early.case)

        def ask(early: _Started) -> None:
            assert early.process is not None
            if early.case.provider.is_execution_provider:
                early.process.begin(ImportRuntime(), deadline)

        def wait(early: _Started) -> None:
            assert early.process is not None
            if early.case.provider.is_execution_provider:
                wait_for_answer(early.process, ImportRuntime(), deadline, case=early.case)

        for step in (spawn, ask, wait):
            self._each(step)

    def take(self, case: Case) -> WorkerProcess | None:
        """Return the process of a case, ``None`` if none was started for it.

        Raises:
            WorkerError: what went wrong with it.
        """
        for index, early in enumerate(self._started):
            if early.case == case:
                del self._started[index]
                if early.failed is not None:
                    self._close(early)
                    raise early.failed
                return early.process
        return None

    def close(self) -> None:
        """End the processes that nobody took."""
        for early in self._started:
            self._close(early)
        self._started = []

    def _each(self, step: Callable[[_Started], None]) -> None:
        for early in self._started:
            if early.failed is not None:
                continue
            try:
                step(early)
            except WorkerError as error:
                early.failed = error

    def _close(self, early: _Started) -> None:
        if early.process is not None:
            early.process.close()
