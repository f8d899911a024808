"""Several callers at a time: threads that run inferences side by side, each timed singly."""

from __future__ import annotations

import itertools
import threading
from array import array
from collections.abc import Callable, Sequence
from time import perf_counter_ns


class Callers:
    """Threads that take inferences from a common heap until it is empty.

    So no caller waits for another but for the last inference of a block. The first caller is the
    thread that asks; the others sleep between blocks.

    Args:
        calls: One a caller: runs one inference to its end. Calls of one session are the same
            session's.
    """

    def __init__(self, calls: Sequence[Callable[[], object]]) -> None:
        self._calls = calls
        self._barrier = threading.Barrier(len(calls))
        self._take: Callable[[], int] = itertools.count().__next__
        self._durations: array[int] = array("q")
        self._error: Exception | None = None
        for call in calls[1:]:
            threading.Thread(target=self._serve, args=(call,), daemon=True).start()

    def __call__(self, durations: array[int]) -> None:
        """Fill ``durations`` with the nanoseconds of one inference each, in order of their start.

        Raises:
            Exception: what an inference raised, after all callers are done.
        """
        self._durations, self._error = durations, None
        self._take = itertools.count().__next__
        self._barrier.wait()
        self._run(self._calls[0])
        self._barrier.wait()
        if self._error is not None:
            raise self._error

    def close(self) -> None:
        """End the threads, so that nothing holds on to their sessions."""
        self._barrier.abort()

    def _serve(self, call: Callable[[], object]) -> None:
        try:
            while True:
                self._barrier.wait()
                self._run(call)
                self._barrier.wait()
        except threading.BrokenBarrierError:
            return

    def _run(self, call: Callable[[], object]) -> None:
        clock, take, durations = perf_counter_ns, self._take, self._durations
        try:
            # Taking is one step of the interpreter, so no two callers get the same.
            while (index := take()) < len(durations):
                started = clock()
                call()
                durations[index] = clock() - started
        except Exception as error:  # noqa: BLE001 - handed over to the thread that asked
            self._error = error
