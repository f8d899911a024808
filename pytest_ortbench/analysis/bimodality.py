"""Whether durations fall into two groups, so that one median hides the other group."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from statistics import median

#: Below this many samples two groups can't be told from chance.
MIN_SAMPLES = 40

#: Each group must hold this share of the samples; fewer is a tail.
MIN_SHARE = 0.15

#: The groups' medians must differ by this share, else nobody need care.
MIN_DISTANCE = 0.05

#: Distance of the groups' means over their deviation (Ashman, Bird and Zepf, Astronomical Journal
#: 108 (1994) 2348). A normal distribution cut at its best place gives 2.7, a uniform one 3.5, an
#: exponential one about 3; two normal groups four deviations apart give 4.2.
MIN_SEPARATION = 4.0


@dataclass(frozen=True, slots=True, kw_only=True)
class TwoGroups:
    """Medians in seconds of the lower and the upper group, and the upper one's share of all."""

    lower_s: float
    upper_s: float
    upper_share: float


def two_groups(durations_ns: Sequence[int]) -> TwoGroups | None:
    """Cut durations into two groups if they are that clearly.

    Logarithms are cut where the variance inside the groups is least (N. Otsu, IEEE Transactions
    on Systems, Man and Cybernetics 9 (1979) 62–66); the slowest twentieth has no say in where,
    since a few outliers would take the cut for themselves. It belongs to the upper group.
    """
    everything = sorted(durations_ns)
    ordered = everything[: math.ceil(len(durations_ns) * 0.95)]
    count = len(ordered)
    if count < MIN_SAMPLES or ordered[0] <= 0:
        return None
    # Around their middle, so that squares of tiny differences keep their digits.
    centre = math.log(ordered[count // 2])
    values = [math.log(duration) - centre for duration in ordered]
    sums = list(accumulate(values))
    squares = list(accumulate(value * value for value in values))
    first, last = math.ceil(count * MIN_SHARE), math.floor(count * (1 - MIN_SHARE))
    cut = max(
        range(first, last + 1),
        key=lambda size: (
            sums[size - 1] ** 2 / size + (sums[-1] - sums[size - 1]) ** 2 / (count - size)
        ),
    )
    lower, upper = ordered[:cut], ordered[cut:]
    if median(upper) < median(lower) * (1 + MIN_DISTANCE):
        return None
    lower_mean = sums[cut - 1] / cut
    upper_mean = (sums[-1] - sums[cut - 1]) / (count - cut)
    lower_variance = max(0.0, squares[cut - 1] / cut - lower_mean**2)
    upper_variance = max(0.0, (squares[-1] - squares[cut - 1]) / (count - cut) - upper_mean**2)
    deviation = math.sqrt((lower_variance + upper_variance) / 2)
    if upper_mean - lower_mean < MIN_SEPARATION * deviation:
        return None
    return TwoGroups(
        lower_s=median(lower) * 1e-9,
        upper_s=median(everything[cut:]) * 1e-9,
        upper_share=1 - cut / len(everything),
    )
