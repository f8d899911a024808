"""Seeded values, the same bits on every machine and every numpy.

Only raw integers of PCG64 are taken from numpy, whose stream is fixed by its compatibility policy;
the rest is integer arithmetic and single IEEE operations. ``Generator.normal`` and its kin may
change between numpy versions, and exp or log differ in the last bit between CPUs.
"""

from __future__ import annotations

import hashlib
import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pytest_ortbench.core.model import ValueHint
from pytest_ortbench.worker.arranged import ARRANGED
from pytest_ortbench.worker.bits import bell, share_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

#: What a string input gets where nothing says which values the graph knows.
_WORDS = ("a", "b", "c")

#: Values drawn at a time, so that a large input does not cost many times its size meanwhile.
_CHUNK = 1 << 18


def draw(
    shape: tuple[int, ...],
    dtype: str,
    hint: ValueHint,
    *,
    seed: int,
    name: str,
    sample: int = 0,
    magnitude: float = 1.0,
) -> NDArray[Any]:
    """Make the values of one tensor.

    Args:
        shape: One size an axis; empty for a scalar.
        dtype: numpy's name of the element type; ``object`` for strings.
        hint: How values come about.
        seed: Together with ``name`` and ``sample`` it decides every value.
        name: Name of the input.
        sample: Number of the input set.
        magnitude: Factor on ``normal`` values. Those that a consumer bounds are left alone: a
            bound that is exceeded tenfold is another workload, or no valid input at all.

    Returns:
        An array of that shape and type, without subnormal numbers.
    """
    import numpy as np

    fixed = _fixed(hint, shape, dtype)
    if fixed is not None:
        return fixed
    generator = np.random.PCG64(_entropy(seed, name, sample))
    if dtype != "object" and not all(map(_is_number, hint.choices)):
        # Words of an operator on texts, which the graph feeds with numbers all the same.
        hint = replace(hint, kind="normal", choices=())
    arranged = ARRANGED.get(hint.kind)
    if arranged is not None and dtype not in ("object", "bool"):
        return arranged(shape, hint, generator.random_raw).astype(dtype)
    count = math.prod(shape)
    values: NDArray[Any] = np.empty(count, dtype=dtype)
    for start in range(0, count, _CHUNK):
        raw = generator.random_raw(min(_CHUNK, count - start))
        values[start : start + raw.size] = _drawn(hint, raw, dtype, magnitude)
    _not_all_zero(values, hint, shape)
    return values.reshape(shape)


def _entropy(seed: int, name: str, sample: int) -> int:
    text = f"{seed}\x00{sample}\x00{name}".encode()
    return int.from_bytes(hashlib.sha256(text).digest()[:16], "little")


def _fixed(hint: ValueHint, shape: tuple[int, ...], dtype: str) -> NDArray[Any] | None:
    """Values that no seed changes: ones, zeros, counting up, a constant; else ``None``."""
    import numpy as np

    result: NDArray[Any]
    if hint.kind in ("ones", "zeros") and dtype != "object":
        return np.full(shape, 1 if hint.kind == "ones" else 0, dtype=dtype)
    if hint.kind == "arange" and dtype != "object":
        counted = np.arange(shape[-1] if shape else 1).astype(dtype)
        result = np.empty(shape, dtype=dtype)
        result[...] = counted if shape else counted[0]
        return result
    if hint.kind == "constant" and hint.choices:
        result = np.resize(_choices(hint, dtype), shape)
        return result
    return None


def _drawn(hint: ValueHint, raw: NDArray[Any], dtype: str, magnitude: float) -> NDArray[Any]:
    """One value for each of the uniform unsigned 64-bit integers ``raw``."""
    import numpy as np

    values: NDArray[Any]
    if dtype == "object" or (hint.kind == "choice" and hint.choices):
        known = _choices(hint, dtype)
        values = known[(raw % np.uint64(len(known))).astype("int64")]
        return values
    if dtype == "bool":
        bounds = (hint.low, hint.high) if hint.kind == "integers" else (0.0, 1.0)
        return _integers(*bounds, raw, "uint8").astype(bool)
    if np.dtype(dtype).kind in "iu":
        return _integers(hint.low, hint.high, raw, dtype)
    if hint.kind == "integers":
        values = _integers(hint.low, hint.high, raw, "int64").astype("float64")
    elif hint.kind == "uniform":
        values = hint.low + (hint.high - hint.low) * share_of(raw)
    else:
        values = bell(raw) * magnitude
    return _without_subnormals(values, dtype)


def _not_all_zero(values: NDArray[Any], hint: ValueHint, shape: tuple[int, ...]) -> None:
    """Keep small draws of integers and truths from coming out as nothing but zeros, in place."""
    if values.dtype == bool and shape and values.size and hint.high >= 1:
        # The first of every row holds, so that a mask never masks everything.
        values.reshape(shape)[..., 0] = True
    elif values.dtype.kind in "iu" and hint.high >= 1 and values.size > 1 and not values.any():
        values[-1] = 1


def _integers(low: float, high: float, raw: NDArray[Any], dtype: str) -> NDArray[Any]:
    """``low`` … ``high``, both included, as far as ``dtype`` can hold them."""
    import numpy as np

    info = np.iinfo(dtype)
    least = min(max(math.ceil(low), int(info.min)), int(info.max))
    most = min(max(math.floor(high), least), int(info.max))
    span = most - least + 1
    offsets = raw if span >= 2**64 else raw % np.uint64(span)
    # Two's complement wraps round, so adding in unsigned arithmetic is right for signed types too.
    values: NDArray[Any] = (offsets + np.uint64(least % 2**64)).astype(dtype)
    return values


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _choices(hint: ValueHint, dtype: str) -> NDArray[Any]:
    import numpy as np

    if dtype == "object":
        return np.array(hint.choices or _WORDS, dtype=object)
    return np.array([_number(text, dtype) for text in hint.choices], dtype=dtype)


def _number(text: str, dtype: str) -> float | int | bool:
    if dtype == "bool":
        return text.strip().lower() in ("1", "true")
    if "float" in dtype or "complex" in dtype:
        return float(text)
    # Through int first: a float can't hold every 64-bit integer.
    return int(text) if text.strip().lstrip("+-").isdigit() else int(float(text))


def _without_subnormals(values: NDArray[Any], dtype: str) -> NDArray[Any]:
    """Convert to ``dtype``; what would be subnormal there becomes its smallest normal number."""
    import numpy as np

    smallest = float(np.finfo(dtype).tiny)
    small = np.abs(values) < smallest
    if small.any():
        values = np.where(small & (values != 0), np.copysign(smallest, values), values)
    result: NDArray[Any] = values.astype(dtype)
    return result
