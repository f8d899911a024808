"""How near an output is to what is right, and whether that is known at all."""

from __future__ import annotations

import math

from pytest_ortbench.core.accuracy import OutputAccuracy

#: As near as this to its source an fp32 export is in order, whatever its own spread: four units in
#: the last place of float32 in every value.
NEAR_DB = 120.0
#: Kinds whose values are equal or not, and have no ratio.
_WHOLE = ("integer", "string")


def is_compared(output: OutputAccuracy) -> bool:
    """Return whether any value of an output was held against what is right.

    Values that are NaN or infinite on both sides say nothing, and neither does an empty output.
    """
    return bool(output.compared) or output.sqnr_db is not None or output.adds_nonfinite


def hides_nonfinite(output: OutputAccuracy) -> bool:
    """Return whether NaN or infinity is right where an output has a number."""
    return output.reference_nonfinite > output.nonfinite


def holds_whole(output: OutputAccuracy) -> bool:
    """Return whether an output holds labels, counts or texts, which are equal or not."""
    return output.kind in _WHOLE


def differs_whole(output: OutputAccuracy) -> bool:
    """Return whether an output of whole values has a wrong one anywhere."""
    return holds_whole(output) and not output.exact and output.agree != output.rows


def nearness_db(output: OutputAccuracy) -> float:
    """Return how near an output is to what is right: infinite where it is equal.

    It is the lowest where a whole value differs, which has no ratio, and where nothing could be
    compared: NaN is near to nothing.
    """
    if not is_compared(output) or output.adds_nonfinite or hides_nonfinite(output):
        return -math.inf
    if output.sqnr_db is not None:
        return output.sqnr_db
    if holds_whole(output):
        return -math.inf if differs_whole(output) else math.inf
    return math.inf if output.exact or not output.max_abs else -math.inf


def is_repeated(output: OutputAccuracy, near_db: float) -> bool:
    """Return whether an output is what it was the first time, NaN and emptiness among it."""
    if is_compared(output):
        return nearness_db(output) >= near_db
    return output.nonfinite == output.reference_nonfinite
