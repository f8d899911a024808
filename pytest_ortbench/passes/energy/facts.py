"""Energy of a device under a case's load: raw facts of the energy pass.

Gross energy is all that the device took in the window, net energy is what it took more than while
idle. ``None`` means "not measured"; zero never stands in for it.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class EnergyWindow:
    """One trial of the energy pass: the load's first second is dropped before it.

    Attributes:
        source: ``nvml energy counter``, ``nvml power``, ``rapl``, ``battery power``.
        device: UUID of the device, or the names of the domains or batteries that were
            added up.
        duration_ns: Length of the window; with a counter from one of its ticks to another.
        inferences: Inferences in it, those at its ends in part.
        energy_j: Energy in the window, gross.
        idle_w: Idle power before the load, the session being open.
        counter_j: What the counter says, if there is one.
        integral_j: What integrated power says, if it was polled.
        ticks: Ticks of the counter in the window; ``None`` without a counter.
        power_limit_w: Power limit in force.
        temperature_c: Temperature at the start of the load.
        hottest_c: Highest temperature under load.
        clock_mhz: Lowest and highest clock of the computing units in the window.
        throttled: Why the device held its clocks back in the window: ``power cap``, ``thermal``, ….
    """

    source: str
    device: str
    duration_ns: int
    inferences: float
    energy_j: float
    idle_w: float | None = None
    counter_j: float | None = None
    integral_j: float | None = None
    ticks: int | None = None
    power_limit_w: float | None = None
    temperature_c: float | None = None
    hottest_c: float | None = None
    clock_mhz: tuple[float, float] | None = None
    throttled: tuple[str, ...] = ()

    @property
    def net_j(self) -> float | None:
        """Energy above what the device takes idle; ``None`` where the idle power is unknown."""
        if self.idle_w is None:
            return None
        return self.energy_j - self.idle_w * self.duration_ns * 1e-9


@dataclass(frozen=True, slots=True, kw_only=True)
class Energy:
    """The energy pass of a case: its windows, or why there are none.

    Attributes:
        windows: One entry a trial.
        reason: Why there is none; empty otherwise.
        note: What the figures leave out: a power reading that is missing, trials that did not fit.
        interrupted: Whether it was stopped before it was over; a resumed run measures it.
    """

    windows: tuple[EnergyWindow, ...] = ()
    reason: str = ""
    note: str = ""
    interrupted: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class MeterTicks:
    """How a meter behaves while it is read without a pause.

    Attributes:
        source: What the meter is.
        device: The device that it reads.
        reading_ns: What a reading of counter and power takes.
        tick_ns: Times between two moves of the counter.
        step_ns: Times between two changes of the power that is read.
        reason: Why there is no meter; empty if there is one.
    """

    source: str = ""
    device: str = ""
    reading_ns: int = 0
    tick_ns: tuple[int, ...] = ()
    step_ns: tuple[int, ...] = ()
    reason: str = ""
