"""What the OpenAPI of a service says of its bodies."""

from __future__ import annotations

from typing import Any

from pytest_ortbench.serving.protocol import BINARY_TYPE, JSON_TYPE
from pytest_ortbench.serving.served_model import VERSION
from pytest_ortbench.serving.tensor_values import DATATYPES

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


def with_model(schema: dict[str, Any], name: str) -> dict[str, Any]:
    """Return the OpenAPI of a service whose paths name the one model that it has, and its version.

    Args:
        schema: As FastAPI makes it; it is changed.
        name: What requests call the model.
    """
    known = {"name": name, "version": VERSION}
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
    return schema
