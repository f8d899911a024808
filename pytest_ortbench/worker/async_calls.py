"""``run_async``: several inferences in flight, kept going by one thread."""

from __future__ import annotations

import queue
from array import array
from collections.abc import Callable, Mapping, Sequence
from time import perf_counter_ns
from types import ModuleType
from typing import TYPE_CHECKING

from pytest_ortbench.core.errors import WorkerError
from pytest_ortbench.core.failures import case_error

if TYPE_CHECKING:
    from onnxruntime import InferenceSession


class AsyncFailed(Exception):
    """What ``run_async`` handed its callback instead of outputs."""


def require_async(ort: ModuleType, *, threads: int, io: str) -> None:
    """Refuse what ``run_async`` can't do.

    Raises:
        WorkerError: ``unsupported``, with the reason.
    """
    if not hasattr(ort.InferenceSession, "run_async"):
        raise _unsupported(
            f"ONNX Runtime {ort.__version__} has no run_async, which --ort-calls=async measures",
            "Use ONNX Runtime 1.16 or newer, or --ort-calls=sync",
        )
    if io != "end-to-end":
        raise _unsupported(
            f"--ort-calls=async can't measure --ort-io={io}, since run_async takes arrays in the "
            "memory of the host",
            f"To keep --ort-io={io}, write --ort-calls=sync. To keep --ort-calls=async, write "
            "--ort-io=end-to-end",
        )
    if threads < 2:
        raise _unsupported(
            "--ort-calls=async needs a session with 2 threads or more, but this one has 1",
            "Use --ort-threads=2 or more, or --ort-calls=sync",
        )


def _unsupported(message: str, hint: str) -> WorkerError:
    return case_error(message, hint, phase="session")


class AsyncCalls:
    """Keeps inferences in flight: the next one is started when one is done.

    An inference lasts from its start to its callback, waiting for a thread included.

    Args:
        sessions: The sessions, each with ``each`` inferences in flight.
        feeds: What every inference is fed.
        each: Inferences in flight on each session.
    """

    def __init__(
        self, sessions: Sequence[InferenceSession], feeds: Mapping[str, object], callers: int
    ) -> None:
        self._slots = [session for session in sessions for _ in range(callers)]
        self._feeds = feeds

    def __call__(self, durations: array[int]) -> None:
        """Fill ``durations`` with the nanoseconds of one inference each, in order of their start.

        Raises:
            AsyncFailed: with ONNX Runtime's message, after all that was started is done.
        """
        clock, feeds = perf_counter_ns, self._feeds
        free: queue.SimpleQueue[int] = queue.SimpleQueue()
        errors: list[str] = []
        started = array("q", bytes(8 * len(durations)))
        for slot in range(len(self._slots)):
            free.put(slot)

        def done(_outputs: object, token: tuple[int, int], error: str) -> None:
            index, slot = token
            durations[index] = clock() - started[index]
            if error:
                errors.append(error)
            free.put(slot)

        for index in range(len(durations)):
            slot = free.get()
            if errors:
                free.put(slot)
                break
            started[index] = clock()
            self._slots[slot].run_async(None, feeds, done, (index, slot))
        for _ in self._slots:
            free.get()
        if errors:
            raise AsyncFailed(errors[0])

    def until(self, over: Callable[[int], bool]) -> None:
        """Keep inferences in flight until enough was run, and wait for those that were started.

        Args:
            over: Is called after each inference with the number of its place among those in
                flight, and says whether that was enough.

        Raises:
            AsyncFailed: with ONNX Runtime's message, after all that was started is done.
        """
        free: queue.SimpleQueue[int] = queue.SimpleQueue()
        errors: list[str] = []

        def done(_outputs: object, slot: int, error: str) -> None:
            if error:
                errors.append(error)
            free.put(slot)

        for slot, session in enumerate(self._slots):
            session.run_async(None, self._feeds, done, slot)
        running, ended = len(self._slots), False
        while running:
            slot = free.get()
            ended |= over(slot) or bool(errors)
            if ended:
                running -= 1
            else:
                self._slots[slot].run_async(None, self._feeds, done, slot)
        if errors:
            raise AsyncFailed(errors[0])
