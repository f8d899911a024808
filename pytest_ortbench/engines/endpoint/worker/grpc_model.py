"""A model behind the Open Inference Protocol over gRPC, asked through ``tritonclient``."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any

from pytest_ortbench.core.endpoint_address import EndpointAddress
from pytest_ortbench.engines.endpoint.worker.exchange_error import ExchangeError
from pytest_ortbench.engines.endpoint.worker.http_client import MOST_BYTES, HttpClient, Reply
from pytest_ortbench.engines.endpoint.worker.v2_model import datatype_of, described_model
from pytest_ortbench.engines.seam import NUMPY_TYPES, EngineTask
from pytest_ortbench.serving.protocol import ModelMetadata
from pytest_ortbench.worker.generation.requests import nothing

#: What statuses of gRPC mean; all others are a fault of the service.
_KINDS = {
    "StatusCode.UNAVAILABLE": "refused",
    "StatusCode.DEADLINE_EXCEEDED": "timeout",
    "StatusCode.NOT_FOUND": "client error",
    "StatusCode.INVALID_ARGUMENT": "client error",
    "StatusCode.RESOURCE_EXHAUSTED": "too large",
}
_NOT_FOUND = 404


def grpc_version() -> str:
    """Import the client, and return its version."""
    import tritonclient.grpc.aio  # noqa: F401 - not everybody has it

    return f"through tritonclient {version('tritonclient')}"


class GrpcModel:
    """The requests and answers of one model.

    Args:
        address: Where it is.
        task: What it is fed, and what it gives.
    """

    def __init__(self, address: EndpointAddress, task: EngineTask) -> None:
        self._address = address
        self._inputs = {tensor.name: datatype_of(tensor) for tensor in task.inputs}
        self._outputs = {tensor.name: NUMPY_TYPES.get(tensor.type) for tensor in task.outputs}
        self._clients: dict[asyncio.AbstractEventLoop, Any] = {}

    async def described(self, client: HttpClient) -> ModelMetadata:
        """Return what the service says of the model."""
        import json

        name, number = self._address.model, self._address.version
        told = await self._called(
            self._client().get_model_metadata(
                name, number, as_json=True, client_timeout=client.timeout_s
            )
        )
        for tensor in (*told.get("inputs", ()), *told.get("outputs", ())):
            # Numbers of 64 bits are texts in this JSON.
            tensor["shape"] = [int(size) for size in tensor.get("shape", ())]
        return described_model(Reply(json.dumps(told).encode(), {}))

    def request(self, feeds: Mapping[str, Any]) -> GrpcRequest:
        """Return the request that feeds arrays by the names of the inputs."""
        from tritonclient.grpc import InferInput, InferRequestedOutput

        inputs = []
        for name, datatype in self._inputs.items():
            tensor = InferInput(name, list(feeds[name].shape), datatype)
            tensor.set_data_from_numpy(feeds[name])
            inputs.append(tensor)
        outputs = [InferRequestedOutput(name) for name in self._outputs]
        size = sum(int(feeds[name].nbytes) for name in self._inputs)
        return GrpcRequest(lambda timeout_s: self._infer(inputs, outputs, timeout_s), size)

    def outputs(self, reply: Reply) -> Sequence[Any]:
        """Return the outputs of an answer, in the order of the model."""
        return reply.outputs or ()

    async def _infer(self, inputs: object, outputs: object, timeout_s: float) -> Reply:
        answer = await self._called(
            self._client().infer(
                self._address.model,
                inputs,
                model_version=self._address.version,
                outputs=outputs,
                client_timeout=timeout_s,
            )
        )
        try:
            arrays = [answer.as_numpy(name) for name in self._outputs]
        except (ValueError, TypeError) as error:
            raise ExchangeError("invalid", f"an output is no tensor: {error}") from None
        for array, (name, kind) in zip(arrays, self._outputs.items(), strict=True):
            if array is None:
                raise ExchangeError("invalid", f"the answer lacks the output {name!r}")
            if kind is not None and array.dtype != kind:
                raise ExchangeError("invalid", f"the output {name!r} is {array.dtype}, not {kind}")
        return Reply(b"".join(array.tobytes() for array in arrays), {}, tuple(arrays))

    def _client(self) -> Any:
        """Return the client of the running loop."""
        from tritonclient.grpc.aio import InferenceServerClient

        loop = asyncio.get_running_loop()
        if loop not in self._clients:
            limits = [("grpc.max_receive_message_length", MOST_BYTES)]
            self._clients[loop] = InferenceServerClient(self._address.root, channel_args=limits)
        return self._clients[loop]

    async def _called(self, call: Any) -> Any:
        from tritonclient.utils import InferenceServerException

        try:
            return await call
        except InferenceServerException as error:
            kind = _KINDS.get(str(error.status()), "server error")
            text = " ".join(str(error.message()).split())[:200]
            status = _NOT_FOUND if str(error.status()) == "StatusCode.NOT_FOUND" else 0
            raise ExchangeError(kind, text, status=status) from None


@dataclass(frozen=True, slots=True)
class GrpcRequest:
    """One request.

    Attributes:
        call: Sends it, with a timeout in seconds.
        size_bytes: Size of its tensors.
    """

    call: Callable[[float], Any]
    size_bytes: int

    def after(self, reply: Reply) -> GrpcRequest:
        """Return itself: the size of answers is limited by the connection."""
        del reply
        return self

    async def send(self, client: HttpClient, at_first: Callable[[], None] = nothing) -> Reply:
        """Send it, and return the answer.

        Raises:
            ExchangeError: if none came that counts.
        """
        del at_first
        reply: Reply = await self.call(client.timeout_s)
        return reply
