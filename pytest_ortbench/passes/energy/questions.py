"""What the host asks in the energy pass."""

from __future__ import annotations

from dataclasses import dataclass

from pytest_ortbench.passes.energy.facts import Energy
from pytest_ortbench.schema.question import CaseQuestion


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasureEnergy(CaseQuestion[Energy]):
    """Put the session under load, with idle time before, ``budget_s`` seconds at most."""

    budget_s: float
