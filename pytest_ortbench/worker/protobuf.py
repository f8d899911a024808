"""Fields of protobuf messages, without the protobuf package: the measured interpreter has none."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeVar

#: A view gives views of its parts, which copy nothing.
Content = TypeVar("Content", bytes, memoryview)


class Malformed(ValueError):
    """The bytes are no such message; the text says where they break off."""


def fields(content: Content) -> Iterator[tuple[int, int, int | Content]]:
    """Yield field number, wire type and value of a message."""
    position = 0
    while position < len(content):
        tag, position = varint(content, position)
        number, wire = tag >> 3, tag & 7
        value: int | Content
        if number == 0:
            raise Malformed(f"no protobuf field begins at byte {position - 1}")
        if wire == 0:
            value, position = varint(content, position)
        else:
            if wire == 2:
                length, position = varint(content, position)
            elif wire in (1, 5):
                length = 8 if wire == 1 else 4
            else:
                raise Malformed(f"unknown wire type {wire} before byte {position}")
            end = position + length
            if end > len(content):
                raise Malformed(f"it ends at byte {len(content)} instead of {end}")
            value, position = content[position:end], end
        yield number, wire, value


def varint(content: Content, position: int) -> tuple[int, int]:
    """Read the number at ``position``; returns it and where it ends."""
    result = shift = 0
    while True:
        if position >= len(content) or shift > 63:
            raise Malformed(f"the number at byte {position} breaks off")
        byte = content[position]
        position += 1
        result |= (byte & 0x7F) << shift
        if byte < 0x80:
            return result & 0xFFFF_FFFF_FFFF_FFFF, position
        shift += 7
