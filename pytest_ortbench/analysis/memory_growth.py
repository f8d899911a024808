"""Whether memory grows for ever, told from readings over a long run.

Memory that wanders and then stays, or grows in a few steps while an arena finds its size, is no
leak. So the first part of a run does not count, what is left is cut into parts whose medians
stand for them, and growth must go on in their second half.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from pytest_ortbench.analysis.collector import Collector
from pytest_ortbench.analysis.order import DEVIATE
from pytest_ortbench.core.units import format_amount

#: Share of the readings at the beginning that do not count.
WARM_UP = 0.25
#: Parts that the rest is cut into; their medians are the points of the fit.
PARTS = 16
#: Readings at least, so that a part has three.
LEAST_READINGS = 64
#: Growth over the counted time that is worth a verdict: an arena's or an allocator's last steps.
LEAST_GROWTH_BYTES = 1 << 20
LEAST_GROWTH_SHARE = 0.01


@dataclass(frozen=True, slots=True, kw_only=True)
class Growth:
    """How resident memory grew over a long run, after its warm-up.

    Attributes:
        per_thousand: Bytes per thousand of what was counted, inferences or requests (Theil–Sen
            slope over the parts' medians).
        low: Lower end of its 95 % interval (from Kendall's S; Sen 1968).
        high: Upper end.
        total_bytes: What the slope makes over what counts.
        leaks: Whether memory grows for ever: the interval is above zero over all parts and over
            the later half alone, and the growth is worth it; ``None`` where it is above zero but
            too small for a verdict.
        verdict: The same in words.
    """

    per_thousand: float
    low: float
    high: float
    total_bytes: float
    leaks: bool | None
    verdict: str


def growth_of(
    at: Sequence[int], sizes: Sequence[int], *, seconds: float, longer: str, seen: int = 0
) -> Growth | str:
    """Return how memory grew, or why nothing can be said.

    Args:
        at: How much was done at each reading.
        sizes: The size at each.
        seconds: How long it went on.
        longer: What to use for more readings, for people.
        seen: Readings at the beginning that show no growth yet, however many warm up.
    """
    if len(at) < LEAST_READINGS:
        return (
            f"{len(at)} readings in {seconds:.0f} s, but {LEAST_READINGS} are needed: use {longer}"
        )
    first = max(math.ceil(WARM_UP * len(at)), seen)
    left = len(at) - first
    if left < 2 * PARTS:
        return (
            f"{left} readings after the first inference of every shape, but {2 * PARTS} are "
            f"needed: use {longer}"
        )
    points = _parts(at[first:], sizes[first:])
    slope, low, high = theil_sen(points)
    _, later_low, _ = theil_sen(points[len(points) // 2 :])
    if math.isinf(low) or math.isinf(later_low):
        return f"too little ran between the readings in {seconds:.0f} s: use {longer}"
    total = slope * (at[-1] - at[first])
    worth = max(LEAST_GROWTH_BYTES, LEAST_GROWTH_SHARE * sizes[first])
    leaks: bool | None
    if low <= 0:
        leaks, verdict = False, "no growth was found"
    elif later_low <= 0:
        leaks, verdict = False, "it grew and then stopped growing: no leak"
    elif total < worth:
        leaks, verdict = None, f"growth is too small for a verdict: use {longer}"
    else:
        leaks, verdict = True, "it keeps growing: a leak"
    return Growth(
        per_thousand=1000 * slope,
        low=1000 * low,
        high=1000 * high,
        total_bytes=total,
        leaks=leaks,
        verdict=verdict,
    )


def add_growth(
    collector: Collector, grown: Growth | str, count: int, *, growth: str, leaks: str
) -> None:
    """Add growth and the verdict on it to the numbers of a case, or why there are none.

    Args:
        collector: Takes them.
        grown: From :func:`growth_of`.
        count: How much was done.
        growth: Name of the metric of the growth.
        leaks: Name of that of the verdict.
    """
    if isinstance(grown, str):
        collector.reject((growth, leaks), grown)
        return
    collector.add(growth, grown.per_thousand, low=grown.low, high=grown.high, samples=count)
    collector.notes[leaks] = grown.verdict
    verdict = None if grown.leaks is None else float(grown.leaks)
    collector.add(leaks, verdict, reason=grown.verdict, samples=count)


def growth_text(per_thousand: float, low: float, high: float, counted: str) -> str:
    """Return growth and its interval for people.

    Args:
        per_thousand: Bytes per thousand of what is counted.
        low: Lower end of the interval.
        high: Upper end.
        counted: What is counted: ``inferences``.
    """
    return f"{_bytes(per_thousand)} per thousand {counted} [{_bytes(low)}, {_bytes(high)}]"


def _bytes(value: float) -> str:
    sign = "-" if value < 0 else "+"
    return f"{sign}{format_amount(abs(value), 'bytes')}"


def _parts(at: Sequence[int], sizes: Sequence[int]) -> list[tuple[float, float]]:
    """Median inference and median size of each part."""
    cuts = [round(index * len(at) / PARTS) for index in range(PARTS + 1)]
    return [
        (median(at[start:end]), median(sizes[start:end])) for start, end in itertools.pairwise(cuts)
    ]


def theil_sen(points: Sequence[tuple[float, float]]) -> tuple[float, float, float]:
    """Return the median of all pairwise slopes and its 95 % interval by ranks among them.

    With ``C`` the deviate times the standard deviation of Kendall's S, and N slopes, the ends are
    the ``(N - C) / 2``-th from below and from above (P. K. Sen, Journal of the American Statistical
    Association 63 (1968) 1379), rounded outwards; infinite where there is no such slope.
    """
    slopes = sorted(
        (y2 - y1) / (x2 - x1)
        for index, (x1, y1) in enumerate(points)
        for x2, y2 in points[index + 1 :]
        if x2 > x1
    )
    count, n = len(slopes), len(points)
    if not count:
        return 0.0, -math.inf, math.inf
    half = DEVIATE * math.sqrt(n * (n - 1) * (2 * n + 5) / 18) / 2
    rank = math.floor(count / 2 - half)
    if rank < 1:
        return median(slopes), -math.inf, math.inf
    return median(slopes), slopes[rank - 1], slopes[-rank]
