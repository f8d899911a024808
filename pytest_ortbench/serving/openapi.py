"""What the OpenAPI of a service says of its bodies."""

from __future__ import annotations

import json
import math
from typing import Any

from pytest_ortbench.serving.protocol import (
    BINARY_TYPE,
    JSON_TYPE,
    DeclaredTensor,
    InferRequest,
    WireTensor,
    encode_request,
)
from pytest_ortbench.serving.served_model import VERSION, ServedModel
from pytest_ortbench.serving.tensor_values import DATATYPES

#: Values of the example of a request; whoever reads the OpenAPI reads that, too.
_MOST_VALUES = 4096

_NAME = {"type": "string", "minLength": 1, "maxLength": 1000}
_SHAPE = {"type": "array", "items": {"type": "integer", "minimum": 0}, "maxItems": 32}
_PARAMETERS = {"type": "object"}

_TENSOR: dict[str, Any] = {
    "type": "object",
    "required": ["name", "shape", "datatype"],
    "properties": {
        "name": _NAME,
        "shape": _SHAPE,
        "datatype": {"type": "string", "enum": list(DATATYPES)},
        "parameters": _PARAMETERS,
        "data": {
            "type": "array",
            "items": {},
            "description": "Flat, or nested like the shape. Absent where the values come as bytes.",
        },
    },
}

_REQUEST: dict[str, Any] = {
    "type": "object",
    "required": ["inputs"],
    "properties": {
        "id": {"type": "string", "maxLength": 1000},
        "parameters": _PARAMETERS,
        "inputs": {"type": "array", "items": _TENSOR, "minItems": 1},
        "outputs": {
            "type": "array",
            "items": {
                "type": "object",
                "required": ["name"],
                "properties": {"name": _NAME, "parameters": _PARAMETERS},
            },
        },
    },
}

_RESPONSE: dict[str, Any] = {
    "type": "object",
    "required": ["model_name", "outputs"],
    "properties": {
        "model_name": _NAME,
        "model_version": {"type": "string"},
        "id": {"type": "string"},
        "outputs": {"type": "array", "items": _TENSOR},
    },
}

_ERROR = {
    "type": "object",
    "required": ["error"],
    "properties": {"error": {"type": "string"}, "place": {"type": "string"}},
}

_BYTES = {"schema": {"type": "string", "format": "binary"}}

#: The body of a request for an inference.
INFER_BODY: dict[str, Any] = {
    "required": True,
    "content": {JSON_TYPE: {"schema": _REQUEST}, BINARY_TYPE: _BYTES},
}
#: The response to it.
INFER_ANSWER: dict[str, Any] = {
    "description": "The outputs.",
    "content": {JSON_TYPE: {"schema": _RESPONSE}, BINARY_TYPE: _BYTES},
}
#: Any other response.
JSON_OBJECT: dict[str, Any] = {
    "description": "What was asked for.",
    "content": {JSON_TYPE: {"schema": {"type": "object"}}},
}

_MEANINGS: dict[int, str] = {
    400: "The message breaks the protocol, or does not fit the model.",
    404: "There is no such model or version.",
    406: "An output has no form in JSON (NaN, infinity); ask for binary data.",
    408: "The body did not come in time.",
    413: "The body is too large.",
    415: "The body is compressed.",
    422: "The model does not run on these values.",
    429: "Too many requests wait.",
    500: "The model does not run any more.",
    503: "The service ends, or the model does not run any more.",
    504: "There was no answer in time.",
}

#: Responses with an error, by status code.
ERRORS: dict[int, dict[str, Any]] = {
    status: {"description": meaning, "content": {JSON_TYPE: {"schema": _ERROR}}}
    for status, meaning in _MEANINGS.items()
}


def with_model(schema: dict[str, Any], model: ServedModel) -> dict[str, Any]:
    """Return the OpenAPI of a service that has one model: its name, its tensors, a valid request.

    Args:
        schema: As FastAPI makes it; it is changed.
        model: What is served.
    """
    known = {"name": model.metadata.name, "version": VERSION}
    example = _example(model)
    for operations in schema["paths"].values():
        for operation in operations.values():
            for parameter in operation.get("parameters", ()):
                if parameter["in"] == "path":
                    parameter["schema"] = {"type": "string", "enum": [known[parameter["name"]]]}
            # A version stands in the path, where one is asked for.
            operation["parameters"] = [
                parameter
                for parameter in operation.get("parameters", ())
                if parameter["in"] == "path"
            ]
            asked = operation.get("requestBody")
            if asked is not None:
                body = asked["content"][JSON_TYPE]
                body["schema"] = _request_of(model)
                if example is not None:
                    body["example"] = example
    return schema


def _request_of(model: ServedModel) -> dict[str, Any]:
    """What a request says at least: the protocol's fields, and names of this model."""
    inputs, outputs = model.metadata.inputs, model.metadata.outputs
    wanted = {
        "type": "array",
        "maxItems": len(outputs),
        "items": {
            "type": "object",
            "required": ["name"],
            "properties": {
                "name": {"type": "string", "enum": [tensor.name for tensor in outputs]},
                "parameters": _PARAMETERS,
            },
        },
    }
    fed = {
        "type": "array",
        "items": {"anyOf": [_input_of(tensor) for tensor in inputs]},
        "minItems": len(inputs),
        "maxItems": len(inputs),
    }
    return {**_REQUEST, "properties": {**_REQUEST["properties"], "inputs": fed, "outputs": wanted}}


def _input_of(tensor: DeclaredTensor) -> dict[str, Any]:
    """One input as it must be written; how many values it has follows from its shape."""
    told = {"name": tensor.name, "datatype": tensor.datatype}
    fields = {name: {"type": "string", "enum": [text]} for name, text in told.items()}
    return {**_TENSOR, "properties": {**_TENSOR["properties"], **fields}}


def _example(model: ServedModel) -> Any:
    """A request that the model was seen to take; ``None`` where it is long."""
    if sum(math.prod(array.shape) for array in model.sample.values()) > _MOST_VALUES:
        return None
    tensors = tuple(
        WireTensor(name=tensor.name, datatype=tensor.datatype, array=model.sample[tensor.name])
        for tensor in model.metadata.inputs
    )
    return json.loads(encode_request(InferRequest(inputs=tensors), binary=False).body)
