"""Core data types to plain JSON values and back, and the frames in which they travel.

The wire joins a host and a worker of the same version, so there is nothing to migrate here; run
documents, which do age, have :mod:`pytest_ortbench.schema.document`. Standard library only: this
module also runs inside the measured interpreter.
"""

from __future__ import annotations

import binascii
import dataclasses
import functools
import json
import sys
import types
import typing
from array import array
from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias, TypeVar, Union

Plain: TypeAlias = Union[bool, int, float, str, "Sequence[Plain]", "Mapping[str, Plain]", None]
"""What JSON can say."""

_Read: TypeAlias = Callable[[Plain, str], object]
_T = TypeVar("_T")

_SCALARS = (bool, int, float, str)

#: Integers from which on they travel packed, 64 bits each, little-endian, in base64: durations
#: come by the ten thousand a block, and reading their digits would cost the host, which must keep
#: quiet while a worker measures, ten times as much.
_PACKED_FROM = 64
_PACKED = "int64"


class WireError(ValueError):
    """A value can't travel, or what arrived is not what it should be."""


def to_plain(value: object) -> Plain:
    """Turn ``value`` into something that :mod:`json` can write.

    Args:
        value: A dataclass of core, or a tuple, list, dict with string keys, or scalar of such.

    Raises:
        WireError: for anything else, with the path to it.
    """
    return _write(value, "")


def from_plain(cls: type[_T], plain: Plain) -> _T:
    """Rebuild a ``cls`` from what :func:`to_plain` made of it, checking every type.

    Raises:
        WireError: where ``plain`` does not fit, with the path to the place.
    """
    return typing.cast(_T, _reader(cls)(plain, cls.__name__))


def new_token() -> str:
    """Return what every frame of one conversation starts with.

    It is random so that nothing which a wrapper (``ssh``, ``docker run``, a profiler) prints on
    the same stream can be taken for a frame.
    """
    import secrets  # only the host makes tokens, and it costs the worker's start

    return secrets.token_hex(8)


def encode_frame(token: str, plain: Plain) -> bytes:
    """Write one line: token, space, JSON. Only ASCII, so no encoding on the way can break it."""
    return f"{token} {json.dumps(plain, separators=(',', ':'))}\n".encode("ascii")


def decode_frame(token: str, line: bytes) -> tuple[bool, Plain]:
    """Read one line.

    Args:
        token: The conversation's token.
        line: One line, with or without its end.

    Returns:
        ``(True, value)`` for a frame, ``(False, None)`` for what somebody else printed. A banner
        without a line end in front of the frame is skipped.

    Raises:
        WireError: if the token is there but no JSON value behind it.
    """
    mark = f"{token} ".encode("ascii")
    start = line.find(mark)
    if start < 0:
        return False, None
    try:
        return True, json.loads(line[start + len(mark) :])
    except ValueError as error:
        raise WireError(f"broken frame: {error}") from error


def _write(value: object, place: str) -> Plain:
    if value is None or type(value) in _SCALARS:
        return typing.cast(Plain, value)
    if dataclasses.is_dataclass(value):
        return {
            field.name: _write(getattr(value, field.name), f"{place}.{field.name}")
            for field in dataclasses.fields(value)
        }
    if isinstance(value, tuple | list):
        if set(map(type, value)) <= {int}:
            return list(value) if len(value) < _PACKED_FROM else _pack(value)
        return [_write(item, f"{place}[{index}]") for index, item in enumerate(value)]
    if isinstance(value, Mapping):
        return {_key(key, place): _write(item, f"{place}[{key!r}]") for key, item in value.items()}
    raise WireError(f"{place or 'value'}: {type(value).__name__} can't travel")


def _pack(values: Sequence[int]) -> Plain:
    try:
        packed = array("q", values)
    except OverflowError:
        return list(values)
    if sys.byteorder == "big":
        packed.byteswap()
    return {_PACKED: binascii.b2a_base64(packed.tobytes(), newline=False).decode("ascii")}


def _unpack(plain: Plain, place: str) -> tuple[int, ...]:
    text = plain.get(_PACKED) if isinstance(plain, dict) and len(plain) == 1 else None
    if not isinstance(text, str):
        raise _misfit(plain, "array", place)
    packed = array("q")
    try:
        packed.frombytes(binascii.a2b_base64(text))
    except ValueError as error:  # no base64, or no multiple of eight bytes
        raise WireError(f"{place}: broken packed integers: {error}") from error
    if sys.byteorder == "big":
        packed.byteswap()
    return tuple(packed)


