"""Whether memory grows for ever, told from a soak; nothing else allows that verdict.

Memory that wanders and then stays, or grows in a few steps while an arena finds its size, is no
leak. So the first part of a soak does not count, what is left is cut into parts whose medians
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
from pytest_ortbench.core.outcome import CaseResult
from pytest_ortbench.passes.soak.declaration import PASS
from pytest_ortbench.passes.soak.facts import Soak

#: Share of the readings at the beginning that do not count.
WARM_UP = 0.25
#: Parts that the rest is cut into; their medians are the points of the fit.
PARTS = 16
#: Readings at least, so that a part has three.
LEAST_READINGS = 64
#: How often each shape of a soak over several comes at least: once before anything counts, and
#: twice in what does.
ROUNDS = 3
#: Growth over the counted time that is worth a verdict: an arena's or an allocator's last steps.
LEAST_GROWTH_BYTES = 1 << 20
LEAST_GROWTH_SHARE = 0.01


@dataclass(frozen=True, slots=True, kw_only=True)
class Growth:
    """How resident memory grew in a soak, after its warm-up.

    Attributes:
        per_thousand: Bytes per thousand inferences (Theil–Sen slope over the parts' medians).
        low: Lower end of its 95 % interval (from Kendall's S; Sen 1968).
        high: Upper end.
        total_bytes: What the slope makes over the counted inferences.
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


def growth(soak: Soak) -> Growth | str:
    """Return the growth of a soak, or why nothing can be said."""
    if soak.reason:
        return soak.reason
    if len(soak.at) < LEAST_READINGS:
        return (
            f"{len(soak.at)} readings in {soak.seconds:.0f} s, but {LEAST_READINGS} are needed: "
            "use a longer --ort-soak"
        )
    if soak.shapes > 1 and soak.inferences < ROUNDS * soak.shapes:
        return (
            f"{soak.inferences} inferences over {soak.shapes} shapes, but each shape must come "
            f"{ROUNDS} times: use a longer --ort-soak"
        )
    # An arena grows until it has seen the largest shape.
    seen = sum(done < soak.shapes for done in soak.at) if soak.shapes > 1 else 0
    first = max(math.ceil(WARM_UP * len(soak.at)), seen)
    left = len(soak.at) - first
    if left < 2 * PARTS:
        return (
            f"{left} readings after every shape had come, but {2 * PARTS} are needed: use a "
            "longer --ort-soak"
        )
    points = _parts(soak.at[first:], soak.resident_bytes[first:])
    slope, low, high = theil_sen(points)
    _, later_low, _ = theil_sen(points[len(points) // 2 :])
    total = slope * (soak.at[-1] - soak.at[first])
    worth = max(LEAST_GROWTH_BYTES, LEAST_GROWTH_SHARE * soak.resident_bytes[first])
    leaks: bool | None
    if low <= 0:
        leaks, verdict = False, "no growth was found"
    elif later_low <= 0:
        leaks, verdict = False, "it grew and then stopped growing: no leak"
    elif total < worth:
        leaks, verdict = None, "growth is too small for a verdict: use a longer --ort-soak"
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


def add_growth(collector: Collector, result: CaseResult) -> None:
    """Add the growth in a soak, and the verdict on it."""
    if result.soak is None:
        collector.reject(PASS.metric_names, "no soak was requested (--ort-soak)")
        return
    grown = growth(result.soak)
    if isinstance(grown, str):
        collector.reject(PASS.metric_names, grown)
        return
    count = result.soak.inferences
    low, high = (None, None) if math.isinf(grown.low) else (grown.low, grown.high)
    collector.add("memory_growth", grown.per_thousand, low=low, high=high, samples=count)
    leaks = None if grown.leaks is None else float(grown.leaks)
    collector.add("leaks", leaks, reason=grown.verdict, samples=count)


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
