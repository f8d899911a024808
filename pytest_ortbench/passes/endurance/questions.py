"""What the host asks a worker for the endurance of a service."""

from __future__ import annotations

from dataclasses import dataclass

from pytest_ortbench.passes.endurance.facts import SteadyLoad
from pytest_ortbench.schema.question import CaseQuestion, ReadFile


@dataclass(frozen=True, slots=True, kw_only=True)
class KeepUnderLoad(CaseQuestion[SteadyLoad]):
    """Send requests at a steady rate, whatever becomes of them.

    Attributes:
        seconds: How long.
        rate_per_s: Requests a second that arrive, at random.
        reference: File of reference outputs, which answers are compared with; empty for none.
    """

    seconds: float
    rate_per_s: float
    reference: ReadFile = ""
