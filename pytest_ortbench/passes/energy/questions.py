"""What the host asks in the energy pass."""

from __future__ import annotations

from dataclasses import dataclass

from pytest_ortbench.passes.energy.facts import Energy, MeterTicks
from pytest_ortbench.schema.question import CaseQuestion


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasureEnergy(CaseQuestion[Energy]):
    """Put the session under load, with idle time before, ``budget_s`` seconds at most."""

    budget_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class PollMeter(CaseQuestion[MeterTicks]):
    """Read the meter of the device without a pause, for so long, and say how it moves."""

    seconds: float
