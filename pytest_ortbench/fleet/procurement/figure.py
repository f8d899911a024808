"""A derived number with its bounds."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

from pytest_ortbench.core.quantity import Quantity
from pytest_ortbench.fleet.numbers.facts import CaseFacts
from pytest_ortbench.fleet.numbers.ratios import interval


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """A derived number with its bounds.

    Attributes:
        value: The estimate.
        low: Lower bound.
        high: Upper bound; infinite where the worst case can't be served at all, and where a
            machine may draw nothing.
        is_open: Whether only the bounds are known: how much the machine serves at a time was not
            measured. The value is then that of the measured case, and no estimate.
    """

    value: float
    low: float
    high: float
    is_open: bool = False

    @property
    def exact(self) -> Figure:
        """The value alone, without its bounds."""
        return Figure(value=self.value, low=self.value, high=self.value)

    def of(self, function: Callable[[float], float]) -> Figure:
        """Apply a monotone function to value and bounds."""
        ends = sorted((function(self.low), function(self.high)))
        return replace(self, value=function(self.value), low=ends[0], high=ends[1])

    def grown(self, factor: float) -> Figure:
        """Multiply value and bounds."""
        return self.of(lambda end: end * factor)

    def opened_to(self, other: Figure) -> Figure:
        """Return the bounds of this figure and another one, with this one's value.

        Where both are the same, nothing is open.
        """
        if self == other:
            return self
        return Figure(
            value=self.value,
            low=min(self.low, other.low),
            high=max(self.high, other.high),
            is_open=True,
        )


def measured_figure(quantity: Quantity, case: CaseFacts) -> Figure:
    """Return a measured number with its interval."""
    low, high = interval(quantity, blurred=bool(case.blurred_by))
    return Figure(value=quantity.value, low=low, high=high)


def divided(figure: Figure, other: Figure) -> Figure | None:
    """Divide; ``None`` by nothing, and without an upper bound where it may be by nothing."""
    if other.value <= 0:
        return None
    return Figure(
        value=figure.value / other.value,
        low=figure.low / other.high,
        high=figure.high / other.low if other.low > 0 else math.inf,
    )
