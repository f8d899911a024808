"""What the host asks in a soak."""

from __future__ import annotations

from dataclasses import dataclass

from pytest_ortbench.core.case import InputSpec
from pytest_ortbench.passes.soak.facts import Soak
from pytest_ortbench.schema.question import CaseQuestion


@dataclass(frozen=True, slots=True, kw_only=True)
class SoakFor(CaseQuestion[Soak]):
    """Run on and on, and watch resident memory.

    Attributes:
        seconds: How long.
        shapes: Inputs that are fed in turn, from one caller; empty for the case's own.
    """

    seconds: float
    shapes: tuple[tuple[InputSpec, ...], ...] = ()
