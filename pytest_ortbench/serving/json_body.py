"""JSON of a message that came from a network, read strictly, and what is said where it is none."""

from __future__ import annotations

import json
from typing import NoReturn

from pytest_ortbench.core.errors import first_line, says
from pytest_ortbench.core.units import counted
from pytest_ortbench.serving.tensor_values import SIZE_FIELD, ProtocolError, shown

#: Bytes of what is no JSON that are shown.
_BEGINNING = 60


class _NoNumberError(ValueError):
    """A word for infinity or NaN, which Python's reader takes and JSON lacks."""


def strict_json(text: bytes) -> object:
    """Read JSON without the words for infinity and NaN that Python takes beside it.

    Raises:
        ValueError: for what is no JSON, or nested too deeply.
    """
    try:
        return json.loads(text, parse_constant=_no_constant)
    except RecursionError as error:
        raise ValueError("it is nested too deeply") from error


def _no_constant(word: str) -> NoReturn:
    raise _NoNumberError(word)


def not_json(error: ValueError, text: bytes, *, announced: bool, header: str) -> ProtocolError:
    """Return the error of a body that can't be read.

    Args:
        error: What its parser raised.
        text: What should be JSON.
        announced: Whether a header tells its length.
        header: Name of that header.
    """
    what = (
        f"the first {counted(len(text), 'byte')} of the body, announced by the header {header}, are"
        if announced
        else "the body is"
    )
    length = _length_of_json(text)
    if isinstance(error, _NoNumberError):
        message = f"{error} is not a number in JSON"
        hint = f"Write a number, or send the tensor as bytes with {SIZE_FIELD}"
    elif length and announced:
        message = f"{what} more than JSON, which ends after {counted(length, 'byte')}"
        hint = f"Send the header {header}: {length}"
    elif length:
        message = f"the JSON ends after {counted(length, 'byte')}, but the body goes on"
        hint = f"If tensors follow as bytes, send the header {header}: {length}. If not, leave out "
        hint += "what follows"
    elif isinstance(error, UnicodeDecodeError):
        wrong = f"{error.object[error.start]:#04x}"
        message = f"{what} not JSON, since byte {error.start} ({wrong}) is not UTF-8"
        hint = "Encode the JSON as UTF-8"
    elif text.lstrip()[:1] not in (b"{", b"["):
        beginning = shown(text[:_BEGINNING].decode("utf-8", "replace"))
        message = f"{what} not JSON, but " + (f"begins with {beginning}" if text else "empty")
        hint = "Send a JSON object"
    else:
        message = f"{what} not JSON. {says('The parser', first_line(error))}"
        hint = (
            "Correct the JSON, or correct the header to its length in bytes"
            if announced
            else "Correct the JSON at this place"
        )
    return ProtocolError(message, place="body", hint=hint)


def _length_of_json(text: bytes) -> int:
    """Return how many bytes of a text are JSON where others follow, 0 where none follow."""
    characters = text.decode("utf-8", "surrogateescape")
    blank = len(characters) - len(characters.lstrip())
    try:
        value, end = json.JSONDecoder().raw_decode(characters, blank)
    except (ValueError, RecursionError):
        return 0
    rest = characters[end:]
    return (
        len(characters[:end].encode("utf-8", "surrogateescape"))
        if rest.strip() and isinstance(value, dict)
        else 0
    )
