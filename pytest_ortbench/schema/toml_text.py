"""Text of TOML that users write: read, or refused with the place of its first fault."""

from __future__ import annotations

import re
import sys
from pathlib import Path

from pytest_ortbench.core.errors import UsageError, says, why_unreadable

_DIGITS = re.compile(r"[0-9_]+")


def read_toml_file(path: Path) -> dict[str, object]:
    """Return what a file of TOML holds.

    Args:
        path: The file.

    Raises:
        UsageError: if it can't be read, or is no TOML.
    """
    try:
        content = path.read_bytes()
    except OSError as error:
        what, hint = why_unreadable(error)
        raise UsageError(f"the path {what}", place=str(path), hint=hint) from error
    return read_toml(utf8_text(content, place=str(path)), place=str(path))


def utf8_text(content: bytes, *, place: str) -> str:
    """Return the text of a file, without a mark at its start that tells the order of bytes.

    Args:
        content: What the file holds.
        place: The file, for messages.

    Raises:
        UsageError: if it is not written in UTF-8.
    """
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content[: error.start].count(b"\n") + 1
        raise UsageError(
            f"byte {content[error.start]:#04x} is not UTF-8",
            place=f"{place}, line {line}",
            hint="Save the file as UTF-8",
        ) from error


def read_toml(text: str, *, place: str, hint: str = "") -> dict[str, object]:
    """Return what a text of TOML holds.

    Args:
        text: The text.
        place: Where it stands, for messages.
        hint: What is written there, in place of a general next step.

    Raises:
        UsageError: if it is no TOML.
    """
    import msgspec.toml  # only where a table is read

    try:
        return msgspec.toml.decode(text, type=dict[str, object])
    except msgspec.DecodeError as error:
        raise UsageError(
            f"the file is not valid TOML ({says('its parser', str(error))})",
            place=place,
            hint=hint or "Correct the file at that place",
        ) from error
    except ValueError as error:
        most = sys.get_int_max_str_digits()
        lines = [
            f", line {text.count(chr(10), 0, number.start()) + 1}"
            for number in _DIGITS.finditer(text)
            if len(number.group()) > most
        ]
        raise UsageError(
            f"a number has more than {most} digits",
            place=place + next(iter(lines), ""),
            hint="If it is meant as a text, put it in quotes. If not, shorten it",
        ) from error
    except RecursionError as error:
        raise UsageError(
            "brackets [ or { are nested too deeply to be read",
            place=place,
            hint=hint or "Write flat lines KEY = VALUE below a line [TABLE]",
        ) from error
