"""Numbers of element types that numpy lacks, and the bits that ONNX Runtime keeps of them.

Such numbers are held by a type of numpy that has them all (``STAND_INS``): float32 for bfloat16 and
the floats of 8 and 4 bits, int8 and uint8 for integers of 4 and 2 bits.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any

from pytest_ortbench.core.element_types import ELEMENT_TYPES, STAND_INS

if TYPE_CHECKING:
    from numpy.typing import NDArray

#: Exponent bits, mantissa bits and bias of small floats with a sign.
_FLOATS = {
    "float8e4m3fn": (4, 3, 7),
    "float8e4m3fnuz": (4, 3, 8),
    "float8e5m2": (5, 2, 15),
    "float8e5m2fnuz": (5, 2, 16),
    "float4e2m1": (2, 1, 1),
}
#: Where those with 8 bits have NaN (``fn``) or only there (``fnuz``), and infinity.
_NAN = {
    "float8e4m3fn": (0x7F, 0xFF),
    "float8e4m3fnuz": (0x80,),
    "float8e5m2": (0x7D, 0x7E, 0x7F, 0xFD, 0xFE, 0xFF),
    "float8e5m2fnuz": (0x80,),
    "float8e8m0": (0xFF,),
}
_INFINITE = {"float8e5m2": (0x7C, 0xFC)}


def represented(values: NDArray[Any], element: str) -> NDArray[Any]:
    """Return the numbers that an element type has for these, in its stand-in; others unchanged."""
    if element not in STAND_INS:
        return values
    return from_bits(to_bits(values, element), element, values.shape)


def to_bits(values: NDArray[Any], element: str) -> NDArray[Any]:
    """Return the bytes of a tensor in ONNX Runtime's memory: the nearest numbers, packed."""
    import numpy as np

    flat = np.ascontiguousarray(values).reshape(-1)
    if element == "bfloat16":
        return _bfloat16_bits(flat.astype("float32")).view(np.uint8)
    bits = ELEMENT_TYPES[element].bits
    table = _table(element)
    order = np.argsort(table, kind="stable")
    order = order[np.isfinite(table[order])]
    known = table[order]
    wide = flat.astype("float64")
    near = np.clip(wide, known[0], known[-1])
    above = np.clip(np.searchsorted(known, near), 1, known.size - 1)
    nearer = np.abs(known[above] - near) < np.abs(near - known[above - 1])
    codes = order[np.where(nearer, above, above - 1)].astype(np.uint8)
    codes[np.isnan(wide)] = (_NAN.get(element) or (0,))[0]
    if element not in _INFINITE:
        return _packed(codes, bits)
    infinite = np.isinf(wide)
    codes[infinite] = np.where(wide[infinite] > 0, *_INFINITE[element])
    return _packed(codes, bits)


def from_bits(data: NDArray[Any], element: str, shape: tuple[int, ...]) -> NDArray[Any]:
    """Return the numbers of a tensor in its stand-in.

    Args:
        data: Its bytes.
        element: Its element type.
        shape: Its sizes.

    Raises:
        ValueError: if there are more or fewer bytes than the shape needs.
    """
    import numpy as np

    count = int(np.prod(shape, dtype=np.int64))
    bits = ELEMENT_TYPES[element].bits
    if data.size != -(-count * bits // 8):
        raise ValueError(f"{data.size} bytes for {count} values of {element}")
    if element == "bfloat16":
        wide: NDArray[Any] = data.view("<u2").astype(np.uint32) << np.uint32(16)
        return wide.view(np.float32).reshape(shape)
    codes = _unpacked(data, bits)[:count]
    result: NDArray[Any] = _table(element)[codes].astype(STAND_INS[element])
    return result.reshape(shape)


def from_codes(codes: NDArray[Any], element: str) -> NDArray[Any]:
    """Return the numbers of values that lie in a byte each, as ml_dtypes keeps them."""
    import numpy as np

    mask = np.uint8((1 << ELEMENT_TYPES[element].bits) - 1)
    result: NDArray[Any] = _table(element)[codes & mask].astype(STAND_INS[element])
    return result


def _bfloat16_bits(values: NDArray[Any]) -> NDArray[Any]:
    """The upper half of each float32, rounded to the nearest, to the even one of two."""
    import numpy as np

    bits = values.view(np.uint32)
    rounded = (bits + np.uint32(0x7FFF) + ((bits >> np.uint32(16)) & np.uint32(1))) >> np.uint32(16)
    return np.where(np.isnan(values), 0x7FC0, rounded).astype("<u2")


@lru_cache(maxsize=16)
def _table(element: str) -> NDArray[Any]:
    """The number of each code, NaN where it is none."""
    import numpy as np

    bits = ELEMENT_TYPES[element].bits
    codes = np.arange(1 << bits)
    if element in ("uint4", "uint2"):
        return codes.astype(np.float64)
    if element in ("int4", "int2"):
        half = 1 << (bits - 1)
        return ((codes + half) % (2 * half) - half).astype(np.float64)
    if element == "float8e8m0":
        numbers = np.ldexp(1.0, codes - 127)
    else:
        exponent_bits, mantissa_bits, bias = _FLOATS[element]
        exponent = (codes >> mantissa_bits) & ((1 << exponent_bits) - 1)
        fraction = (codes & ((1 << mantissa_bits) - 1)) / (1 << mantissa_bits)
        sign = np.where(codes >> (bits - 1), -1.0, 1.0)
        lifted = np.where(exponent > 0, 1 + fraction, fraction)
        numbers = sign * np.ldexp(lifted, np.maximum(exponent, 1) - bias)
    for code in _NAN.get(element, ()):
        numbers[code] = np.nan
    for code, number in zip(_INFINITE.get(element, ()), (np.inf, -np.inf), strict=False):
        numbers[code] = number
    return numbers


def _packed(codes: NDArray[Any], bits: int) -> NDArray[Any]:
    """Several codes of less than 8 bits in one byte, the first one lowest."""
    import numpy as np

    if bits == 8:
        return codes
    in_byte = 8 // bits
    filled = np.zeros(-(-codes.size // in_byte) * in_byte, dtype=np.uint8)
    filled[: codes.size] = codes
    shifts = (np.arange(in_byte) * bits).astype(np.uint8)
    result: NDArray[Any] = np.bitwise_or.reduce(filled.reshape(-1, in_byte) << shifts, axis=1)
    return result.astype(np.uint8)


def _unpacked(data: NDArray[Any], bits: int) -> NDArray[Any]:
    import numpy as np

    if bits == 8:
        return data
    shifts = (np.arange(8 // bits) * bits).astype(np.uint8)
    mask = np.uint8((1 << bits) - 1)
    result: NDArray[Any] = ((data[:, None] >> shifts) & mask).reshape(-1)
    return result
