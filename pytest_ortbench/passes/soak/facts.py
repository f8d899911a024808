"""The soak pass: resident memory over a long closed loop of inferences. Raw facts only."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Soak:
    """Memory while the same session ran on and on, or why it was not watched.

    Attributes:
        seconds: How long the loop ran.
        inferences: How many there were.
        at: Number of inferences done at each reading.
        resident_bytes: Resident size of the process at each reading.
        source: How the size was read.
        shapes: Different shapes that it went through.
        reason: Why there are no readings; empty otherwise.
        interrupted: Whether it was stopped before it was over; a resumed run measures it.
    """

    seconds: float = 0.0
    inferences: int = 0
    at: tuple[int, ...] = ()
    resident_bytes: tuple[int, ...] = ()
    source: str = ""
    shapes: int = 1
    reason: str = ""
    interrupted: bool = False
