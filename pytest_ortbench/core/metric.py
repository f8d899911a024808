"""What a metric is: its name, its unit, and which of two values is better."""

from __future__ import annotations

from dataclasses import dataclass


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
    """

    name: str
    column: str
    unit: str
    better: str
    description: str
    counted: str = ""
    is_yes_or_no: bool = False
    rate: str = ""


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
) -> Metric:
    """Return a metric; the arguments are its fields in their order."""
    return Metric(
        name=name,
        column=column,
        unit=unit,
        better=better,
        description=description,
        counted=counted,
        is_yes_or_no=is_yes_or_no,
        rate=rate,
    )
