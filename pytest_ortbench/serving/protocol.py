"""The Open Inference Protocol, version 2: requests and responses as bytes, in JSON and binary.

Binary means the extension for tensors as raw bytes: JSON first, whose length stands in the header
``HEADER_LENGTH``, and behind it the values of those tensors that have ``binary_data_size``.
What is decoded comes from a network, so every field is checked, and an error names its place.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pytest_ortbench.core.errors import near_and_known
from pytest_ortbench.core.units import counted
from pytest_ortbench.serving.fields import LISTED, Fields
from pytest_ortbench.serving.json_body import not_json, strict_json
from pytest_ortbench.serving.tensor_values import (
    DATATYPES,
    HEADER_LENGTH,
    ProtocolError,
    bytes_of_values,
    json_of_values,
    shown,
    values_of_bytes,
    values_of_json,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

_LENGTH_HINT = "Write how many bytes of the body are JSON; the tensors follow behind them"
#: Digits of a length in that header.
_MOST_DIGITS = 12
JSON_TYPE, BINARY_TYPE = "application/json", "application/octet-stream"


@dataclass(frozen=True, slots=True, kw_only=True)
class WireTensor:
    """A tensor that a message holds.

    Attributes:
        name: As in the model.
        datatype: A key of :data:`DATATYPES`.
        array: Its values; its shape is that of the tensor.
    """

    name: str
    datatype: str
    array: NDArray[Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class DeclaredTensor:
    """A tensor as the metadata of a model describes it.

    Attributes:
        name: As in the model.
        datatype: A key of :data:`DATATYPES`; of other servers maybe another text.
        shape: One size an axis, -1 where it is open.
    """

    name: str
    datatype: str
    shape: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class WantedOutput:
    """An output that a request asks for.

    Attributes:
        name: As in the model.
        binary: Whether it is to come as bytes; ``None`` leaves it to the request.
    """

    name: str
    binary: bool | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class InferRequest:
    """A request for one inference.

    Attributes:
        inputs: Its tensors.
        wanted: Outputs that it asks for; empty: all.
        request_id: What the client calls it; comes back with the response.
        binary: Whether outputs are to come as bytes, where :attr:`wanted` does not say.
    """

    inputs: tuple[WireTensor, ...]
    wanted: tuple[WantedOutput, ...] = ()
    request_id: str = ""
    binary: bool = False

    def binary_outputs(self, names: Collection[str]) -> frozenset[str]:
        """Return which of the outputs are to come as bytes."""
        asked = {output.name: output.binary for output in self.wanted}
        return frozenset(
            name for name in names if (self.binary if asked.get(name) is None else asked[name])
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class InferResponse:
    """The response to a request.

    Attributes:
        model_name: The model that answered.
        outputs: Its tensors.
        model_version: Its version; empty where the server says none.
        request_id: What the client called the request; empty for nothing.
    """

    model_name: str
    outputs: tuple[WireTensor, ...]
    model_version: str = ""
    request_id: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelMetadata:
    """What a server says of a model.

    Attributes:
        name: What requests call it.
        versions: Versions that can be asked for.
        platform: What runs it: ``onnxruntime_onnx``.
        inputs: Its inputs.
        outputs: Its outputs.
    """

    name: str
    inputs: tuple[DeclaredTensor, ...]
    outputs: tuple[DeclaredTensor, ...]
    versions: tuple[str, ...] = ()
    platform: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class WireMessage:
    """A body and what its headers say of it.

    Attributes:
        body: The bytes.
        header_length: Bytes of JSON in front of binary tensors; ``None`` where all of it is JSON.
    """

    body: bytes
    header_length: int | None = None

    @property
    def headers(self) -> dict[str, str]:
        """The headers of HTTP that the body needs."""
        if self.header_length is None:
            return {"Content-Type": JSON_TYPE}
        return {"Content-Type": BINARY_TYPE, HEADER_LENGTH: str(self.header_length)}


def compact_json(value: object) -> bytes:
    """Write JSON without spaces.

    Raises:
        ValueError: for infinity and NaN.
    """
    return json.dumps(value, separators=(",", ":"), allow_nan=False).encode("utf-8")


# -- decoding --------------------------------------------------------------------------------------


def decode_request(
    body: bytes, header_length: int | None = None, *, loads: Callable[[bytes], object] = strict_json
) -> InferRequest:
    """Read a request for an inference.

    Args:
        body: The body of the message.
        header_length: What the header ``HEADER_LENGTH`` says; ``None`` where there is none.
        loads: Reads JSON, and raises :class:`ValueError` for what is none.

    Raises:
        ProtocolError: for the first field that breaks a rule.
    """
    fields, blobs = _parts(body, header_length, loads)
    parameters = fields.parameters('{"binary_data_output": true}')
    inputs = _tensors(fields, "inputs", blobs)
    if not inputs:
        raise ProtocolError(
            "the request has no input",
            place="inputs",
            hint=f"Send every input of the model. {LISTED}",
        )
    return InferRequest(
        inputs=inputs,
        wanted=tuple(_wanted(fields)),
        request_id=fields.maybe_text("id"),
        binary=parameters.switch("binary_data_output") or False,
    )


def decode_response(body: bytes, header_length: int | None = None) -> InferResponse:
    """Read the response to an inference.

    Args:
        body: The body of the message.
        header_length: What the header ``HEADER_LENGTH`` says; ``None`` where there is none.

    Raises:
        ProtocolError: for the first field that breaks a rule.
    """
    fields, blobs = _parts(body, header_length, strict_json)
    return InferResponse(
        model_name=fields.text("model_name"),
        outputs=_tensors(fields, "outputs", blobs),
        model_version=fields.maybe_text("model_version"),
        request_id=fields.maybe_text("id"),
    )


def decode_metadata(body: bytes) -> ModelMetadata:
    """Read what a server says of a model.

    Raises:
        ProtocolError: for the first field that breaks a rule.
    """
    fields, _ = _parts(body, None, strict_json)
    return ModelMetadata(
        name=fields.text("name"),
        versions=fields.texts("versions"),
        platform=fields.maybe_text("platform"),
        inputs=tuple(_declared(fields, "inputs")),
        outputs=tuple(_declared(fields, "outputs")),
    )


def decode_error(body: bytes) -> str:
    """Return what the body of an error says, in this protocol or OpenAI's; empty for any other."""
    try:
        fields = strict_json(body)
    except ValueError:
        return ""
    said = fields.get("error") if isinstance(fields, dict) else None
    said = said.get("message") if isinstance(said, dict) else said
    return said if isinstance(said, str) else ""