def _key(key: object, place: str) -> str:
    if not isinstance(key, str):
        raise WireError(f"{place}: key {key!r} is not a string")
    return key


def _reader(annotation: object) -> _Read:
    """Return the function that reads one type; kept, since types are few and values many."""
    read = _READERS.get(annotation)
    if read is None:
        read = _READERS[annotation] = _make_reader(annotation)
    return read


_READERS: dict[object, _Read] = {}


def _make_reader(annotation: object) -> _Read:
    if annotation is type(None):
        return _read_none
    if annotation is float:
        return _read_float
    if annotation in _SCALARS:
        return functools.partial(_read_scalar, annotation)
    if dataclasses.is_dataclass(annotation) and isinstance(annotation, type):
        return _dataclass_reader(annotation)
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    if origin in (Union, types.UnionType):
        return functools.partial(_read_union, tuple((a, _reader(a)) for a in arguments))
    if origin is tuple:
        return _tuple_reader(arguments)
    if origin is dict and arguments[0] is str:
        return functools.partial(_read_dict, _reader(arguments[1]))
    raise WireError(f"{annotation!r} can't travel")


def _read_none(plain: Plain, place: str) -> None:
    if plain is not None:
        raise _misfit(plain, "null", place)


def _read_float(plain: Plain, place: str) -> float:
    if type(plain) is float or type(plain) is int:
        return float(plain)
    raise _misfit(plain, "float", place)


def _read_scalar(wanted: type, plain: Plain, place: str) -> object:
    if type(plain) is not wanted:
        raise _misfit(plain, wanted.__name__, place)
    return plain


def _read_dict(read: _Read, plain: Plain, place: str) -> dict[str, object]:
    if not isinstance(plain, dict):
        raise _misfit(plain, "object", place)
    return {key: read(item, f"{place}[{key!r}]") for key, item in plain.items()}


def _tuple_reader(arguments: tuple[object, ...]) -> _Read:
    if len(arguments) == 2 and arguments[1] is ...:
        item_type = arguments[0]
        read = _reader(item_type)

        def read_any(plain: Plain, place: str) -> tuple[object, ...]:
            if isinstance(plain, list):
                if item_type in (int, str) and set(map(type, plain)) <= {item_type}:
                    return tuple(plain)
                items: Sequence[Plain] = plain
            else:
                items = _unpack(plain, place)
                if item_type is int:
                    return tuple(items)
            return tuple(read(item, f"{place}[{i}]") for i, item in enumerate(items))

        return read_any

    readers = [_reader(argument) for argument in arguments]

    def read_fixed(plain: Plain, place: str) -> tuple[object, ...]:
        if not isinstance(plain, list) or len(plain) != len(readers):
            raise _misfit(plain, f"array of {len(readers)}", place)
        return tuple(
            read(item, f"{place}[{i}]")
            for i, (read, item) in enumerate(zip(readers, plain, strict=True))
        )

    return read_fixed


def _read_union(members: tuple[tuple[object, _Read], ...], plain: Plain, place: str) -> object:
    # An exact match of the JSON type decides, so that 1, 1.0, True and "1" stay what they were.
    for annotation, read in members:
        if type(plain) is annotation:
            return read(plain, place)
    for _, read in members:
        try:
            return read(plain, place)
        except WireError:
            continue
    raise _misfit(plain, " | ".join(_name(annotation) for annotation, _ in members), place)


def _dataclass_reader(cls: type) -> _Read:
    hints = typing.get_type_hints(cls)
    fields = {field.name: _reader(hints[field.name]) for field in dataclasses.fields(cls)}

    def read(plain: Plain, place: str) -> object:
        if not isinstance(plain, dict):
            raise _misfit(plain, cls.__name__, place)
        unknown = plain.keys() - fields.keys()
        if unknown:
            raise WireError(f"{place}: unknown field {min(unknown)!r} of {cls.__name__}")
        values = {name: fields[name](item, f"{place}.{name}") for name, item in plain.items()}
        try:
            return cls(**values)
        except TypeError as error:  # a field without a default is missing
            raise WireError(f"{place}: {error}") from error

    return read


def _name(annotation: object) -> str:
    return annotation.__name__ if isinstance(annotation, type) else str(annotation)


def _misfit(plain: Plain, wanted: str, place: str) -> WireError:
    value = "null" if plain is None else f"{type(plain).__name__} {str(plain)[:40]!r}"
    return WireError(f"{place}: {value} is not {wanted}")
