"""The threads of a service that call the session, and whose fault it is where a call fails."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from pytest_ortbench.core.errors import class_and_line
from pytest_ortbench.serving.queue import RequestQueue, Waiting


class InputsRefused(Exception):
    """The model does not run on these inputs, but on others it does."""


class ModelBroken(Exception):
    """The model does not run any more."""


class Expired(Exception):
    """A request waited longer than its client does."""


class Joinable(Protocol):
    """What is run: a model whose requests may be joined."""

    @property
    def sample(self) -> Mapping[str, Any]:
        """Inputs on which it is known to run."""

    def run(self, feeds: Mapping[str, Any]) -> Sequence[Any]:
        """Run once."""

    def joined(self, requests: Sequence[Mapping[str, Any]]) -> Mapping[str, Any]:
        """Return the feeds of several requests as those of one inference."""

    def apart(self, outputs: Sequence[Any], rows: Sequence[int]) -> Sequence[Sequence[Any]]:
        """Return the outputs of an inference by request."""


class Runner:
    """Takes batches from a queue, runs them, and answers each request, in threads of its own.

    A request that fails within a batch is run again alone, so that it spoils no other. If it fails
    alone, the model is run on its sample: whether that fails too tells whose fault it is.

    Attributes:
        broken: Whether the last such trial failed.

    Args:
        model: What is run.
        queue: Where requests come from.
        callers: Threads, each of which runs a batch at a time.
        clock: That of the queue.
    """

    def __init__(
        self,
        model: Joinable,
        queue: RequestQueue,
        *,
        callers: int = 1,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._model = model
        self._queue = queue
        self._clock = clock
        self.broken = False
        self._threads = [
            threading.Thread(target=self._work, name=f"inference-{number}", daemon=True)
            for number in range(callers)
        ]

    def start(self) -> None:
        """Begin to take requests."""
        for thread in self._threads:
            thread.start()

    def end(self) -> None:
        """Answer what waits, and end; no request is taken from now on."""
        self._queue.close()
        for thread in self._threads:
            thread.join()

    def run_batch(self, batch: Sequence[Waiting]) -> None:
        """Run the requests of a batch and answer each."""
        now = self._clock()
        alive = []
        for request in batch:
            if request.deadline <= now:
                request.error = Expired()
                request.answer(request)
            else:
                alive.append(request)
        if len(alive) > 1 and self._run_together(alive):
            return
        for request in alive:
            self._run_alone(request)

    def _work(self) -> None:
        while batch := self._queue.take():
            self.run_batch(batch)

    def _run_together(self, batch: Sequence[Waiting]) -> bool:
        """Whether one inference answered all."""
        started = self._clock()
        rows = [request.rows for request in batch]
        try:
            outputs = self._model.run(self._model.joined([request.feeds for request in batch]))
            pieces = self._model.apart(outputs, rows)
        except Exception:  # noqa: BLE001 - native errors have no common base class
            # Each request is run alone then, and told its own error.
            return False
        ended = self._clock()
        for request, own in zip(batch, pieces, strict=True):
            request.started, request.ended = started, ended
            request.together, request.outputs = sum(rows), own
            request.answer(request)
        return True

    def _run_alone(self, request: Waiting) -> None:
        request.started = self._clock()
        try:
            request.outputs = self._model.run(request.feeds)
            self.broken = False
        except Exception as error:  # noqa: BLE001 - native errors have no common base class
            request.error = self._whose_fault(error)
        request.ended, request.together = self._clock(), request.rows
        request.answer(request)

    def _whose_fault(self, error: Exception) -> Exception:
        try:
            self._model.run(self._model.sample)
        except Exception:  # noqa: BLE001 - native errors have no common base class
            self.broken = True
            return ModelBroken(class_and_line(error))
        self.broken = False
        return InputsRefused(class_and_line(error))