def length_in(header: str | None) -> int | None:
    """Return the length of the JSON that the header ``HEADER_LENGTH`` announces.

    Args:
        header: Its value; ``None`` where there is no header, and all of the body is JSON.

    Raises:
        ProtocolError: if it is no number of bytes.
    """
    if header is None:
        return None
    digits = header.isascii() and header.isdigit()
    if not digits or len(header) > _MOST_DIGITS:
        raise ProtocolError(
            f"{header[:20]!r} {'is too large' if digits else 'does not consist of digits only'}",
            place=HEADER_LENGTH,
            hint="Write the length of the JSON in bytes, e.g. 104",
        )
    return int(header)


class _Blobs:
    """The bytes of binary tensors, taken from front to back."""

    def __init__(self, data: memoryview, *, json_bytes: int, announced: bool) -> None:
        self._data, self._json_bytes, self._announced = data, json_bytes, announced

    def take(self, size: int, place: str) -> memoryview:
        if size > len(self._data):
            raise ProtocolError(
                f"the tensor needs {counted(size, 'byte')}, but the body has only "
                f"{counted(len(self._data), 'byte')} left for it",
                place=place,
                hint=f"If {size} is right, send all bytes of the tensor behind the JSON. If not, "
                "correct it"
                if self._announced
                else f"Send these bytes behind the JSON, and the length of the JSON as the header "
                f"{HEADER_LENGTH}: {self._json_bytes}",
            )
        taken, self._data = self._data[:size], self._data[size:]
        return taken

    def end(self, place: str, *, all_binary: bool) -> None:
        if len(self._data):
            raise ProtocolError(
                f"the end of the body ({counted(len(self._data), 'byte')}) belongs to no tensor",
                place=place,
                hint="Correct the binary_data_size of a tensor, or leave these bytes out"
                if all_binary
                else "To send a tensor as these bytes, give it the parameter binary_data_size in "
                "place of data. To send it as JSON, leave these bytes out",
            )


