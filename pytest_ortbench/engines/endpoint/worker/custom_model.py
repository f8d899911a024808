"""A model behind a function of the user's, which sends one request and returns its outputs."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pytest_ortbench.core.endpoint_address import EndpointAddress
from pytest_ortbench.core.errors import WorkerError
from pytest_ortbench.engines.endpoint.worker.exchange_error import ExchangeError
from pytest_ortbench.engines.endpoint.worker.http_client import HttpClient, Reply
from pytest_ortbench.engines.seam import NUMPY_TYPES, EngineRefusal, EngineTask
from pytest_ortbench.worker.generation.requests import nothing
from pytest_ortbench.worker.user_code import failed, load_file

#: Calls at a time of a function that waits for its answer itself.
_MOST_THREADS = 64


class CustomModel:
    """The requests of a model that a function carries out.

    The function takes arrays by the names of the inputs, and returns those of the outputs by their
    names, or in their order. It may be a coroutine; any other one is called in threads.

    Args:
        address: Its file and its name.
        task: What the model gives.

    Raises:
        EngineRefusal: if the file has no such function.
        WorkerError: if it can't be loaded.
    """

    def __init__(self, address: EndpointAddress, task: EngineTask) -> None:
        self._path = Path(address.file)
        try:
            function = getattr(load_file(self._path), address.function, None)
        except WorkerError as error:
            raise WorkerError(replace(error.failure, phase="session")) from error
        if not callable(function):
            raise EngineRefusal(
                f"{address.file} has no function {address.function!r}",
                kind="error",
                hint="Define it there, or correct its name in "
                f"--ort-endpoint=custom:{address.file}:{address.function}",
            )
        self._function: Callable[..., Any] = function
        self._name = address.function
        self._types = {tensor.name: NUMPY_TYPES.get(tensor.type) for tensor in task.outputs}
        self._threads = ThreadPoolExecutor(_MOST_THREADS, "custom-endpoint")

    def request(self, feeds: Mapping[str, Any]) -> CustomRequest:
        """Return the call that feeds arrays by the names of the inputs."""
        return CustomRequest(self._call, dict(feeds))

    def outputs(self, reply: Reply) -> Sequence[Any]:
        """Return the outputs of an answer, in the order of the model."""
        return reply.outputs or ()

    async def _call(self, feeds: Mapping[str, Any]) -> Reply:
        try:
            if inspect.iscoroutinefunction(self._function):
                answer = await self._function(feeds)
            else:
                loop = asyncio.get_running_loop()
                answer = await loop.run_in_executor(self._threads, self._function, feeds)
            if inspect.isawaitable(answer):  # of an object that is called like a coroutine
                answer = await answer
        except (Exception, SystemExit) as error:
            told = failed(self._path, self._name, error).failure.message
            raise ExchangeError("raised", told) from error
        outputs = self._arrays(answer)
        return Reply(b"".join(values.tobytes() for values in outputs), {}, tuple(outputs))

    def _arrays(self, answer: object) -> list[Any]:
        import numpy as np

        if isinstance(answer, Mapping):
            absent = [name for name in self._types if name not in answer]
            if absent:
                raise ExchangeError("invalid", f"{self._name} returned no output {absent[0]!r}")
            answer = [answer[name] for name in self._types]
        if not isinstance(answer, list | tuple) or len(answer) != len(self._types):
            raise ExchangeError(
                "invalid",
                f"{self._name} did not return the {len(self._types)} outputs of the model",
            )
        try:
            arrays = [np.asarray(values) for values in answer]
        except (ValueError, TypeError) as error:
            raise ExchangeError(
                "invalid", f"{self._name} returned what is no array: {error}"
            ) from None
        for array, (name, kind) in zip(arrays, self._types.items(), strict=True):
            if kind is not None and array.dtype != kind:
                raise ExchangeError(
                    "invalid", f"{self._name} returned {array.dtype} for {name!r}, not {kind}"
                )
        return arrays


@dataclass(frozen=True, slots=True)
class CustomRequest:
    """One call of the user's function.

    Attributes:
        call: Makes it.
        feeds: What it is given.
    """

    call: Callable[[Mapping[str, Any]], Any]
    feeds: Mapping[str, Any]

    @property
    def size_bytes(self) -> int:
        """Size of the arrays that the function is given."""
        return sum(int(values.nbytes) for values in self.feeds.values())

    def after(self, reply: Reply) -> CustomRequest:
        """Return itself: its answers are of any size."""
        del reply
        return self

    async def send(self, client: HttpClient, at_first: Callable[[], None] = nothing) -> Reply:
        """Call the function, and return what it returned.

        Raises:
            ExchangeError: if it raised, returned something else, or took too long.
        """
        del at_first
        try:
            reply: Reply = await asyncio.wait_for(self.call(self.feeds), client.timeout_s)
        except (TimeoutError, asyncio.TimeoutError):
            raise ExchangeError("timeout", f"no answer within {client.timeout_s:g} s") from None
        return reply
