"""Reader of ONNX tensor files (``input_0.pb`` of a ``test_data_set``), without the onnx package.

The measured interpreter has no onnx and no protobuf. Of the format only what such files hold is
read: a TensorProto, or a SequenceProto of them; segments and external data are refused.
Field numbers are those of onnx.proto.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_ortbench.core.element_types import ELEMENT_NAMES, NUMPY_NAMES, STAND_INS
from pytest_ortbench.core.errors import WorkerError
from pytest_ortbench.worker.element_bits import from_bits
from pytest_ortbench.worker.element_types import input_error, unreadable_input
from pytest_ortbench.worker.protobuf import Malformed, fields, varint

if TYPE_CHECKING:
    from numpy.typing import NDArray

_DIMS, _DATA_TYPE, _SEGMENT, _FLOATS, _INT32S, _STRINGS, _INT64S = 1, 2, 3, 4, 5, 6, 7
_RAW, _DOUBLES, _UINT64S, _EXTERNAL, _LOCATION = 9, 10, 11, 13, 14

_SEQUENCE_TYPE, _SEQUENCE_TENSORS = 2, 3
_SEQUENCE_OF_TENSORS = 1
#: The first field of a sequence is its name, not a number; it has none behind this one.
_LAST_OF_SEQUENCE = 7


def read_tensor(path: Path) -> NDArray[Any]:
    """Read a file that holds one TensorProto.

    Returns:
        The array in its own type; strings as objects.

    Raises:
        WorkerError: if it can't be read or holds something else.
    """
    try:
        return parse_tensor(_content(path))
    except ValueError as error:
        raise _no_tensor(path, error) from error


def read_tensors(path: Path) -> list[NDArray[Any]]:
    """Read a file that holds a SequenceProto of tensors.

    Raises:
        WorkerError: if it can't be read or holds something else.
    """
    content = _content(path)
    try:
        tensors = []
        for number, _, value in fields(content):
            if (number == _DIMS and isinstance(value, int)) or number > _LAST_OF_SEQUENCE:
                raise Malformed("it holds one tensor, no sequence")
            if number == _SEQUENCE_TYPE and value != _SEQUENCE_OF_TENSORS:
                raise Malformed("its elements are not tensors")
            if number == _SEQUENCE_TENSORS and isinstance(value, bytes):
                tensors.append(parse_tensor(value))
        return tensors
    except ValueError as error:
        raise input_error(
            f"the input file {path} can't be read as a sequence of tensors of ONNX: {error}",
            hint="Write the tensors to the file with onnx.numpy_helper.from_list",
        ) from error


def parse_tensor(content: bytes) -> NDArray[Any]:
    """Parse the bytes of a TensorProto.

    Raises:
        Malformed: if they are none, or one that only external data completes.
    """
    dims: list[int] = []
    element = 0
    blocks: dict[int, list[tuple[int, int | bytes]]] = {}
    for number, wire, value in fields(content):
        if number == _DIMS:
            dims += _integers(wire, value)
        elif number == _DATA_TYPE and isinstance(value, int):
            element = value
        elif number == _SEGMENT:
            raise Malformed("it is a segment of a larger tensor")
        elif number == _EXTERNAL or (number == _LOCATION and value == 1):
            raise Malformed("its values lie in another file")
        else:
            blocks.setdefault(number, []).append((wire, value))
    name = ELEMENT_NAMES.get(element, f"number {element}")
    shape = tuple(_signed(size) for size in dims)
    if name in STAND_INS and min(shape, default=0) >= 0:
        return from_bits(_bits(name, blocks), name, shape)
    if not element:
        raise Malformed("it does not say the type of its elements" if content else "it is empty")
    if name not in NUMPY_NAMES:
        raise Malformed(f"its elements are of type {name}, which numpy can't hold")
    values = _values(name, blocks)
    count = 1
    for size in shape:
        count *= size
    if min(shape, default=0) < 0 or values.size != count:
        raise Malformed(f"it holds {values.size} values for the shape {list(shape)}")
    return values.reshape(shape)


def _bits(name: str, blocks: dict[int, list[tuple[int, int | bytes]]]) -> NDArray[Any]:
    """The bytes of a type that numpy lacks; as integers they lie two bytes or one in each."""
    import numpy as np

    if _RAW in blocks:
        raw = b"".join(value for _, value in blocks[_RAW] if isinstance(value, bytes))
        return np.frombuffer(raw, dtype=np.uint8)
    numbers = [n for wire, value in blocks.get(_INT32S, []) for n in _integers(wire, value)]
    width = "<u2" if name == "bfloat16" else "u1"
    return np.array(numbers, dtype=np.uint64).astype(width).view(np.uint8)


def _values(name: str, blocks: dict[int, list[tuple[int, int | bytes]]]) -> NDArray[Any]:
    """All values as one row, from whichever field holds values of this element type."""
    import numpy as np

    dtype = np.dtype(NUMPY_NAMES[name])
    result: NDArray[Any]
    if name == "string":
        texts = [value for _, value in blocks.get(_STRINGS, []) if isinstance(value, bytes)]
        result = np.empty(len(texts), dtype=object)
        result[:] = [text.decode("utf-8", "replace") for text in texts]
        return result
    if _RAW in blocks:
        raw = b"".join(value for _, value in blocks[_RAW] if isinstance(value, bytes))
        if len(raw) % dtype.itemsize:
            raise Malformed(f"its {len(raw)} bytes are no whole number of {name} values")
        return np.frombuffer(raw, dtype=dtype.newbyteorder("<")).astype(dtype)
    if name in ("float", "complex64", "double", "complex128"):
        width, number = (4, _FLOATS) if name in ("float", "complex64") else (8, _DOUBLES)
        packed = b"".join(_fixed(value, width) for _, value in blocks.get(number, []))
        return np.frombuffer(packed, dtype=dtype.newbyteorder("<")).astype(dtype)
    number = {"int64": _INT64S, "uint64": _UINT64S, "uint32": _UINT64S}.get(name, _INT32S)
    numbers = [n for wire, value in blocks.get(number, []) for n in _integers(wire, value)]
    unsigned = np.array(numbers, dtype=np.uint64)
    if name == "float16":
        return unsigned.astype(np.uint16).view(np.float16)
    return unsigned.astype(dtype)


def _integers(wire: int, value: int | bytes) -> list[int]:
    """Integers of a repeated field, packed into one block or one by one."""
    if isinstance(value, int):
        return [value]
    if wire != 2:
        raise Malformed("a field of integers holds something else")
    numbers, position = [], 0
    while position < len(value):
        number, position = varint(value, position)
        numbers.append(number)
    return numbers


def _fixed(value: int | bytes, width: int) -> bytes:
    if isinstance(value, int) or len(value) % width:
        raise Malformed("a field of floats holds something else")
    return value


def _signed(number: int) -> int:
    return number - 2**64 if number >= 2**63 else number


def _content(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise unreadable_input(path, error) from error


def _no_tensor(path: Path, error: Exception) -> WorkerError:
    return input_error(
        f"the input file {path} can't be read as a tensor of ONNX: {error}",
        hint="Write a TensorProto of ONNX that holds its values to the file, or give the array as "
        ".npy or .npz",
    )
