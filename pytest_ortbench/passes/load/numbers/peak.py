"""The search for the highest rate that is still VALID: a bracket first, then halving.

A stall of the machine makes a test INVALID at a rate that is fine otherwise, and everything above
it would never be looked at again. So a rate that the case should be able to do pulls the bracket
down only when it was INVALID twice running, and so does the rate that ends the search, whatever it
is. Beyond what the case can do at all one test is enough to go on with.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

#: The search ends when the lowest INVALID rate is this little above the highest VALID one.
RESOLUTION = 0.05
#: Steps outwards while one end of the bracket is not known.
_UP, _DOWN = 1.3, 0.6
#: Tests at most, whatever they say.
MOST_TESTS = 24


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadPeak:
    """Where a search ended.

    Attributes:
        valid_per_s: Highest rate that was VALID; ``None`` if none was.
        invalid_per_s: Lowest rate above it that was INVALID; ``None`` if none was.
        complete: Whether the two are within :data:`RESOLUTION`, the upper one tested twice.
    """

    valid_per_s: float | None
    invalid_per_s: float | None
    complete: bool


def search_peak(
    is_valid: Callable[[float], bool],
    start_per_s: float,
    *,
    capacity_per_s: float,
    affordable: Callable[[float], bool],
) -> LoadPeak:
    """Find the highest VALID rate, as if every rate below a VALID one were VALID too.

    A rate that turned out VALID is so whatever was INVALID below it or at it before.

    Args:
        is_valid: Tests one rate.
        start_per_s: What is tested first.
        capacity_per_s: What the case can do without waiting: an INVALID below it is doubted.
        affordable: Whether there is time for a test at that rate.
    """
    low: float | None = None
    high: float | None = None
    invalid: list[float] = []
    rate = start_per_s
    for _ in range(MOST_TESTS):
        if not affordable(rate):
            break
        if is_valid(rate):
            low = rate
            invalid = [other for other in invalid if other > rate]
        else:
            invalid.append(rate)
            if rate < capacity_per_s and invalid.count(rate) == 1:
                continue
        high = min(invalid, default=None)
        if low is None:
            rate = _DOWN * rate
        elif high is None:
            rate = _UP * low
        elif high > low * (1.0 + RESOLUTION):
            rate = math.sqrt(low * high)
        elif invalid.count(high) > 1:
            return LoadPeak(valid_per_s=low, invalid_per_s=high, complete=True)
        else:
            rate = high
    return LoadPeak(valid_per_s=low, invalid_per_s=high, complete=False)
