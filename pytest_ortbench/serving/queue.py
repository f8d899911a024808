"""The bounded queue of a service: requests wait here, and leave in batches."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any


class QueueFull(Exception):
    """No more request may wait."""


class QueueClosed(Exception):
    """The service takes no request any more."""


@dataclass(slots=True, kw_only=True, eq=False)
class Waiting:
    """A request that waits for its inference.

    Attributes:
        feeds: What the session is fed, by name of the input.
        rows: Its size along the batch axis; 1 where there is none.
        kind: What other requests must have in common with it to share an inference.
        deadline: When its client gives up, by the clock of the queue.
        answer: Called once, with the request itself, from the thread that has its answer.
        arrived: When it came, by the clock of the queue.
        taken: When it was taken into a batch; ``None`` where the queue makes none.
        started: When its inference began; ``None`` where there was none.
        ended: When that ended; likewise.
        together: Rows of the inference that it took part in.
        outputs: What came of it, in the order of the model's outputs; empty where nothing did.
        error: Why nothing did.
    """

    feeds: Mapping[str, Any]
    rows: int
    kind: Hashable
    deadline: float
    answer: Callable[[Waiting], None]
    arrived: float = 0.0
    taken: float | None = None
    started: float | None = None
    ended: float | None = None
    together: int = 0
    outputs: Sequence[Any] = field(default_factory=tuple)
    error: Exception | None = None


class RequestQueue:
    """Requests in order of arrival.

    Args:
        capacity: How many may wait.
        most_rows: Rows of a batch, at most; 1 makes no batches.
        wait_s: How long the oldest request of a batch waits for others.
        clock: Seconds that only grow.
    """

    def __init__(
        self,
        *,
        capacity: int,
        most_rows: int = 1,
        wait_s: float = 0.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._capacity = capacity
        self._most_rows = most_rows
        self._wait_s = wait_s
        self._clock = clock
        self._waiting: deque[Waiting] = deque()
        self._changed = threading.Condition()
        self._closed = False

    def __len__(self) -> int:
        return len(self._waiting)

    def put(self, request: Waiting) -> None:
        """Let a request wait.

        Raises:
            QueueFull: if no more may wait.
            QueueClosed: if none is taken any more.
        """
        with self._changed:
            if self._closed:
                raise QueueClosed
            if len(self._waiting) >= self._capacity:
                raise QueueFull
            request.arrived = self._clock()
            self._waiting.append(request)
            # One thread may wait for a first request, another for those that fit into its batch.
            self._changed.notify_all()

    def take(self) -> list[Waiting]:
        """Wait for a request, and for those that fit into its batch, and return them.

        The first may be past its deadline. Nothing is returned when the queue is closed and empty.
        """
        with self._changed:
            while not self._waiting:
                if self._closed:
                    return []
                self._changed.wait()
            first = self._waiting.popleft()
            batch, rows = [first], first.rows
            if self._most_rows > 1:
                first.taken = self._clock()
            while rows < self._most_rows:
                rows += self._gather(batch, self._most_rows - rows)
                left_s = first.arrived + self._wait_s - self._clock()
                if rows >= self._most_rows or left_s <= 0 or self._closed:
                    break
                self._changed.wait(left_s)
            return batch

    def close(self) -> None:
        """Take no further request; those that wait are still handed out. Safe to repeat."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    def _gather(self, batch: list[Waiting], room: int) -> int:
        """Move requests of the same kind that fit into a batch; return their rows."""
        rows = 0
        for request in [*self._waiting]:
            if request.kind == batch[0].kind and request.rows <= room - rows:
                self._waiting.remove(request)
                request.taken = self._clock()
                batch.append(request)
                rows += request.rows
        return rows
