"""The values of tensors as the Open Inference Protocol has them: in JSON, and as bytes.

Values of BF16 are held as float32 and those of BYTES as text, as everywhere in a worker.
"""

from __future__ import annotations

import math
import reprlib
from itertools import chain
from typing import TYPE_CHECKING, Any

from pytest_ortbench.core.element_types import NUMPY_NAMES, STAND_INS
from pytest_ortbench.core.errors import OrtbenchError
from pytest_ortbench.core.units import counted
from pytest_ortbench.worker.element_bits import from_bits, represented, to_bits

if TYPE_CHECKING:
    from numpy.typing import NDArray

#: Element type of ONNX by the protocol's name of it.
DATATYPES: dict[str, str] = {
    "BOOL": "bool",
    "UINT8": "uint8",
    "UINT16": "uint16",
    "UINT32": "uint32",
    "UINT64": "uint64",
    "INT8": "int8",
    "INT16": "int16",
    "INT32": "int32",
    "INT64": "int64",
    "FP16": "float16",
    "FP32": "float",
    "FP64": "double",
    "BF16": "bfloat16",
    "BYTES": "string",
}
#: The protocol's name of each element type that it has.
DATATYPE_OF: dict[str, str] = {element: datatype for datatype, element in DATATYPES.items()}

#: Header that says how many bytes of a body are JSON; what follows are tensors as bytes.
HEADER_LENGTH = "Inference-Header-Content-Length"
#: Where a tensor says how many bytes behind the JSON are its own.
SIZE_FIELD = "parameters.binary_data_size"
#: Bytes of the number in front of each element of BYTES.
_LENGTH_BYTES = 4
#: Types of JSON values that elements may have.
_JSON_TYPES: dict[str, frozenset[type]] = {
    "f": frozenset({float, int}),
    "i": frozenset({int}),
    "u": frozenset({int}),
    "b": frozenset({bool}),
    "O": frozenset({str}),
}


#: What a value of JSON must be, for people.
_JSON_WORDS = {
    "f": "a number",
    "i": "a whole number",
    "u": "a whole number that is not negative",
    "b": "true or false",
    "O": "a string",
}
#: How a list of JSON holds the values of a tensor.
#: How elements of BYTES are sent.
_TEXTS_FORM = "An element is its length, a 4-byte little-endian number, and then its bytes"
#: Largest numbers of types whose array has another one than numpy's type of the name.
_LARGEST = {"BF16": 3.38953e38}


class _OfJson(reprlib.Repr):
    """Values shortened, their words as JSON has them."""

    def repr_bool(self, value: bool, _level: int) -> str:
        return "true" if value else "false"

    def repr_NoneType(self, _value: None, _level: int) -> str:  # its name in reprlib
        return "null"


_OF_JSON = _OfJson()


class ProtocolError(OrtbenchError):
    """A message breaks the protocol; its place is a field: ``inputs[0].shape``."""


def values_of_bytes(
    data: memoryview, datatype: str, shape: tuple[int, ...], place: str
) -> NDArray[Any]:
    """Values that came as bytes, in the order of the elements; the place is that of the tensor."""
    import numpy as np

    count = math.prod(shape)
    if datatype == "BYTES":
        return _texts(data, count, place)
    dtype = np.dtype(np.uint16 if datatype == "BF16" else numpy_type(datatype)).newbyteorder("<")
    if len(data) != count * dtype.itemsize:
        raise ProtocolError(
            f"{counted(count, 'element')} of {datatype}, as the shape {list(shape)} has, need "
            f"{counted(count * dtype.itemsize, 'byte')}, but binary_data_size is {len(data)}",
            place=f"{place}.{SIZE_FIELD}",
            hint=f"If shape or datatype is wrong, correct it. If not, send "
            f"{counted(count * dtype.itemsize, 'byte')}, and set {SIZE_FIELD} to "
            f"{count * dtype.itemsize}",
        )
    if datatype == "BF16":
        return from_bits(np.frombuffer(data, dtype=np.uint8), "bfloat16", (count,))
    if datatype == "BOOL" and count and np.frombuffer(data, dtype=np.uint8).max() > 1:
        wrong = int(np.argmax(np.frombuffer(data, dtype=np.uint8) > 1))
        raise ProtocolError(
            f"in the bytes of the tensor, element {wrong} is {data[wrong]}, but BOOL has only 0 "
            "and 1",
            place=place,
            hint="Send one byte for each element, 0 for false and 1 for true",
        )
    # What lies at an odd address is copied: kernels read whole vectors.
    return np.require(np.frombuffer(data, dtype=dtype), requirements=["C", "ALIGNED"])


