"""What the host asks about operators."""

from __future__ import annotations

from dataclasses import dataclass

from pytest_ortbench.passes.profile.facts import OperatorProfile
from pytest_ortbench.schema.question import CaseQuestion, WrittenFile


@dataclass(frozen=True, slots=True, kw_only=True)
class ProfileOperators(CaseQuestion[OperatorProfile]):
    """Release the measured session and say where the time goes in a profiled one.

    Attributes:
        keep: Where the profiler's trace goes; empty to keep none.
    """

    keep: WrittenFile = ""
