"""An endpoint in the place of an engine: it is asked instead of run."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine, Mapping, Sequence
from typing import Any, Protocol, TypeVar

from pytest_ortbench.core.endpoint_address import OWN_ENCODING, EndpointAddress, address_of
from pytest_ortbench.engines.endpoint.worker.answer_check import ValueCheck
from pytest_ortbench.engines.endpoint.worker.custom_model import CustomModel
from pytest_ortbench.engines.endpoint.worker.exchange_error import ExchangeError
from pytest_ortbench.engines.endpoint.worker.grpc_model import GrpcModel, grpc_version
from pytest_ortbench.engines.endpoint.worker.http_client import AUTHORIZATION, HttpClient, Reply
from pytest_ortbench.engines.endpoint.worker.sender import EndpointSender
from pytest_ortbench.engines.endpoint.worker.sent_request import SentRequest
from pytest_ortbench.engines.endpoint.worker.v2_model import (
    V2Model,
    described_model,
    server_name,
    takes_binary,
    unfit_sizes,
    why_another_model,
)
from pytest_ortbench.engines.seam import (
    Engine,
    EngineRefusal,
    EngineTask,
    Inference,
    RightAnswer,
)
from pytest_ortbench.serving.protocol import ModelMetadata

T = TypeVar("T")

#: A request of which no limit is known; a service that needs longer is measured under a load.
_TIMEOUT_S = 60.0
#: What a failed exchange makes of a case: kinds of failures by those of exchanges.
_KINDS = {"refused": "unavailable", "timeout": "timeout"}
#: Statuses of a service that is there, and does not answer now, or not for this model.
_NOT_NOW = (404, 429, 503)
_START_IT = "If the service does not run, start it. If it runs elsewhere, correct --ort-endpoint"
_LOG = "See the log of the service, which may say why"
#: The next step by what became of a request that was answered.
_CORRECT_IT = "Correct what the service answers"
_STEPS = {
    "invalid": f"{_CORRECT_IT}. If it was another service that answered, correct --ort-endpoint",
    "redirect": "Change --ort-endpoint to the address that the service redirects to",
}
#: The next step by the status of an answer.
_AUTHORIZE = (
    f"Set the environment variable {AUTHORIZATION} to what the service expects in the header "
    "Authorization"
)
_STATUS_STEPS = {
    401: _AUTHORIZE,
    403: _AUTHORIZE,
    404: "Correct the path, or the name of the model, in --ort-endpoint",
    429: "Wait until the service has fewer requests, and run again",
    503: "Wait until the service is ready, and run again",
}


class AskedModel(Protocol):
    """The requests of a model that is asked for answers, and these."""

    def request(self, feeds: Mapping[str, Any]) -> SentRequest:
        """Return the request that feeds arrays by the names of the inputs."""

    def outputs(self, reply: Reply) -> Sequence[Any]:
        """Return the outputs of an answer, in the order of the model.

        Raises:
            ExchangeError: for what is no answer of this model.
        """


class Endpoint(Engine):
    """A model that a service runs."""

    _clients: ThreadClients | None = None
    _model: AskedModel | None = None

    def __init__(self, task: EngineTask) -> None:
        super().__init__(task)
        self._in_force: dict[str, str] = {}

    def load(self) -> str:
        """Import the client, and return its version; a function of the user's has its own."""
        if self._address().protocol == "custom":
            return ""
        if self._address().protocol == "grpc":
            return grpc_version()
        import aiohttp  # the extra that brings it need not be there

        return f"through aiohttp {aiohttp.__version__}"

    def threads(self) -> int:
        """Return 0: what the service has is not known."""
        return 0

    def _exchanged(self, step: Callable[[], T], hint: str = "") -> T:
        """Do a step of an exchange; a service that we started needs neither start nor address."""
        return exchanged(step, hint, is_ours="app" in self.task.options)

    def open(self) -> Inference:
        """Ask the service what it is and what it takes; return what sends one request and waits."""
        address = self._address()
        clients = self._opened()
        asked: AskedModel
        if address.protocol == "custom":
            asked = CustomModel(address, self.task)
            self._in_force = {"encoding": OWN_ENCODING}
        elif address.protocol == "grpc":
            asked = over_grpc = GrpcModel(address, self.task)
            self._require_model(self._exchanged(lambda: clients.run(over_grpc.described)), address)
            self._in_force = {"encoding": "binary"}
        else:
            asked = self._described(address, clients)
        self._model = asked
        self._in_force |= {"url": address.url, "protocol": address.protocol}
        if "app" in self.task.options:  # started by the host, and it answers
            self._in_force["app"] = self.task.options["app"]

        def infer(feeds: Mapping[str, Any]) -> Sequence[Any]:
            request = asked.request(feeds)
            return self._exchanged(
                lambda: asked.outputs(clients.run(request.send)), _next_step(address)
            )

        return infer

    def _described(self, address: EndpointAddress, clients: ThreadClients) -> V2Model:
        """Return the model of a service that says what it takes.

        Raises:
            EngineRefusal: if it is not there, or another one.
        """
        server = _or_none(lambda: clients.run(lambda client: client.get(address.server_url)))
        reply = self._exchanged(lambda: clients.run(lambda client: client.get(address.model_url)))
        self._require_model(self._exchanged(lambda: described_model(reply)), address)
        encoding = self.task.device
        if not encoding:
            encoding = "binary" if server is not None and takes_binary(server) else "json"
        name = "" if server is None else server_name(server)
        self._in_force = {"encoding": encoding, **({"server": name} if name else {})}
        return V2Model(address, self.task, encoding)

    def _require_model(self, metadata: ModelMetadata, address: EndpointAddress) -> None:
        another = why_another_model(metadata, self.task)
        unfit = unfit_sizes(metadata, self.task)
        if another and unfit:
            raise EngineRefusal(
                f"{address.model!r} at the endpoint does not take the sizes of this case: "
                f"{another}",
                kind="error",
                hint=f"Write --ort-batch-sizes={unfit[0]}"
                if [*unfit] == [0]
                else "If this size is free in the ONNX file, set it with --ort-dims. If not, name "
                "the ONNX file of the model that the service serves",
            )
        if another:
            raise EngineRefusal(
                f"{address.model!r} at the endpoint is not the model to measure: {another}",
                kind="error",  # the service was asked for: nobody is to take it for left out
                hint="Name the ONNX file of the model that the application of --ort-serve serves"
                if "app" in self.task.options
                else "To measure another service, correct --ort-endpoint. To measure this service, "
                "name the ONNX file of the model that it serves",
            )

    def sender(
        self,
        feeds: Mapping[str, Any],
        *,
        timeout_s: float,
        percents: Sequence[float],
        holds_failures: bool,
        right: RightAnswer | None = None,
    ) -> EndpointSender:
        """Return what sends requests as they arrive; it has answered a first one.

        Raises:
            EngineRefusal: if the endpoint does not answer that.
        """
        model = self._model
        if model is None:
            raise RuntimeError("the endpoint is not open")

        request = model.request(feeds)
        return self._exchanged(
            lambda: EndpointSender(
                self._address(),
                self._in_force["encoding"],
                lambda: request,
                ValueCheck(model.outputs, [tensor.name for tensor in self.task.outputs], right),
                timeout_s=timeout_s,
                percents=percents,
                holds_failures=holds_failures,
            ),
            _next_step(self._address()),
        )

    def in_force(self) -> dict[str, str]:
        """Return where requests go, how, and what the service calls itself."""
        return dict(self._in_force)

    def close(self) -> None:
        """Close the connections."""
        if self._clients is not None:
            self._clients.close()
            self._clients = None

    def _opened(self) -> ThreadClients:
        if self._clients is None:
            self._clients = ThreadClients(_TIMEOUT_S)
        return self._clients

    def _address(self) -> EndpointAddress:
        address = address_of(self.task.options.get("url", ""))
        if address is None:
            raise EngineRefusal(
                "the provider 'endpoint' needs the address of a service, and none is given",
                hint="Add the address at which the service answers, e.g. for the model 'net' "
                "--ort-endpoint=http://127.0.0.1:8000/v2/models/net/infer",
            )
        return address