def _texts(data: memoryview, count: int, place: str) -> NDArray[Any]:
    """The elements of BYTES: each has its length in front."""
    import numpy as np

    texts: list[str] = []
    position = 0
    while position < len(data) and len(texts) < count:
        start = position + _LENGTH_BYTES
        length = int.from_bytes(data[position:start], "little")
        position = start + length
        if start > len(data) or position > len(data):
            there = counted(len(data) + _LENGTH_BYTES - start, "byte")
            raise ProtocolError(
                f"the data has only {there} for element {len(texts)}, less than its length takes"
                if start > len(data)
                else f"the length in front of element {len(texts)} is {counted(length, 'byte')}, "
                f"but only {len(data) - start} follow",
                place=place,
                hint=f"{_TEXTS_FORM}. Send element {len(texts)} in this form, and correct "
                f"{SIZE_FIELD}"
                if start > len(data)
                else f"{_TEXTS_FORM}. Correct this length, or send the rest of the element",
            )
        try:
            texts.append(str(data[start:position], "utf-8"))
        except UnicodeDecodeError as error:
            raise ProtocolError(
                f"in the bytes of the tensor, element {len(texts)} is not UTF-8, since its byte "
                f"{error.start} is {error.object[error.start]:#04x}",
                place=place,
                hint="Encode the text as UTF-8. If it gets longer or shorter by that, correct the "
                f"length in front of it and {SIZE_FIELD}",
            ) from error
    if len(texts) != count or position != len(data):
        left = len(data) - position
        raise ProtocolError(
            f"the shape has {counted(count, 'element')}, but the data goes on for "
            f"{counted(left, 'byte')} after that"
            if left
            else f"the shape has {counted(count, 'element')}, but {len(texts)} came",
            place=place,
            hint="If the rest of the data holds more elements, correct the shape. If not, leave it "
            f"out, and set {SIZE_FIELD} to {position}"
            if left
            else f"Correct the shape, or send the missing elements and raise {SIZE_FIELD}",
        )
    array = np.empty(count, dtype=object)
    array[:] = texts
    return array


def values_of_json(data: object, datatype: str, shape: tuple[int, ...], place: str) -> NDArray[Any]:
    """Values that came as numbers or texts of JSON, flat or nested like the shape."""
    import numpy as np

    flat = _flat(data, shape, place)
    dtype = np.dtype(numpy_type(datatype))
    if not {*map(type, flat)} <= _JSON_TYPES[dtype.kind]:
        index, wrong = next(
            (index, element)
            for index, element in enumerate(flat)
            if type(element) not in _JSON_TYPES[dtype.kind]
        )
        if isinstance(wrong, list):
            raise ProtocolError(
                f"element {index} is a list, {shown(wrong)}, but the shape {list(shape)} has a "
                "single value there",
                place=place,
                hint="Write a single value in its place, or correct the shape",
            )
        raise ProtocolError(
            f"element {index} is {shown(wrong)}, which is not a value of {datatype}",
            place=place,
            hint=f"Write {_JSON_WORDS[dtype.kind]}",
        )
    if dtype.kind == "O":
        _require_utf8(flat, place)
    if dtype.kind in "iu" and flat:
        limits = np.iinfo(dtype)
        if min(flat) < limits.min or max(flat) > limits.max:
            index, wrong = next(
                (index, number)
                for index, number in enumerate(flat)
                if not limits.min <= number <= limits.max
            )
            raise ProtocolError(
                f"element {index} is {shown(wrong)}, outside the range of {datatype}, {limits.min} "
                f"to {limits.max}",
                place=place,
                hint="Write a number of this range",
            )
    try:
        with np.errstate(over="ignore"):
            array = np.array(flat, dtype=dtype)
    except OverflowError as error:
        largest = max(range(len(flat)), key=lambda index: abs(flat[index]))
        raise _too_large(flat, largest, datatype, place) from error
    if dtype.kind == "f":
        with np.errstate(over="ignore"):
            finite = np.isfinite(represented(array, DATATYPES[datatype]))
        if not finite.all():
            raise _too_large(flat, int(np.argmin(finite)), datatype, place)
    return array