def _parts(
    body: bytes, header_length: int | None, loads: Callable[[bytes], object]
) -> tuple[Fields, _Blobs]:
    """The fields of the JSON, and the bytes behind it."""
    if header_length is not None and not 0 < header_length <= len(body):
        raise ProtocolError(
            f"the header announces {header_length} bytes of JSON in a body of {len(body)} bytes",
            place=HEADER_LENGTH,
            hint=_LENGTH_HINT,
        )
    size = len(body) if header_length is None else header_length
    try:
        value = loads(body if size == len(body) else body[:size])
    except ValueError as error:
        announced = header_length is not None
        raise not_json(error, body[:size], announced=announced, header=HEADER_LENGTH) from error
    blobs = memoryview(body)[size:]
    return Fields(value), _Blobs(blobs, json_bytes=size, announced=header_length is not None)


def _tensors(fields: Fields, key: str, blobs: _Blobs) -> tuple[WireTensor, ...]:
    tensors: dict[str, WireTensor] = {}
    entries = fields.objects(key)
    for entry in entries:
        tensor = _tensor(entry, blobs)
        if tensor.name in tensors:
            raise _twice(tensor.name, entry)
        tensors[tensor.name] = tensor
    blobs.end(key, all_binary=all(entry.get("data") is None for entry in entries))
    return tuple(tensors.values())


def _tensor(entry: Fields, blobs: _Blobs) -> WireTensor:
    name, datatype = entry.text("name"), entry.text("datatype")
    if datatype not in DATATYPES:
        raise ProtocolError(
            f"{shown(datatype)} is not a datatype of the protocol",
            place=entry.under("datatype"),
            hint=near_and_known(datatype, DATATYPES),
        )
    shape, parameters = entry.shape(least=0), entry.parameters('{"binary_data_size": 12}')
    data, size = entry.get("data"), parameters.get("binary_data_size")
    if size is None:
        array = values_of_json(data, datatype, shape, entry.under("data"))
    elif data is not None:
        raise ProtocolError(
            "the tensor has both data and binary_data_size",
            place=entry.under("data"),
            hint="To send JSON, leave out binary_data_size. To send bytes, leave out data",
        )
    else:
        where = parameters.under("binary_data_size")
        if type(size) is not int or size < 0:
            in_quotes = isinstance(size, str) and size.isdecimal()
            raise ProtocolError(
                f"{shown(size)} is {'a string, ' if in_quotes else ''}not a whole number",
                place=where,
                hint=f"Write {'it without quotes' if in_quotes else 'how many bytes it has'}",
            )
        array = values_of_bytes(blobs.take(size, where), datatype, shape, entry.place)
    try:
        return WireTensor(name=name, datatype=datatype, array=array.reshape(shape))
    except ValueError as error:  # an axis of size 0 lets others be of any size
        raise ProtocolError(
            f"apart from 0, the sizes in {list(shape)} make more elements than memory can address",
            place=entry.under("shape"),
            hint="Write smaller sizes",
        ) from error


def _twice(name: str, entry: Fields) -> ProtocolError:
    return ProtocolError(
        f"the name {name!r} is used twice",
        place=entry.under("name"),
        hint="Name each tensor once",
    )


