"""What a metric is: its name, its unit, and which of two values is better."""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Reach:
    """The values that a metric can have.

    Attributes:
        low: The smallest, or what all are above.
        high: The largest.
        has_low: Whether ``low`` itself is one of them.
    """

    low: float = -math.inf
    high: float = math.inf
    has_low: bool = True

    def ends(self) -> tuple[float, float]:
        """Return the smallest and the largest value."""
        return self.low if self.has_low else math.nextafter(self.low, math.inf), self.high


#: Any number; from 0 on; a share; 1 or 0.
ANY = Reach()
FROM_ZERO = Reach(low=0.0)
SHARE = Reach(low=0.0, high=1.0)

#: What metrics of a unit can have where their declaration says nothing else: all takes time.
_REACH = {
    "s": Reach(low=0.0, has_low=False),
    "bytes": FROM_ZERO,
    "1/s": FROM_ZERO,
    "W": FROM_ZERO,
    "J": FROM_ZERO,
    "ratio": SHARE,
    "dB": ANY,
    "1": ANY,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Metric:
    """One number that a case can have.

    Attributes:
        name: As written in limits: ``latency_p90``.
        column: As in exported rows: ``latency_p90_s``.
        unit: SI unit, a key of :data:`pytest_ortbench.core.units.FACTORS`.
        better: ``lower`` or ``higher``.
        description: One sentence: what it is and what it includes.
        is_yes_or_no: Whether it is 1 or 0, which rows show as whole numbers.
        rate: Metric that tells how fast samples of a percentile come; empty for latency's own.
        counted: What a rate counts, ``items`` or ``requests``; empty for other units.
        reach: The values that it can have.
        is_of_files: Whether it tells of a model's file, so that the row of the framework that the
            file was exported from has none.
        is_of_services: Whether it tells of a service, so that only rows of endpoints have it.
    """

    name: str
    column: str
    unit: str
    better: str
    description: str
    counted: str = ""
    is_yes_or_no: bool = False
    rate: str = ""
    reach: Reach = ANY
    is_of_files: bool = False
    is_of_services: bool = False

    def possible(self, near: float) -> tuple[float, ...]:
        """Return values that tell whether some or all that it can have keep a bound."""
        ends = self.reach.ends()
        inside = ends[0] <= near <= ends[1] and not self.is_yes_or_no
        return (*ends, near) if inside else ends


def metric(
    name: str,
    column: str,
    unit: str,
    better: str,
    description: str,
    *,
    counted: str = "",
    is_yes_or_no: bool = False,
    rate: str = "",
    reach: Reach | None = None,
    is_of_files: bool = False,
    is_of_services: bool = False,
) -> Metric:
    """Return a metric; the arguments are its fields in their order.

    Without ``reach`` it can have what metrics of its unit can.
    """
    if reach is None:
        reach = SHARE if is_yes_or_no else _REACH[unit]
    return Metric(
        name=name,
        column=column,
        unit=unit,
        better=better,
        description=description,
        counted=counted,
        is_yes_or_no=is_yes_or_no,
        rate=rate,
        reach=reach,
        is_of_files=is_of_files,
        is_of_services=is_of_services,
    )
