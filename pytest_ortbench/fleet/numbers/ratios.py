"""Ratios of two numbers with their intervals, and when two numbers can be told apart."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from pytest_ortbench.analysis.candidates import BLUR
from pytest_ortbench.analysis.sentences import factor_text
from pytest_ortbench.core.quantity import Quantity


@dataclass(frozen=True, slots=True, kw_only=True)
class Ratio:
    """Contender ÷ baseline, always this way round.

    Attributes:
        value: The ratio.
        low: Lower end of its interval; ``None`` where one side has none.
        high: Upper end, likewise.
    """

    value: float
    low: float | None = None
    high: float | None = None

    @property
    def text(self) -> str:
        """The ratio with its interval: ``×0.561 [×0.538, ×0.585]``."""
        return factor_text(self.value, self.low, self.high)


def ratio(contender: Quantity, baseline: Quantity) -> Ratio | None:
    """Divide two numbers; the interval reaches from the farthest ends to the farthest ends.

    Returns:
        ``None`` where nothing is a multiple of the baseline: it is not above 0.
    """
    if baseline.value <= 0:
        return None
    value = contender.value / baseline.value
    if (
        contender.low is None
        or contender.high is None
        or baseline.low is None
        or baseline.high is None
        or baseline.low <= 0
    ):
        return Ratio(value=value)
    return Ratio(value=value, low=contender.low / baseline.high, high=contender.high / baseline.low)


def geometric_mean(ratios: Sequence[Ratio]) -> Ratio | None:
    """Average ratios so that ×2 and ×½ cancel.

    P. J. Fleming and J. J. Wallace, CACM 29 (1986) 218: the only mean whose ranking does not
    depend on the baseline.

    Errors of cases of one run move together: a busy hour slows all of them. So the interval does
    not shrink with their number; its ends are the geometric means of the ends.

    Returns:
        ``None`` without ratios, or where one of them is not above 0.
    """
    if not ratios or any(factor.value <= 0 for factor in ratios):
        return None
    lows = [factor.low for factor in ratios if factor.low is not None]
    highs = [factor.high for factor in ratios if factor.high is not None]
    whole = len(lows) == len(highs) == len(ratios) and min(lows) > 0
    return Ratio(
        value=_mean([factor.value for factor in ratios]),
        low=_mean(lows) if whole else None,
        high=_mean(highs) if whole else None,
    )


def _mean(values: Sequence[float]) -> float:
    return math.exp(math.fsum(map(math.log, values)) / len(values))


def interval(quantity: Quantity, *, blurred: bool) -> tuple[float, float]:
    """Return the interval of a number, widened where a flag blurs it."""
    low = quantity.value if quantity.low is None else quantity.low
    high = quantity.value if quantity.high is None else quantity.high
    wider = BLUR if blurred else 0.0
    return low * (1 - wider), high * (1 + wider)


def apart(first: tuple[float, float], other: tuple[float, float], *, margin: float = 0.0) -> bool:
    """Whether two intervals don't meet, and their centres differ by more than a margin.

    Args:
        first: Low and high.
        other: Likewise.
        margin: Least difference that counts, as a share of the smaller.
    """
    if first[0] <= other[1] and other[0] <= first[1]:
        return False
    small, large = sorted((sum(first) / 2, sum(other) / 2))
    return large > small * (1 + margin)