def _declared(fields: Fields, key: str) -> list[DeclaredTensor]:
    return [
        DeclaredTensor(
            name=entry.text("name"), datatype=entry.text("datatype"), shape=entry.shape(least=-1)
        )
        for entry in fields.objects(key)
    ]


def _wanted(fields: Fields) -> list[WantedOutput]:
    wanted: dict[str, WantedOutput] = {}
    for entry in fields.objects("outputs", needed=False):
        name = entry.text("name")
        if name in wanted:
            raise _twice(name, entry)
        parameters = entry.parameters('{"binary_data": true}')
        wanted[name] = WantedOutput(name=name, binary=parameters.switch("binary_data"))
    return list(wanted.values())


# -- encoding --------------------------------------------------------------------------------------


def encode_request(request: InferRequest, *, binary: bool) -> WireMessage:
    """Write a request for an inference.

    Args:
        request: What is asked.
        binary: Whether its inputs go as bytes.

    Raises:
        ProtocolError: if an input has no form in JSON (NaN, infinity).
    """
    names = frozenset(tensor.name for tensor in request.inputs) if binary else frozenset()
    fields: dict[str, object] = {"id": request.request_id} if request.request_id else {}
    if request.binary:
        fields["parameters"] = {"binary_data_output": True}
    if request.wanted:
        fields["outputs"] = [_wanted_fields(output) for output in request.wanted]
    return _message(fields, "inputs", request.inputs, names, compact_json)


def encode_response(
    response: InferResponse,
    *,
    binary: Collection[str] = (),
    dumps: Callable[[object], bytes] = compact_json,
) -> WireMessage:
    """Write the response to an inference.

    Args:
        response: What is answered.
        binary: Names of the outputs that go as bytes.
        dumps: Writes JSON.

    Raises:
        ProtocolError: if another output has no form in JSON (NaN, infinity).
    """
    fields: dict[str, object] = {"model_name": response.model_name}
    if response.model_version:
        fields["model_version"] = response.model_version
    if response.request_id:
        fields["id"] = response.request_id
    return _message(fields, "outputs", response.outputs, binary, dumps)


def metadata_fields(metadata: ModelMetadata) -> dict[str, object]:
    """Return what a server says of a model, as fields of JSON."""
    return {
        "name": metadata.name,
        "versions": list(metadata.versions),
        "platform": metadata.platform,
        "inputs": [_declared_fields(tensor) for tensor in metadata.inputs],
        "outputs": [_declared_fields(tensor) for tensor in metadata.outputs],
    }


def _declared_fields(tensor: DeclaredTensor) -> dict[str, object]:
    return {"name": tensor.name, "datatype": tensor.datatype, "shape": list(tensor.shape)}


def _wanted_fields(output: WantedOutput) -> dict[str, object]:
    if output.binary is None:
        return {"name": output.name}
    return {"name": output.name, "parameters": {"binary_data": output.binary}}


def _message(
    fields: dict[str, object],
    key: str,
    tensors: Sequence[WireTensor],
    binary: Collection[str],
    dumps: Callable[[object], bytes],
) -> WireMessage:
    """A message with tensors, those that are binary behind the JSON."""
    entries: list[dict[str, object]] = []
    blobs: list[bytes] = []
    for index, tensor in enumerate(tensors):
        entry: dict[str, object] = {
            "name": tensor.name,
            "shape": list(tensor.array.shape),
            "datatype": tensor.datatype,
        }
        if tensor.name in binary:
            blobs.append(bytes_of_values(tensor.array, tensor.datatype))
            entry["parameters"] = {"binary_data_size": len(blobs[-1])}
        else:
            place = f"{key}[{index}].data"
            entry["data"] = json_of_values(tensor.array, tensor.datatype, place)
        entries.append(entry)
    text = dumps({**fields, key: entries})
    if not binary:
        return WireMessage(body=text)
    return WireMessage(body=b"".join([text, *blobs]), header_length=len(text))
