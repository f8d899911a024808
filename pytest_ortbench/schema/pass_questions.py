"""What the host asks in the passes beside the standard one; a part of the protocol."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasureEnergy:
    """Put the session under load, with idle time before, ``budget_s`` seconds at most."""

    budget_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ProfileOperators:
    """Release the measured session and say where the time goes in a profiled one.

    Attributes:
        keep: Where the trace goes, on the worker's side; empty to keep none.
    """

    keep: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class SoakFor:
    """Run on and on for ``seconds``, and watch resident memory."""

    seconds: float