class ThreadClients:
    """A client for each thread that asks, with an event loop that only runs while it waits.

    Args:
        timeout_s: For one exchange.
    """

    def __init__(self, timeout_s: float) -> None:
        self._timeout_s = timeout_s
        self._own = threading.local()
        self._all: list[tuple[asyncio.AbstractEventLoop, HttpClient]] = []

    def run(self, work: Callable[[HttpClient], Coroutine[Any, Any, T]]) -> T:
        """Do some work with the client of this thread, and wait for it."""
        if not hasattr(self._own, "pair"):
            self._own.pair = (asyncio.new_event_loop(), HttpClient(self._timeout_s))
            self._all.append(self._own.pair)
        loop, client = self._own.pair
        result: T = loop.run_until_complete(work(client))
        return result

    def close(self) -> None:
        """Close the connections of all."""
        for loop, client in self._all:
            loop.run_until_complete(client.close())
            loop.close()
        self._all.clear()


def _next_step(address: EndpointAddress) -> str:
    """Return what helps where a function of the user's gave no answer; empty for a service."""
    return f"Correct {address.function} in {address.file}" if address.function else ""


def exchanged(step: Callable[[], T], hint: str = "", *, is_ours: bool = False) -> T:
    """Do a step of an exchange; say what became of it where it failed.

    Args:
        step: Does it.
        hint: The next step; empty for that of a service.
        is_ours: Whether the service was started for the case.

    Raises:
        EngineRefusal: with the kind of failure that a case has then.
    """
    try:
        return step()
    except ExchangeError as error:
        kind = "unavailable" if error.status in _NOT_NOW else _KINDS.get(error.kind, "error")
        if is_ours:
            known = _CORRECT_IT if error.kind == "invalid" else _LOG
        else:
            known = _START_IT if kind == "unavailable" else _STEPS.get(error.kind, _LOG)
            known = _STATUS_STEPS.get(error.status, known)
        if "out of memory" in error.said.lower():
            known = "Free memory where the service runs, and run again"
        raise EngineRefusal(
            f"the endpoint gave no usable answer: {error}",
            kind=kind,
            hint=hint or known,
        ) from error


def _or_none(step: Callable[[], T]) -> T | None:
    """Do a step of an exchange that nothing depends on; ``None`` where it failed."""
    try:
        return step()
    except ExchangeError:
        return None
