"""Drawn values that stand in a certain order or beside each other: ascending, no index twice."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from pytest_ortbench.core.model import ValueHint
from pytest_ortbench.worker.bits import bell, share_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

#: Gives so many uniform unsigned 64-bit integers.
RandomBits = Callable[[int], "NDArray[Any]"]
#: A permutation of more numbers than this is counted in steps, not sorted.
_MOST_SORTED = 1 << 22
#: Size of the diagonal of a positive definite matrix, more than the others of its row together.
_DIAGONAL = 4.0


def _permutation(shape: tuple[int, ...], hint: ValueHint, bits: RandomBits) -> NDArray[Any]:
    """Integers along one axis, none twice while there are enough of them."""
    import numpy as np

    axis = int(hint.choices[0]) if hint.choices and shape else 0
    length = shape[axis] if shape else 1
    size = max(int(hint.high) - int(hint.low) + 1, 1)
    order = _distinct(length, size, bits)
    lines = math.prod(shape) // length if length else 0
    # Each line is the first one, moved on by one more.
    table = (order[:, None] + np.arange(lines)[None, :]) % size + int(hint.low)
    rest = shape[:axis] + shape[axis + 1 :]
    result: NDArray[Any] = np.moveaxis(table.reshape(length, *rest), 0, axis) if shape else table
    return np.ascontiguousarray(result).reshape(shape)


def _coordinates(shape: tuple[int, ...], hint: ValueHint, bits: RandomBits) -> NDArray[Any]:
    """Points in a box, one behind the other, none twice while there are enough of them."""
    import numpy as np

    box = [max(int(float(size)), 1) for size in hint.choices] or [1]
    count = math.prod(shape) // len(box)
    places = _distinct(count, math.prod(box), bits)
    columns = np.unravel_index(places, box)
    result: NDArray[Any] = np.resize(np.stack(columns, axis=-1).reshape(-1), shape)
    return result


def _ascending(shape: tuple[int, ...], hint: ValueHint, bits: RandomBits) -> NDArray[Any]:
    """Numbers in order along the last axis."""
    import numpy as np

    values = hint.low + (hint.high - hint.low) * share_of(bits(math.prod(shape)))
    result: NDArray[Any] = values.reshape(shape)
    return np.sort(result, axis=-1) if shape else result


def _positive_definite(shape: tuple[int, ...], _hint: ValueHint, bits: RandomBits) -> NDArray[Any]:
    """Symmetric matrices whose diagonal is larger than the rest of each row."""
    import numpy as np

    values: NDArray[Any] = bell(bits(math.prod(shape))).reshape(shape)
    if len(shape) < 2 or shape[-1] != shape[-2] or not values.size:
        return values
    symmetric = (values + np.swapaxes(values, -1, -2)) / (2 * shape[-1])
    result: NDArray[Any] = symmetric + _DIAGONAL * np.eye(shape[-1])
    return result


def _distinct(count: int, size: int, bits: RandomBits) -> NDArray[Any]:
    """``count`` integers below ``size``, which come again only when all were there."""
    import numpy as np

    number = np.arange(count) % size
    if size <= _MOST_SORTED:
        order: NDArray[Any] = np.argsort(bits(size), kind="stable")
        return order[number]
    # Steps that share no divisor with the size reach every number once.
    step, start = (int(value) % size for value in bits(2))
    while math.gcd(step, size) != 1:
        step += 1
    steps: NDArray[Any] = np.array([(start + step * int(n)) % size for n in number], dtype="int64")
    return steps


#: By kind of hint, what makes its values: a shape, the hint and random bits to numbers.
ARRANGED: dict[str, Callable[[tuple[int, ...], ValueHint, RandomBits], NDArray[Any]]] = {
    "permutation": _permutation,
    "coordinates": _coordinates,
    "ascending": _ascending,
    "positive-definite": _positive_definite,
}
