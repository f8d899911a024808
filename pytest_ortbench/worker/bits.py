"""Uniform unsigned 64-bit integers as numbers, the same on every machine."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from numpy.typing import NDArray

#: Standard deviation of the sum of four uniform 16-bit integers: sqrt(4 · (65536² − 1) / 12).
_FOUR_UNIFORM_DEVIATION = math.sqrt((65536**2 - 1) / 3)


def bell(raw: NDArray[Any]) -> NDArray[Any]:
    """Return numbers of mean 0, deviation 1, within ±3.5, never zero: sums of four uniform ones."""
    quarters = raw.view("uint16").reshape(raw.size, 4)
    total = quarters.sum(axis=1, dtype="int64")
    # The mean of the sum is 131070; half a step more, so that no value is zero.
    result: NDArray[Any] = (total.astype("float64") - 131069.5) / _FOUR_UNIFORM_DEVIATION
    return result


def share_of(raw: NDArray[Any]) -> NDArray[Any]:
    """Return uniform numbers from 0 to below 1."""
    import numpy as np

    result: NDArray[Any] = (raw >> np.uint64(11)).astype("float64") * 2.0**-53
    return result
