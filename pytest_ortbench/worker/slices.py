"""Slices of an output that are much smaller than its others: channels that one scale can't hold.

A ratio over a whole output sees its largest values alone. Where boxes in pixels and scores up to 1
share one tensor, noise as large as the scores is nothing beside the boxes. The reference itself
says where that is so: along one axis, its slices fall into large and small ones with a wide gap
between.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pytest_ortbench.core.accuracy import SliceAccuracy
from pytest_ortbench.worker.agreement import ratio_db

if TYPE_CHECKING:
    from numpy.typing import NDArray

#: Small slices are those behind a gap of this factor between the largest magnitudes of two of them.
#: What one unit has is spread evenly: rows of a picture, or classes that nobody sees in it.
_GAP = 10.0
#: They are that many times smaller than the largest at least: at 8 bits they keep eight steps.
_LEAST_FACTOR = 30.0
#: At most that many times, for beyond they are as good as zero: scores where nothing was detected.
_MOST_FACTOR = 5000.0
#: The largest magnitude from which on values are in a unit of their own, and no shares of 1.
_LEAST_LARGEST = 8.0
#: A smaller share of the slices than this does not stand for the output.
_LEAST_SHARE = 1 / 8
#: Fewer values than these prove nothing.
_LEAST_VALUES = 16
#: Slices of an axis; longer ones are positions or samples, not channels.
_MOST_SLICES = 4096
#: Values of an output that is looked at slice by slice: 64 MiB in double precision.
_MOST_VALUES = 8 * 1024**2
#: Distinct values that are counted, and the values among which they are looked for.
MOST_DISTINCT = 32
_MOST_LOOKED_AT = 65_536


@dataclass(slots=True)
class _AxisSums:
    """Sums over all samples so far, one entry a slice of the axis."""

    peaks: NDArray[Any]
    lows: NDArray[Any]
    highs: NDArray[Any]
    signal: NDArray[Any]
    noise: NDArray[Any]
    values: int
    distinct: set[float]
    reference_distinct: set[float]


class SliceSums:
    """Sums over slices of one output, over all of its samples."""

    def __init__(self) -> None:
        self._axes: dict[int, _AxisSums] = {}

    def add(self, expected: NDArray[Any], values: NDArray[Any] | None) -> None:
        """Add one sample; one that has no large and small slices adds nothing.

        Args:
            expected: The reference.
            values: What came out; ``None`` where it is absent.
        """
        import numpy as np

        if (
            values is None
            or expected.dtype.kind != "f"
            or values.dtype.kind != "f"
            or expected.shape != values.shape
            or expected.ndim < 2
            or not 0 < expected.size <= _MOST_VALUES
        ):
            return
        right = expected.astype("float64")
        sizes = np.abs(right)
        largest = float(sizes.max())
        if not _LEAST_LARGEST <= largest < math.inf or not np.isfinite(values).all():
            return
        got = values.astype("float64")
        for axis in range(1, right.ndim):
            if 2 <= right.shape[axis] <= _MOST_SLICES:
                self._add_axis(axis, right, got, sizes)

    def _add_axis(
        self, axis: int, right: NDArray[Any], got: NDArray[Any], sizes: NDArray[Any]
    ) -> None:
        import numpy as np

        others = tuple(other for other in range(right.ndim) if other != axis)
        peaks = sizes.max(axis=others)
        small = peaks <= peaks.max() / _GAP
        if not small.any():
            return
        sums = self._axes.get(axis)
        if sums is not None and len(sums.peaks) != len(peaks):
            return
        error = right - got
        with np.errstate(over="ignore", under="ignore"):
            signal = (right * right).sum(axis=others)
            noise = (error * error).sum(axis=others)
        lows, highs = right.min(axis=others), right.max(axis=others)
        if sums is None:
            sums = self._axes[axis] = _AxisSums(peaks, lows, highs, signal, noise, 0, set(), set())
        else:
            sums.peaks = np.maximum(sums.peaks, peaks)
            sums.lows = np.minimum(sums.lows, lows)
            sums.highs = np.maximum(sums.highs, highs)
            sums.signal = sums.signal + signal
            sums.noise = sums.noise + noise
        sums.values += right.size // len(peaks)
        where = np.flatnonzero(small)
        _collect(sums.distinct, got.take(where, axis=axis))
        _collect(sums.reference_distinct, right.take(where, axis=axis))

    def worst(self) -> SliceAccuracy | None:
        """Return the small slices that are farthest off; ``None`` without any that differ."""
        judged = [_small_slices(axis, sums) for axis, sums in self._axes.items()]
        return min(
            (slices for slices in judged if slices is not None),
            key=lambda slices: slices.sqnr_db,
            default=None,
        )


def _collect(distinct: set[float], values: NDArray[Any]) -> None:
    """Add values to a set until it holds more than are counted."""
    import numpy as np

    if len(distinct) <= MOST_DISTINCT:
        flat = values.reshape(-1)
        step = -(-flat.size // _MOST_LOOKED_AT)
        distinct.update(np.unique(flat[::step])[: MOST_DISTINCT + 1].tolist())


def _small_slices(axis: int, sums: _AxisSums) -> SliceAccuracy | None:
    """Return what is known of the slices behind the gap; ``None`` where there is no such gap."""
    varying = [index for index in range(len(sums.peaks)) if sums.highs[index] > sums.lows[index]]
    ordered = sorted(varying, key=lambda index: -float(sums.peaks[index]))
    peaks = [float(sums.peaks[index]) for index in ordered]
    first = _first_small(peaks)
    if first is None:
        return None
    members = sorted(ordered[first:])
    signal = _sum(sums.signal, members)
    noise = _sum(sums.noise, members)
    if (
        len(members) < _LEAST_SHARE * len(varying)
        or len(members) * sums.values < _LEAST_VALUES
        or not noise > 0
        or not signal < math.inf
    ):
        return None
    ratio = signal / noise
    return SliceAccuracy(
        axis=axis,
        first=members[0],
        last=members[-1],
        count=len(members),
        size=len(sums.peaks),
        sqnr_db=ratio_db(ratio),
        largest=peaks[first],
        others_largest=peaks[0],
        distinct=_counted(sums.distinct),
        reference_distinct=_counted(sums.reference_distinct),
    )


def _first_small(peaks: Sequence[float]) -> int | None:
    """Return where the small slices begin, of largest magnitudes in descending order."""
    for number in range(1, len(peaks)):
        factor = peaks[0] / peaks[number] if peaks[number] else math.inf
        if factor > _MOST_FACTOR:
            return None
        if factor >= _LEAST_FACTOR and peaks[number - 1] >= _GAP * peaks[number]:
            return number
    return None


def _sum(values: NDArray[Any], members: Iterable[int]) -> float:
    return math.fsum(float(values[index]) for index in members)


def _counted(distinct: set[float]) -> int | None:
    return None if len(distinct) > MOST_DISTINCT else len(distinct)
