"""The process of a yardstick: numpy in the interpreter that runs pytest, whatever is measured."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

from pytest_ortbench.core.case import Runtime
from pytest_ortbench.core.yardstick import MOST_KEPT_THREADS, Yardstick, YardstickBlock
from pytest_ortbench.launch.process import WorkerProcess
from pytest_ortbench.launch.questioner import Questioner
from pytest_ortbench.schema.question import Question
from pytest_ortbench.schema.yardstick_questions import PrepareYardstick, TimeYardstick

A = TypeVar("A")

#: Libraries behind numpy make no threads of their own: those of a yardstick are in its own hands.
_THREADS = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "BLIS_NUM_THREADS")
_RUNTIME = Runtime(label="yardstick", environment=dict.fromkeys(_THREADS, "1"))

#: A start takes 0.3 to 1.2 s, a block some milliseconds; on a busy machine, many times as long.
_START_S, _BLOCK_S = 20.0, 10.0


class YardstickProcess:
    """A yardstick that is a process, suspended but for its blocks.

    Attributes:
        yardstick: What decides how fast it is.

    Args:
        start: Starts a process in a runtime.
        name: Which yardstick.
        threads: Threads that do its work.

    Raises:
        WorkerError: if it can't be started, or the threads of its library can't be told.
    """

    def __init__(
        self, start: Callable[[Runtime], WorkerProcess], name: str, *, threads: int
    ) -> None:
        self._process = start(_RUNTIME)
        try:
            self._questioner = Questioner(self._process, _RUNTIME, 0.0)
            question = PrepareYardstick(name=name, threads=threads)
            self.yardstick: Yardstick = self._ask(question, _START_S)
            self._process.pause()
        except BaseException:
            self._process.close()
            raise

    @property
    def pid(self) -> int:
        """Process id."""
        return self._process.pid

    @property
    def has_ended(self) -> bool:
        """Whether it is gone, also by itself."""
        return self._process.has_ended

    def time(self, units: int, *, untimed: int) -> YardstickBlock:
        """Let it go on, time units of its work, and suspend it again.

        Args:
            units: How many are timed.
            untimed: Units before these.

        Raises:
            WorkerError: if it died or hangs; it is gone then.
        """
        self._process.resume()
        block = self._ask(TimeYardstick(units=units, untimed=untimed), _BLOCK_S)
        self._process.pause()
        return block

    def close(self) -> None:
        """End the process; safe to repeat."""
        self._process.close()

    def _ask(self, question: Question[A], within_s: float) -> A:
        self._questioner.deadline = time.monotonic() + within_s
        return self._questioner.ask(question)


class KeptYardsticks:
    """The yardsticks that a run has started, each of which serves all cases that take it.

    A start takes 0.3 to 1.2 s, and processes of one yardstick differ by 0.3 % only.

    Args:
        start: Starts a process in a runtime, under a name.
    """

    def __init__(self, start: Callable[[Runtime, str], WorkerProcess]) -> None:
        self._start = start
        self._kept: list[YardstickProcess] = []

    def of(self, name: str, *, threads: int) -> YardstickProcess:
        """Return the process of a yardstick, started if there is none.

        The longest kept ones end where all together would take much memory.

        Args:
            name: Which yardstick.
            threads: Threads that do its work.

        Raises:
            WorkerError: as :class:`YardstickProcess` does.
        """
        self._kept = [process for process in self._kept if not _is_over(process)]
        for process in self._kept:
            if (process.yardstick.name, process.yardstick.threads) == (name, threads):
                return process
        while self._kept and threads + self._threads > MOST_KEPT_THREADS:
            self._kept.pop(0).close()
        process = YardstickProcess(
            lambda runtime: self._start(runtime, f"yardstick-{name}"), name, threads=threads
        )
        self._kept.append(process)
        return process

    @property
    def _threads(self) -> int:
        return sum(process.yardstick.threads for process in self._kept)


def _is_over(process: YardstickProcess) -> bool:
    """Return whether a process has ended, and give back what it leaves."""
    if process.has_ended:
        process.close()
    return process.has_ended
