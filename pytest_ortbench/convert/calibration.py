"""Calibration data: stored input sets, or some that are drawn like those of the measured case."""

from __future__ import annotations

import math

from pytest_ortbench.convert.failure import called, unconverted
from pytest_ortbench.core.recipe import Conversion
from pytest_ortbench.worker.inputs import make_feeds, varies

#: Number of the first drawn set. Those that accuracy is checked on have small ones: a range must
#: not be judged on the very values that it was taken from.
_FIRST_DRAWN = 1000


#: Input values that all sets together should hold: the largest of few is no bound for the next.
#: *Seen* on 48 values a set: the worst of eight other sets has 13 dB after calibrating on four
#: sets, 24 after 16, 33 after 32, and no more after 256.
_VALUES = 1_500
_FEWEST, _MOST = 16, 64


def _drawn_sets(conversion: Conversion) -> int:
    if conversion.recipe.calibration_samples:
        return conversion.recipe.calibration_samples
    values = sum(math.prod(spec.shape) for spec in conversion.inputs)
    return min(_MOST, max(_FEWEST, math.ceil(_VALUES / max(values, 1))))


def _sets(count: int) -> str:
    return "set" if count == 1 else "sets"


class InputSets:
    """Input sets one after the other, in the form that ONNX Runtime's calibrators read.

    Attributes:
        description: What it is, for people: ``16 random input sets (seed 0)``.

    Args:
        conversion: Says what is stored, or what to draw.

    Raises:
        WorkerError: if there is none.
    """

    def __init__(self, conversion: Conversion) -> None:
        self._conversion = conversion
        recipe = conversion.recipe
        if recipe.calibration_data or conversion.calibration:
            self._count = len(conversion.calibration)
            self.description = f"{self._count} stored input {_sets(self._count)}"
        else:
            # Where nothing is drawn, each set would be the same.
            self._count = _drawn_sets(conversion) if varies(conversion.inputs) else 1
            self.description = (
                f"{self._count} random input {_sets(self._count)} (seed {conversion.seed})"
            )
        if not self._count:
            raise unconverted(
                f"{called(recipe)} can't be made: its folder calibration_data = "
                f"{recipe.calibration_data!r} contains no arrays",
                "Put .npz files there, each with an array for every input of the model. To "
                "calibrate with random inputs instead, remove calibration_data from the precision",
            )
        self._next, self._end = 0, self._count

    def __len__(self) -> int:
        return self._count

    def set_range(self, start_index: int, end_index: int) -> None:
        """Give the sets from ``start_index`` up to and without ``end_index`` next."""
        self._next, self._end = start_index, min(end_index, self._count)

    def get_next(self) -> dict[str, object] | None:
        """Return the next input set, ``None`` behind the last."""
        if self._next >= self._end:
            return None
        number, self._next = self._next, self._next + 1
        conversion = self._conversion
        if conversion.calibration:
            return make_feeds(conversion.calibration[number], seed=conversion.seed)
        return make_feeds(conversion.inputs, seed=conversion.seed, sample=_FIRST_DRAWN + number)
