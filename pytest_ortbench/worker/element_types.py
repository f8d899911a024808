"""ONNX Runtime's spelling of value types, and what numpy has for them."""

from __future__ import annotations

import re
from dataclasses import dataclass

from pytest_ortbench.core.errors import WorkerError
from pytest_ortbench.core.outcome import Failure

#: numpy's name of every element type that numpy has, by ONNX Runtime's name.
NUMPY_NAMES: dict[str, str] = {
    "float": "float32",
    "double": "float64",
    "float16": "float16",
    "int8": "int8",
    "int16": "int16",
    "int32": "int32",
    "int64": "int64",
    "uint8": "uint8",
    "uint16": "uint16",
    "uint32": "uint32",
    "uint64": "uint64",
    "bool": "bool",
    "string": "object",
    "complex64": "complex64",
    "complex128": "complex128",
}

#: Numbers of the element types that files may hold, by ONNX's TensorProto.DataType.
PROTO_ELEMENTS: dict[int, str] = {
    1: "float",
    2: "uint8",
    3: "int8",
    4: "uint16",
    5: "int16",
    6: "int32",
    7: "int64",
    8: "string",
    9: "bool",
    10: "float16",
    11: "double",
    12: "uint32",
    13: "uint64",
    14: "complex64",
    15: "complex128",
    16: "bfloat16",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ValueType:
    """A parsed type.

    Attributes:
        kind: ``tensor``, ``seq``, ``map``, ``optional`` or ``sparse_tensor``.
        element: Element type of a tensor (``float16``), key type of a map (``string``).
        inner: What a sequence, map or optional holds.
    """

    kind: str
    element: str = ""
    inner: ValueType | None = None


def parse_type(text: str, *, name: str) -> ValueType:
    """Parse ``tensor(float)``, ``seq(map(int64,tensor(float)))``, ``optional(tensor(bool))``.

    Args:
        text: ONNX Runtime's spelling.
        name: Name of the input, for the message.

    Raises:
        WorkerError: ``unsupported`` if it is none of these.
    """
    match = re.fullmatch(r"\s*(tensor|sparse_tensor|seq|map|optional)\((.*)\)\s*", text)
    if match is None:
        raise unsupported(f"input {name!r} has the type {text!r}, which can't be fed")
    kind, body = match.groups()
    if kind in ("tensor", "sparse_tensor"):
        return ValueType(kind=kind, element=body.strip())
    if kind == "map":
        key, _, value = body.partition(",")
        return ValueType(kind=kind, element=key.strip(), inner=parse_type(value, name=name))
    return ValueType(kind=kind, inner=parse_type(body, name=name))


def numpy_name(element: str, *, name: str) -> str:
    """numpy's name of an element type.

    Raises:
        WorkerError: ``unsupported`` if numpy has no such type.
    """
    found = NUMPY_NAMES.get(element)
    if found is None:
        raise unsupported(
            f"input {name!r} has elements of type {element!r}, which numpy can't hold",
            hint="Measure a variant of the model whose inputs are float, float16 or integers",
        )
    return found


def unsupported(message: str, hint: str = "") -> WorkerError:
    """A failure of kind ``unsupported`` while inputs are prepared."""
    return WorkerError(Failure(kind="unsupported", phase="inputs", message=message, hint=hint))


def input_error(message: str, hint: str = "") -> WorkerError:
    """A failure of kind ``error`` while inputs are prepared."""
    return WorkerError(Failure(kind="error", phase="inputs", message=message, hint=hint))
