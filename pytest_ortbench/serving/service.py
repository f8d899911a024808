"""A service without its HTTP: it bounds, reads, checks, queues and answers requests."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Collection, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from pytest_ortbench.core.errors import OrtbenchError, first_line, says
from pytest_ortbench.serving.json_body import strict_json
from pytest_ortbench.serving.metrics import Observer
from pytest_ortbench.serving.protocol import (
    InferRequest,
    InferResponse,
    WireMessage,
    WireTensor,
    decode_request,
    encode_response,
    length_in,
)
from pytest_ortbench.serving.queue import QueueClosed, QueueFull, RequestQueue, Waiting
from pytest_ortbench.serving.runner import Expired, InputsRefused, ModelBroken, Runner
from pytest_ortbench.serving.served_model import VERSION, CheckedRequest, ServedModel
from pytest_ortbench.serving.steps import Steps
from pytest_ortbench.serving.tensor_values import ProtocolError

#: Bodies from this size on are read and written beside the loop, which answers others meanwhile.
_LARGE_BYTES = 256 * 1024
#: A client that was turned away may try again after so many seconds.
_RETRY_S = 1
#: What to do where this service answers no more.
ANOTHER_INSTANCE = "Send requests to another instance of the service"
#: How often the end looks whether requests are left, in seconds.
_LOOK_S = 0.01


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceLimits:
    """What a service bounds.

    Attributes:
        waiting: Requests that may wait for an inference; one more is answered with 429.
        body_bytes: Of a request; a larger one is answered with 413.
        held_bytes: Of the bodies of all requests that are inside; what goes beyond is answered with
            429. At least ``body_bytes``.
        timeout_s: From the head of a request to its response; then it is answered with 408 where
            its body did not come, else with 504.
        most_rows: Rows of a batch; 1 makes none.
        wait_s: How long a request waits for others, at most.
        callers: Inferences at a time.
    """

    waiting: int = 512
    body_bytes: int = 64 * 2**20
    held_bytes: int = 2**30
    timeout_s: float = 30.0
    most_rows: int = 1
    wait_s: float = 0.002
    callers: int = 1


class RequestRefused(OrtbenchError):
    """A request that is not answered with outputs.

    Args:
        status: Status code of HTTP.
        message: As of every error.
        place: As of every error.
        hint: As of every error.
    """

    def __init__(self, status: int, message: str, *, place: str = "", hint: str = "") -> None:
        self.status = status
        super().__init__(message, place=place, hint=hint)

    @property
    def headers(self) -> dict[str, str]:
        """What its response has beside the body."""
        return {"Retry-After": str(_RETRY_S)} if self.status in (429, 503) else {}


class Service:
    """Answers requests about one model.

    Attributes:
        draining: Whether it is about to end: it answers, and is not ready for more.

    Args:
        model: What answers.
        limits: What is bounded.
        observer: Hears of every request.
    """

    def __init__(self, model: ServedModel, limits: ServiceLimits, observer: Observer) -> None:
        self.model, self.limits = model, limits
        self.draining = False
        self._observer = observer
        joins = limits.most_rows if model.axes is not None else 1
        self._queue = RequestQueue(capacity=limits.waiting, most_rows=joins, wait_s=limits.wait_s)
        self._runner = Runner(model, self._queue, callers=limits.callers)
        self._inside = 0
        self._most_inside = limits.waiting + limits.callers * joins
        self._held_bytes = 0
        self._most_bytes = max(limits.held_bytes, limits.body_bytes)

    @property
    def not_ready(self) -> str:
        """Why it should get no requests; empty where it should."""
        if self.draining:
            return "the service is shutting down"
        return "the model can't run any more" if self._runner.broken else ""

    def start(self) -> None:
        """Begin to answer."""
        self._runner.start()

    @property
    def waiting(self) -> int:
        """Requests that wait for an inference."""
        return len(self._queue)

    async def end(self) -> None:
        """Answer every request that is inside, and end."""
        self.draining = True
        while self._inside:
            await asyncio.sleep(_LOOK_S)
        await asyncio.to_thread(self._runner.end)

    async def infer(
        self,
        name: str,
        version: str,
        header_length: str | None,
        body: AsyncIterator[bytes],
        steps: Steps | None = None,
    ) -> tuple[WireMessage, dict[str, str]]:
        """Return the response to a request, and the headers that go with it.

        Args:
            name: The model that is asked.
            version: Its version; empty for whichever there is.
            header_length: What the header ``HEADER_LENGTH`` says.
            body: Its parts.
            steps: Is told what becomes of it; ``None`` where nobody asks.

        Raises:
            RequestRefused: if it is not answered with outputs.
        """
        steps = steps or Steps()
        steps.began = time.monotonic()
        self._observer.came()
        self._inside += 1
        try:
            self.find(name, version)
            if self._inside > self._most_inside:
                raise RequestRefused(
                    429,
                    f"the service already has {self._most_inside} requests",
                    hint="Send the request again later",
                )
            answer = await self._answer(steps, header_length, body)
            steps.status = 200
            return answer
        except RequestRefused as error:
            steps.status = error.status
            raise
        finally:
            self._inside -= 1
            self._held_bytes -= steps.body_bytes
            steps.ended = time.monotonic()
            self._observer.went(steps.status, steps.ended - steps.began)

    def find(self, name: str, version: str) -> None:
        """Refuse a model or version that is not there.

        Raises:
            RequestRefused: if it is not.
        """
        if name != self.model.metadata.name:
            raise RequestRefused(
                404,
                f"this service has no model {name[:100]!r}",
                hint=f"The model is called {self.model.metadata.name!r}",
            )
        if version not in ("", VERSION):
            raise RequestRefused(
                404,
                f"the model has no version {version[:100]!r}",
                hint=f"The only version is {VERSION!r}",
            )

    async def _answer(
        self, steps: Steps, header_length: str | None, body: AsyncIterator[bytes]
    ) -> tuple[WireMessage, dict[str, str]]:
        content = await self._read(body, steps)
        read = time.monotonic()
        steps.add("read", steps.began, read)
        try:
            request, checked = await self._beside(
                len(content), self._decode, content, length_in(header_length)
            )
        except ProtocolError as error:
            raise _malformed(error, 400) from error
        steps.add("check", read, time.monotonic())
        waiting = await self._infer(checked, steps)
        assert waiting.started is not None
        assert waiting.ended is not None
        self._observer.ran(
            waiting.started - waiting.arrived, waiting.ended - waiting.started, waiting.together
        )
        outputs = [waiting.outputs[index] for index in checked.wanted]
        size = sum(output.nbytes for output in outputs)
        encoding = time.monotonic()
        try:
            message = await self._beside(size, self._encode, request, checked, outputs)
        except ProtocolError as error:
            raise _malformed(error, 406) from error
        steps.add("write", encoding, time.monotonic())
        return message, {**message.headers, "Server-Timing": steps.header}

    async def _read(self, body: AsyncIterator[bytes], steps: Steps) -> bytes:
        """Return the whole body, within the bounds of size and time."""

        async def all_parts() -> bytes:
            parts = []
            async for part in body:
                steps.body_bytes += len(part)
                self._held_bytes += len(part)
                if steps.body_bytes > self.limits.body_bytes:
                    raise too_large(self.limits)
                if self._held_bytes > self._most_bytes:
                    raise RequestRefused(
                        429,
                        f"the bodies of all requests have more than {self._most_bytes} bytes "
                        "together, the most allowed",
                        place="body",
                        hint="Send the request again later",
                    )
                parts.append(part)
            return parts[0] if len(parts) == 1 else b"".join(parts)

        try:
            return await asyncio.wait_for(all_parts(), self.limits.timeout_s)
        except asyncio.TimeoutError as error:
            raise RequestRefused(
                408,
                f"the body did not arrive within {self.limits.timeout_s:g} s",
                place="body",
                hint="Send it faster, or start the service with a longer --timeout",
            ) from error

    async def _beside(self, size: int, function: Any, *arguments: object) -> Any:
        """Call a function, in another thread where it has much to do."""
        if size < _LARGE_BYTES:
            return function(*arguments)
        return await asyncio.to_thread(function, *arguments)

    def _decode(
        self, content: bytes, header_length: int | None
    ) -> tuple[InferRequest, CheckedRequest]:
        request = decode_request(content, header_length, loads=_loads)
        return request, self.model.check(request)

    def _encode(
        self, request: InferRequest, checked: CheckedRequest, outputs: Sequence[Any]
    ) -> WireMessage:
        declared = [self.model.metadata.outputs[index] for index in checked.wanted]
        tensors = tuple(
            WireTensor(name=tensor.name, datatype=tensor.datatype, array=array)
            for tensor, array in zip(declared, outputs, strict=True)
        )
        response = InferResponse(
            model_name=self.model.metadata.name,
            model_version=VERSION,
            request_id=request.request_id,
            outputs=tensors,
        )
        binary: Collection[str] = request.binary_outputs([tensor.name for tensor in declared])
        return encode_response(response, binary=binary, dumps=msgspec.json.encode)

    async def _infer(self, checked: CheckedRequest, steps: Steps) -> Waiting:
        """Let a request wait, and return it with its outputs."""
        loop = asyncio.get_running_loop()
        answered: asyncio.Future[Waiting] = loop.create_future()

        def settle(waiting: Waiting) -> None:
            if not answered.done():
                answered.set_result(waiting)

        waiting = Waiting(
            feeds=checked.feeds,
            rows=checked.rows,
            kind=checked.kind,
            deadline=steps.began + self.limits.timeout_s,
            answer=lambda waiting: _tell(loop, settle, waiting),
        )
        try:
            self._queue.put(waiting)
        except QueueFull as error:
            raise RequestRefused(
                429,
                f"{self.limits.waiting} requests are waiting already",
                hint="Send the request again later",
            ) from error
        except QueueClosed as error:
            raise RequestRefused(
                503, "the service is shutting down", hint=ANOTHER_INSTANCE
            ) from error
        late = RequestRefused(
            504,
            f"the model did not answer within {self.limits.timeout_s:g} s",
            hint="Send the request again later, or start the service with a longer --timeout",
        )
        timer = loop.call_later(
            max(0.0, waiting.deadline - time.monotonic()), _fail, answered, late
        )
        try:
            await answered
        finally:
            timer.cancel()
            steps.add_waiting(waiting)
        if waiting.error is not None:
            raise _refused(waiting.error, late) from waiting.error
        return waiting


def too_large(limits: ServiceLimits) -> RequestRefused:
    """Return the refusal of a body that is too large."""
    return RequestRefused(
        413,
        f"the body has more than {limits.body_bytes} bytes, the most allowed",
        place="body",
        hint="Send less in one request, or start the service with a larger --body",
    )


def _tell(loop: asyncio.AbstractEventLoop, settle: Any, waiting: Waiting) -> None:
    loop.call_soon_threadsafe(settle, waiting)


def _fail(answered: asyncio.Future[Waiting], error: Exception) -> None:
    if not answered.done():
        answered.set_exception(error)


def _refused(error: Exception, late: RequestRefused) -> RequestRefused:
    """What a client is told of an inference that failed."""
    if isinstance(error, Expired):
        return late
    if isinstance(error, InputsRefused):
        return RequestRefused(
            422,
            f"the model does not run on these inputs. {says('ONNX Runtime', first_line(error))}",
            place="inputs",
            hint="Send values that the model takes",
        )
    if isinstance(error, ModelBroken):
        return RequestRefused(500, "the model stopped working", hint="Start the service again")
    return RequestRefused(
        500, "the inference failed", hint="Look into the log of the service, and start it again"
    )


def _malformed(error: ProtocolError, status: int) -> RequestRefused:
    return RequestRefused(status, error.message, place=error.place, hint=error.hint)


def _loads(text: bytes) -> object:
    """Read JSON, many times as fast as Python's own reader.

    Raises:
        ValueError: for what is none.
    """
    try:
        return msgspec.json.decode(text)
    except msgspec.DecodeError:
        return strict_json(text)  # takes half of a surrogate pair, and names what it does not take
    except RecursionError as error:
        raise ValueError("it is nested too deeply") from error
