"""What a meter of energy and power is, and the state of a device that it reads beside them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceState:
    """What bears on a device's power at one moment; ``None`` where it can't be read."""

    temperature_c: float | None = None
    clock_mhz: float | None = None
    power_limit_w: float | None = None
    throttled: tuple[str, ...] = ()


class Meter(Protocol):
    """Reads energy and power of one device. Reading is quick and disturbs nothing."""

    @property
    def source(self) -> str:
        """What a figure comes from: ``nvml energy counter``, ``nvml power``, ``rapl``."""

    @property
    def power_source(self) -> str:
        """What a figure comes from where power is integrated; empty without any."""

    @property
    def device(self) -> str:
        """The device, by name."""

    @property
    def poll_s(self) -> float:
        """Seconds between two readings."""

    @property
    def note(self) -> str:
        """What the meter can't read; empty for nothing."""

    def energy_j(self) -> float | None:
        """Return the counter, wrap-around undone; ``None`` if there is none."""

    def power_w(self) -> float | None:
        """Return the power now; ``None`` if it can't be read."""

    def state(self) -> DeviceState:
        """Return temperature, clock and limits."""


class NoMeter(Exception):
    """No meter can measure a provider's device; the text says why."""
