"""Several processes at a time, each with a session of its own. Raw facts only."""

from __future__ import annotations

from dataclasses import dataclass

from pytest_ortbench.core.samples import Samples


@dataclass(frozen=True, slots=True, kw_only=True)
class OneOfSeveral:
    """One of the processes of a point.

    Attributes:
        samples: Its inferences while all others ran too.
        peak_bytes: Rise of its resident size at its peak, session and runs; ``None`` if unreadable.
    """

    samples: Samples
    peak_bytes: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessPoint:
    """A case in some processes at a time.

    Attributes:
        processes: One entry a process, as many as were asked for.
        threads: Intra-op threads of each.
        reason: Why it could not be measured; empty otherwise.
        asked: How many there should have been.
        interrupted: Whether it was stopped before it was over; a resumed run measures it.
    """

    asked: int
    processes: tuple[OneOfSeveral, ...] = ()
    threads: int = 0
    reason: str = ""
    interrupted: bool = False
