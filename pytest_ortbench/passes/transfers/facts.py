"""A case with its values on the host and on the device, in turns. Raw facts only."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class TransferLaunch:
    """Rounds of one fresh process, each with a block from the host and one on the device.

    Attributes:
        host_ns: Median inference of each block with inputs and outputs on the host.
        device_ns: Median inference of each block with them on the device, in the same order.
    """

    host_ns: tuple[int, ...]
    device_ns: tuple[int, ...]

    @property
    def pair(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """What is divided in a ratio, and what it is divided by."""
        return self.host_ns, self.device_ns


@dataclass(frozen=True, slots=True, kw_only=True)
class Transfers:
    """What copies between host and device cost, or why that is not known.

    Attributes:
        device: Where outputs were kept: ``cuda:0``.
        launches: One entry a process.
        reason: Why there is none; empty otherwise.
        interrupted: Whether it was stopped before it was over; a resumed run measures it.
    """

    device: str = ""
    launches: tuple[TransferLaunch, ...] = ()
    reason: str = ""
    interrupted: bool = False
