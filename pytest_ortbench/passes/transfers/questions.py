"""What the host asks about transfers."""

from __future__ import annotations

from dataclasses import dataclass

from pytest_ortbench.schema.question import CaseQuestion


@dataclass(frozen=True, slots=True, kw_only=True)
class TransferBlock:
    """A block of inferences in one of the two ways.

    Attributes:
        durations_ns: What each inference took.
        device: Where outputs were kept; empty for the host.
    """

    durations_ns: tuple[int, ...]
    device: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class TimeTransfers(CaseQuestion[TransferBlock]):
    """Time so many inferences, after as many untimed ones as it takes to be warm.

    Attributes:
        io: ``end-to-end`` or ``device``.
        iterations: Timed inferences.
        untimed: Inferences before.
    """

    io: str
    iterations: int
    untimed: int = 0
