"""What stands behind MLPerf's load generator: callers in this process, or a client that sends.

The generator calls :meth:`System.issue` at each arrival, which only puts the request into a queue;
the callers take from there, one inference at a time each. In the single-stream scenario there is
one request at a time, so the generator's own thread runs it and no hand-over is timed.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Sequence
from functools import partial
from time import perf_counter_ns
from types import ModuleType
from typing import Any

from pytest_ortbench.core.generation import GeneratedRequest
from pytest_ortbench.engines.seam import Sender

TOO_OLD = (
    "MLPerf's load generator in this runtime has no limits on tokens: run pip install -U "
    "mlcommons-loadgen there"
)


class NoGenerator(Exception):
    """The load generator is not installed here, or lacks what is asked of it."""


class System:
    """What the generator calls its system under test: a queue and the callers behind it.

    Attributes:
        error: What an inference raised; the rest is answered at once then.
        answered: Requests that were answered.
        first_ns: When the first query was issued; 0 before.
        last_ns: When the last request was answered.
        told: Requests that told of their first token; ``None`` where none do.
        new_tokens: Tokens of the last request.
    """

    def __init__(
        self, generator: ModuleType, calls: Sequence[Callable[..., object]], *, inline: bool
    ) -> None:
        self.error: Exception | None = None
        self.first_ns = 0
        self.told: int | None = None
        self.new_tokens = 2
        self._complete = generator.QuerySamplesComplete
        self._response = generator.QuerySampleResponse
        self._calls = calls
        self._inline = inline
        self._queue: queue.SimpleQueue[int | None] = queue.SimpleQueue()
        self._done = [[0, 0] for _ in calls]
        self._threads = [
            threading.Thread(target=self._serve, args=(call, done), daemon=True)
            for call, done in zip(calls, self._done, strict=True)
            if not inline
        ]
        for thread in self._threads:
            thread.start()

    @property
    def answered(self) -> int:
        return sum(count for count, _ in self._done)

    @property
    def last_ns(self) -> int:
        return max(at for _, at in self._done)

    def issue(self, samples: Sequence[Any]) -> None:
        """Take a query; called by the generator's thread."""
        if not self.first_ns:
            self.first_ns = perf_counter_ns()
        if self._inline:
            for sample in samples:
                self._answer(self._calls[0], self._done[0], sample.id)
        else:
            for sample in samples:
                self._queue.put(sample.id)

    def close(self) -> None:
        """End the callers."""
        for _ in self._threads:
            self._queue.put(None)
        for thread in self._threads:
            thread.join()

    def _respond(self, call: Callable[..., object], sample: int) -> object:
        """Run one request, and return what the generator is told of it."""
        call()
        return self._response(sample, 0, 0)

    def _serve(self, call: Callable[..., object], done: list[int]) -> None:
        while (sample := self._queue.get()) is not None:
            self._answer(call, done, sample)

    def _answer(self, call: Callable[..., object], done: list[int], sample: int) -> None:
        response: object = None
        if self.error is None:
            try:
                response = self._respond(call, sample)
            except Exception as error:  # noqa: BLE001 - raised once the generator has ended
                self.error = error
        self._complete([response or self._response(sample, 0, 0)])
        done[0] += 1
        done[1] = perf_counter_ns()


class SentSystem(System):
    """A system that answers in its own time: each request is sent when it arrives.

    Args:
        generator: The load generator.
        sender: Sends one request.
        of_tokens: Whether the generator is told of tokens.
    """

    def __init__(self, generator: ModuleType, sender: Sender, *, of_tokens: bool) -> None:
        super().__init__(generator, (), inline=False)
        self._sender = sender
        # Answers come from one thread.
        self._done = [[0, 0]]
        if of_tokens:
            self._first = _first_of(generator)
            self.told = 0

    def issue(self, samples: Sequence[Any]) -> None:
        """Take a query; called by the generator's thread."""
        if not self.first_ns:
            self.first_ns = perf_counter_ns()
        for sample in samples:
            tell = _Once(partial(self._tell, sample.id))
            self._sender.send(partial(self._answered, sample.id, tell), tell)

    def _tell(self, sample: int) -> None:
        if self.told is not None:
            self._first([self._response(sample, 0, 0, 1)])
            self.told += 1

    def _answered(self, sample: int, tell: Callable[[], None], tokens: int) -> None:
        response = self._response(sample, 0, 0)
        if self.told is not None:
            # Of a request that failed the first token is as late as all of it.
            tell()
            self.new_tokens = tokens or self.new_tokens
            response = self._response(sample, 0, 0, self.new_tokens)
        self._complete([response])
        self._done[0][0] += 1
        self._done[0][1] = perf_counter_ns()


class _Once:
    """Calls a function the first time that it is called itself."""

    def __init__(self, function: Callable[[], None]) -> None:
        self._function: Callable[[], None] | None = function

    def __call__(self) -> None:
        function, self._function = self._function, None
        if function is not None:
            function()


def _first_of(generator: ModuleType) -> Callable[[list[object]], object]:
    """Return what the generator is told of a first token by.

    Raises:
        NoGenerator: if it knows of none.
    """
    first = getattr(generator, "FirstTokenComplete", None)
    if first is None:
        raise NoGenerator(TOO_OLD)
    told: Callable[[list[object]], object] = first
    return told


class TokenSystem(System):
    """A system whose requests tell of their first token, and how many tokens they wrote."""

    def __init__(
        self, generator: ModuleType, calls: Sequence[Callable[..., object]], *, inline: bool
    ) -> None:
        self._first = _first_of(generator)
        super().__init__(generator, calls, inline=inline)
        self.told = 0

    def _respond(self, call: Callable[..., object], sample: int) -> object:
        """Run one request, and return what the generator is told of it."""

        def tell() -> None:
            self._first([self._response(sample, 0, 0, 1)])
            self.told = (self.told or 0) + 1

        request = call(tell)
        assert isinstance(request, GeneratedRequest)
        self.new_tokens = request.new_tokens
        return self._response(sample, 0, 0, request.new_tokens)
