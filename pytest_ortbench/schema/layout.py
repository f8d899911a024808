"""How a document looks: indented for people, with every array of plain values on one line.

``json.dumps(indent=2)`` would spread the three thousand durations of a case over as many lines,
and a document on one line can't be read or compared by line at all.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from typing import TypeAlias

#: What JSON can hold, as Python values; arrays are lists when read and tuples when written.
Plain: TypeAlias = (
    "bool | int | float | str | list[Plain] | tuple[Plain, ...] | dict[str, Plain] | None"
)

_ENCODER = json.JSONEncoder(ensure_ascii=False, allow_nan=False)

#: An object of plain values stays on one line up to this width, counted without indentation.
_WIDTH = 96


def lay_out(value: Plain, indent: int = 0) -> str:
    """Return ``value`` as JSON text, indented by two spaces a level, without a final newline.

    Args:
        value: A value without NaN and infinity.
        indent: Level at which the text will stand.

    Raises:
        ValueError: if there is a NaN or an infinity in it; see :func:`find_nonfinite`.
    """
    if isinstance(value, dict) and value and not _fits_one_line(value):
        items = [
            f"{one_line_json(name)}: {lay_out(item, indent + 1)}" for name, item in value.items()
        ]
        return _block("{", items, "}", indent)
    # An array of a document holds one kind of values, so the first one stands for all.
    if isinstance(value, list | tuple) and value and isinstance(value[0], list | tuple | dict):
        return _block("[", [lay_out(item, indent + 1) for item in value], "]", indent)
    return one_line_json(value)


def one_line_json(value: Plain) -> str:
    """Return ``value`` as JSON text on one line, whatever its length."""
    return _ENCODER.encode(value)


def find_nonfinite(value: Plain, path: str = "$") -> Iterator[str]:
    """Yield ``path is NaN`` for every number that JSON has no word for; others are infinite."""
    if isinstance(value, float):
        if not math.isfinite(value):
            yield f"{path} is {'NaN' if math.isnan(value) else 'infinite'}"
    elif isinstance(value, dict):
        for name, item in value.items():
            yield from find_nonfinite(item, f"{path}.{name}")
    elif isinstance(value, list | tuple):
        for index, item in enumerate(value):
            # Most items are durations: integers, thousands of them a case.
            if type(item) is not int:
                yield from find_nonfinite(item, f"{path}[{index}]")


def to_utf8(text: str) -> bytes:
    """Return JSON text as bytes, with half characters written out: ``\\udce9`` as six characters.

    File names that are not UTF-8 reach Python as such halves, which UTF-8 can't express.
    """
    try:
        return text.encode()
    except UnicodeEncodeError:
        # Two backslashes are one in the string that a reader gets: text, not half a character.
        return re.sub("[\ud800-\udfff]", lambda half: f"\\\\u{ord(half[0]):04x}", text).encode()


def _nests(value: Plain) -> bool:
    return isinstance(value, list | tuple | dict) and bool(value)


def _fits_one_line(value: dict[str, Plain]) -> bool:
    return not any(map(_nests, value.values())) and len(one_line_json(value)) <= _WIDTH


def _block(opening: str, items: list[str], closing: str, indent: int) -> str:
    pad = "  " * (indent + 1)
    body = ",\n".join(pad + item for item in items)
    return f"{opening}\n{body}\n{'  ' * indent}{closing}"
