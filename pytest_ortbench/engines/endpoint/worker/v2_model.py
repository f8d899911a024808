"""A model behind the Open Inference Protocol: what it takes, its requests, its answers."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from pytest_ortbench.core.endpoint_address import EndpointAddress
from pytest_ortbench.engines.endpoint.worker.exchange_error import ExchangeError
from pytest_ortbench.engines.endpoint.worker.http_client import Reply
from pytest_ortbench.engines.endpoint.worker.sent_request import HttpRequest
from pytest_ortbench.engines.seam import EngineRefusal, EngineTask, EngineTensor
from pytest_ortbench.serving.protocol import (
    DeclaredTensor,
    InferRequest,
    ModelMetadata,
    WantedOutput,
    WireTensor,
    decode_metadata,
    decode_response,
    encode_request,
    length_in,
)
from pytest_ortbench.serving.tensor_values import DATATYPE_OF, HEADER_LENGTH, ProtocolError

#: What a service that takes tensors as bytes names among its extensions.
_BINARY = ("binary_tensor_data", "binary_tensor_data_output")
#: Names that a message has, and characters of each.
_MOST_SHOWN, _LONGEST_SHOWN = 9, 100


class V2Model:
    """The requests and answers of one model.

    Args:
        address: Where it is.
        task: What it is fed, and what it gives.
        encoding: One of :data:`~pytest_ortbench.core.endpoint_address.ENCODINGS`.

    Raises:
        EngineRefusal: for a type that the protocol lacks.
    """

    def __init__(self, address: EndpointAddress, task: EngineTask, encoding: str) -> None:
        self._address = address
        self._binary = encoding == "binary"
        ours = "app" in task.options
        self._inputs = {t.name: datatype_of(t, is_ours=ours) for t in task.inputs}
        self._outputs = {t.name: datatype_of(t, is_ours=ours) for t in task.outputs}

    def request(self, feeds: Mapping[str, Any]) -> HttpRequest:
        """Return the request that feeds arrays by the names of the inputs."""
        tensors = tuple(
            WireTensor(name=name, datatype=datatype, array=feeds[name])
            for name, datatype in self._inputs.items()
        )
        # Without words on it a service answers in JSON.
        wanted = tuple(
            WantedOutput(name=name, binary=True if self._binary else None) for name in self._outputs
        )
        asked = InferRequest(inputs=tensors, wanted=wanted)
        message = encode_request(asked, binary=self._binary)
        return HttpRequest(url=self._address.url, body=message.body, headers=message.headers)

    def outputs(self, reply: Reply) -> Sequence[Any]:
        """Return the outputs of an answer, in the order of the model.

        Raises:
            ExchangeError: for what is no answer of this model.
        """
        try:
            response = decode_response(reply.body, length_in(reply.headers.get(HEADER_LENGTH)))
        except ProtocolError as error:
            raise ExchangeError("invalid", _wrong(error)) from None
        tensors = {tensor.name: tensor for tensor in response.outputs}
        for name, datatype in self._outputs.items():
            if name not in tensors:
                raise ExchangeError("invalid", f"the answer lacks the output {name!r}")
            if tensors[name].datatype != datatype:
                raise ExchangeError(
                    "invalid",
                    f"the output {name!r} has the type {tensors[name].datatype}, not {datatype}",
                )
        return [tensors[name].array for name in self._outputs]


def datatype_of(tensor: EngineTensor, *, is_ours: bool = False) -> str:
    """Return the protocol's name of the type of a tensor.

    Args:
        tensor: The tensor.
        is_ours: Whether the service is started for the case (``--ort-serve``).

    Raises:
        EngineRefusal: if it has none.
    """
    element = tensor.type.removeprefix("tensor(").removesuffix(")")
    if element not in DATATYPE_OF:
        raise EngineRefusal(
            f"{tensor.name!r} has the type {tensor.type}, which pytest-ortbench can't send to a "
            "service",
            hint="To measure the ONNX file without a service, leave "
            f"{'--ort-serve' if is_ours else '--ort-endpoint'} out",
        )
    return DATATYPE_OF[element]


def takes_binary(reply: Reply) -> bool:
    """Return whether a service says of itself that it takes tensors as bytes."""
    return any(name in _BINARY for name in _described(reply).get("extensions", ()))


def server_name(reply: Reply) -> str:
    """Return name and version of a service as it tells them; empty for nothing."""
    told = _described(reply)
    parts = (told.get("name"), told.get("version"))
    return " ".join(part[:100] for part in parts if isinstance(part, str))


def described_model(reply: Reply) -> ModelMetadata:
    """Return what a service says of a model.

    Raises:
        ExchangeError: for what is no such thing.
    """
    try:
        return decode_metadata(reply.body)
    except ProtocolError as error:
        raise ExchangeError("invalid", f"the description of the model: {_wrong(error)}") from None


def _wrong(error: ProtocolError) -> str:
    """What is wrong with an answer: its hint is for who wrote it, who does not read this."""
    return f"{error.place}: {error.message}"


def why_another_model(metadata: ModelMetadata, task: EngineTask) -> str:
    """Return why a described model can't be that of a task; empty if it can.

    A service that describes no tensors says nothing about it.
    """
    declared = {tensor.name: tensor for tensor in metadata.inputs}
    if declared and set(declared) != {tensor.name for tensor in task.inputs}:
        return (
            f"the service takes the inputs {some_of([*declared])}, not "
            f"{some_of([tensor.name for tensor in task.inputs])}"
        )
    for tensor in task.inputs if declared else ():
        told, fed = declared[tensor.name], tensor.shape or ()
        if told.datatype != datatype_of(tensor, is_ours="app" in task.options):
            return (
                f"the input {tensor.name!r} of the service is {told.datatype}, not "
                f"{datatype_of(tensor)}"
            )
        if not _fits(told, fed):
            return (
                f"the input {tensor.name!r} of the service has the shape {list(told.shape)}, "
                f"which {list(fed)} does not fit"
            )
    outputs = {tensor.name for tensor in metadata.outputs}
    lacking = [tensor.name for tensor in task.outputs if outputs and tensor.name not in outputs]
    return f"the service has no output {lacking[0]!r}" if lacking else ""


def unfit_sizes(metadata: ModelMetadata, task: EngineTask) -> dict[int, int]:
    """Return the sizes of a service, by axis, that inputs of a task differ from.

    It is empty where more differs than sizes: then it is another model.
    """
    declared = {tensor.name: tensor for tensor in metadata.inputs}
    outputs = {tensor.name for tensor in metadata.outputs}
    if {*declared} != {tensor.name for tensor in task.inputs} or (
        outputs and not outputs.issuperset(tensor.name for tensor in task.outputs)
    ):
        return {}
    unfit: dict[int, int] = {}
    for tensor in task.inputs:
        told, fed = declared[tensor.name], tensor.shape or ()
        if told.datatype != datatype_of(tensor) or len(told.shape) != len(fed):
            return {}
        unfit |= {
            axis: size
            for axis, (size, own) in enumerate(zip(told.shape, fed, strict=True))
            if size not in (-1, own)
        }
    return unfit


def some_of(names: Sequence[str]) -> str:
    """Return names for people; a service may have any number of them, of any length."""
    shown = [repr(name[:_LONGEST_SHOWN]) for name in names[:_MOST_SHOWN]]
    more = len(names) - len(shown)
    return ", ".join(shown) + (f" and {more} more" if more > 0 else "")


def _fits(told: DeclaredTensor, fed: Sequence[int]) -> bool:
    return len(told.shape) == len(fed) and all(
        size in (-1, own) for size, own in zip(told.shape, fed, strict=True)
    )


def _described(reply: Reply) -> dict[str, Any]:
    try:
        told = json.loads(reply.body)
    except (ValueError, RecursionError):
        return {}
    return told if isinstance(told, dict) else {}