def _too_large(flat: list[Any], index: int, datatype: str, place: str) -> ProtocolError:
    import numpy as np

    most = _LARGEST.get(datatype, float(np.finfo(numpy_type(datatype)).max))
    return ProtocolError(
        f"element {index} is {shown(flat[index])}, outside the range of {datatype}, {-most:g} to "
        f"{most:g}",
        place=place,
        hint="Write a number of this range",
    )


def shown(value: object) -> str:
    """Return a value of a message for people, shortened: it may be of any length."""
    return _OF_JSON.repr(value)


def _require_utf8(texts: list[str], place: str) -> None:
    """Refuse half of a surrogate pair, which JSON can spell."""
    for index, text in enumerate(texts):
        refuse_half(text, f"element {index}", place)


def refuse_half(text: str, what: str, place: str) -> None:
    """Refuse a text with half of a surrogate pair.

    Args:
        text: The text.
        what: What it is, for the message.
        place: Its field.

    Raises:
        ProtocolError: if it has one.
    """
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise ProtocolError(
            f"{what} is not valid Unicode: {text[error.start]!a} is half of a surrogate pair",
            place=place,
            hint="Write both halves, or leave the character out",
        ) from error


def _flat(data: object, shape: tuple[int, ...], place: str) -> list[Any]:
    """The elements in order; a list that is nested must be nested like the shape."""
    if not isinstance(data, list):
        single = f", e.g. [{shown(data)}]" if isinstance(data, bool | int | float) else ""
        raise ProtocolError(
            "the values are missing" if data is None else f"{shown(data)} is not a list",
            place=place,
            hint='Write them as a list, e.g. "data": [1, 2, 3], or send them as bytes with '
            f"{SIZE_FIELD}"
            if data is None
            else f"Write the values as a list{single}",
        )
    if not any(isinstance(element, list) for element in data):
        if len(data) != math.prod(shape):
            raise ProtocolError(
                f"the shape {list(shape)} has {math.prod(shape)} elements, but {len(data)} came",
                place=place,
                hint="Send one value for each element, or correct the shape",
            )
        return data
    level: list[Any] = [data]
    for axis, size in enumerate(shape):
        inner = list(chain.from_iterable(level))
        if axis + 1 < len(shape):
            _require_lists(inner, shape, axis + 1, place)
        for part in level:
            if len(part) != size:
                raise ProtocolError(
                    f"the list {shown(part)} has {counted(len(part), 'element')}, but the shape "
                    f"{list(shape)} has {size} there",
                    place=place,
                    hint=("Add what is missing" if len(part) < size else "Leave out the rest")
                    + ", or correct the shape",
                )
        level = inner
    return level


def _require_lists(parts: list[Any], shape: tuple[int, ...], axis: int, place: str) -> None:
    """Refuse a single value where the shape has an axis, and the data a list for others."""
    for part in parts:
        if not isinstance(part, list):
            raise ProtocolError(
                f"{shown(part)} stands where the shape {list(shape)} has a list of {shape[axis]} "
                f"{'lists' if axis + 1 < len(shape) else 'values'}",
                place=place,
                hint="Write such a list in its place, or correct the shape",
            )


def numpy_type(datatype: str) -> str:
    """Return numpy's name of the type that holds values of a datatype."""
    element = DATATYPES[datatype]
    return NUMPY_NAMES.get(element) or STAND_INS[element]


def json_of_values(array: NDArray[Any], datatype: str, place: str) -> list[Any]:
    """Return values as JSON holds them, flat.

    Raises:
        ProtocolError: for infinity and NaN, which JSON does not have.
    """
    import numpy as np

    if np.dtype(numpy_type(datatype)).kind == "f" and not np.isfinite(array).all():
        raise ProtocolError(
            "the output contains NaN or infinity, which JSON does not have",
            place=place,
            hint='Ask for bytes: at the top of the request, beside "inputs", put '
            '"parameters": {"binary_data_output": true}',
        )
    values: list[Any] = array.reshape(-1).tolist()
    return values


def bytes_of_values(array: NDArray[Any], datatype: str) -> bytes:
    """Return values as bytes, in the order of the elements."""
    import numpy as np

    if datatype == "BYTES":
        texts = [str(text).encode("utf-8") for text in array.reshape(-1)]
        return b"".join(len(text).to_bytes(_LENGTH_BYTES, "little") + text for text in texts)
    if datatype == "BF16":
        return to_bits(array, "bfloat16").tobytes()
    dtype = np.dtype(numpy_type(datatype)).newbyteorder("<")
    return np.ascontiguousarray(array, dtype=dtype).tobytes()
