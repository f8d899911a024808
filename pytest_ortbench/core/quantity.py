"""A number that knows its unit, its interval and how many samples stand behind it."""

from __future__ import annotations

from dataclasses import dataclass

from pytest_ortbench.core.interval import is_unstable, with_interval_text
from pytest_ortbench.core.units import digits_apart, format_amount


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Quantity:
    """An estimate with its 95 % interval, in SI units; compares and computes as a number does.

    What is computed from one is a plain number without an interval.

    Attributes:
        value: The estimate.
        unit: The SI unit, a key of :data:`pytest_ortbench.core.units.FACTORS`.
        low: Lower bound of the interval, ``None`` where none can be given.
        high: Upper bound, likewise.
        samples: How many samples stand behind it.
    """

    value: float
    unit: str
    low: float | None = None
    high: float | None = None
    samples: int = 1

    def __float__(self) -> float:
        return self.value

    def __lt__(self, other: Quantity | float) -> bool:
        return self.value < float(other)

    def __le__(self, other: Quantity | float) -> bool:
        return self.value <= float(other)

    def __gt__(self, other: Quantity | float) -> bool:
        return self.value > float(other)

    def __ge__(self, other: Quantity | float) -> bool:
        return self.value >= float(other)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Quantity):
            return (self.value, self.unit, self.low, self.high, self.samples) == (
                other.value,
                other.unit,
                other.low,
                other.high,
                other.samples,
            )
        return isinstance(other, int | float) and self.value == other

    def __add__(self, other: Quantity | float) -> float:
        return self.value + float(other)

    def __radd__(self, other: float) -> float:
        return other + self.value

    def __sub__(self, other: Quantity | float) -> float:
        return self.value - float(other)

    def __rsub__(self, other: float) -> float:
        return other - self.value

    def __mul__(self, other: Quantity | float) -> float:
        return self.value * float(other)

    def __rmul__(self, other: float) -> float:
        return other * self.value

    def __truediv__(self, other: Quantity | float) -> float:
        return self.value / float(other)

    def __rtruediv__(self, other: float) -> float:
        return other / self.value

    def __hash__(self) -> int:
        return hash((self.value, self.unit))

    def __str__(self) -> str:
        return self.text()

    def beside(self, bound: float) -> tuple[str, str]:
        """Return it and what it is compared with, with as many digits as tell the two apart."""

        def write(number: float, digits: int) -> str:
            return format_amount(number, self.unit, digits)

        digits = digits_apart(self.value, bound, write, 3)
        return self.text(digits), write(bound, digits)

    def text(self, digits: int = 3) -> str:
        """Return it with its interval, to so many significant digits."""

        def write(value: float) -> str:
            return format_amount(value, self.unit, digits)

        return with_interval_text(self.value, self.low, self.high, write, write(self.value))

    @property
    def is_unstable(self) -> bool:
        """Whether its interval is wider than its value."""
        return is_unstable(self.value, self.low, self.high)
