"""ONNX Runtime's spelling of value types, and what numpy has for them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from pytest_ortbench.core.element_types import NUMPY_NAMES, STAND_INS
from pytest_ortbench.core.errors import WorkerError, why_unreadable
from pytest_ortbench.core.failures import case_error


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
        raise case_error(
            f"input {name!r} has the type {text!r}, for which values can't be made",
            "Export the model with inputs that are tensors",
        )
    kind, body = match.groups()
    if kind in ("tensor", "sparse_tensor"):
        return ValueType(kind=kind, element=body.strip())
    if kind == "map":
        key, _, value = body.partition(",")
        return ValueType(kind=kind, element=key.strip(), inner=parse_type(value, name=name))
    return ValueType(kind=kind, inner=parse_type(body, name=name))


def numpy_name(element: str, *, name: str) -> str:
    """numpy's name of an element type, or of the type that stands for it.

    Raises:
        WorkerError: ``unsupported`` if there is neither.
    """
    numpy_type = NUMPY_NAMES.get(element) or STAND_INS.get(element)
    if numpy_type is None:
        raise case_error(
            f"input {name!r} has elements of type {element!r}, which numpy does not have",
            hint="Measure a variant of the model whose inputs are float, float16 or integers",
        )
    return numpy_type


def unreadable_input(path: Path, error: OSError) -> WorkerError:
    """The failure of an input file that the file system does not give."""
    what, hint = why_unreadable(error)
    if isinstance(error, FileNotFoundError):  # it was there when the cases were planned
        hint = "Run again once the file is there"
    return input_error(f"the input file {path} {what}", hint)


def input_error(message: str, hint: str = "") -> WorkerError:
    """A failure of kind ``error`` while inputs are prepared."""
    return case_error(message, hint, kind="error")
