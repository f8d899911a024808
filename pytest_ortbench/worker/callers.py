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
        self._work: Callable[[int], None] = self._run
        self._ended = False
        self._error: Exception | None = None
        for number in range(1, len(calls)):
            threading.Thread(target=self._serve, args=(number,), daemon=True).start()

    def __call__(self, durations: array[int]) -> None:
        """Fill ``durations`` with the nanoseconds of one inference each, in order of their start.

        Raises:
            Exception: what an inference raised, after all callers are done.
        """
        self._durations = durations
        self._take = itertools.count().__next__
        self._together(self._run)

    def until(self, over: Callable[[int], bool]) -> None:
        """Keep all callers busy until enough was run; then each ends the inference it is in.

        Args:
            over: Is called after each inference with the number of its caller, by one caller at a
                time, and says whether that was enough.

        Raises:
            Exception: what an inference or ``over`` raised, after all callers are done.
        """
        lock = threading.Lock()

        def work(number: int) -> None:
            call = self._calls[number]
            while not self._ended:
                call()
                with lock:
                    if over(number):
                        self._ended = True

        self._together(work)

    def close(self) -> None:
        """End the threads, so that nothing holds on to their sessions."""
        self._barrier.abort()

    def _together(self, work: Callable[[int], None]) -> None:
        """Let every caller do its work, and hand over what one of them raised."""
        self._work, self._ended, self._error = work, False, None
        self._barrier.wait()
        self._guarded(0)
        self._barrier.wait()
        if self._error is not None:
            raise self._error

    def _serve(self, number: int) -> None:
        try:
            while True:
                self._barrier.wait()
                self._guarded(number)
                self._barrier.wait()
        except threading.BrokenBarrierError:
            return

    def _guarded(self, number: int) -> None:
        try:
            self._work(number)
        except Exception as error:  # noqa: BLE001 - handed over to the thread that asked
            self._error = error
            self._ended = True

    def _run(self, number: int) -> None:
        call = self._calls[number]
        clock, take, durations = perf_counter_ns, self._take, self._durations
        # Taking is one step of the interpreter, so no two callers get the same.
        while (index := take()) < len(durations):
            started = clock()
            call()
            durations[index] = clock() - started
