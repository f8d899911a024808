"""What a worker found out for a self-check: raw facts. ``None`` means "not read", never zero."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopTimes:
    """The timed loop and a bare one on the same session, in turns.

    Attributes:
        ours_ns: Mean duration of an inference by the timed loop, one entry a round.
        bare_ns: Time of the bare loop by its inferences, likewise.
        iterations: Inferences of a loop.
    """

    ours_ns: tuple[int, ...]
    bare_ns: tuple[int, ...]
    iterations: int


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitTimes:
    """What is left to wait for behind a loop, with the synchronisation and without.

    Attributes:
        device: Memory that the outputs are bound on: ``cuda:0``.
        on_host: Whether it is memory of the host; then no loop is run.
        ours_ns: Time of the timed loop, one entry a round.
        ours_left_ns: Time until the device was done, after it.
        launched_ns: Time of a loop that only starts inferences and waits for none.
        launched_left_ns: Time until the device was done, after that.
        idle_ns: Time that the same waiting takes where nothing is left to do.
        arbiter: What waits, for people.
    """

    device: str = ""
    on_host: bool = False
    ours_ns: tuple[int, ...] = ()
    ours_left_ns: tuple[int, ...] = ()
    launched_ns: tuple[int, ...] = ()
    launched_left_ns: tuple[int, ...] = ()
    idle_ns: tuple[int, ...] = ()
    arbiter: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class EventTimes:
    """Inferences timed by the loop, and by events on the stream of the device.

    Attributes:
        ours_ns: Mean duration of an inference by the timed loop, one entry a round.
        device_ns: Time between two events around each inference, likewise.
        reason: Why there are no events; empty otherwise.
    """

    ours_ns: tuple[int, ...] = ()
    device_ns: tuple[int, ...] = ()
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProfiledNodes:
    """Nodes of a profile, counted without what placement is read with.

    Attributes:
        nodes: Nodes by provider, each once, without copies between devices.
        copies: Copies between devices.
    """

    nodes: dict[str, int]
    copies: int


@dataclass(frozen=True, slots=True, kw_only=True)
class MeteredMemory:
    """A meter of memory against memory that was taken on purpose.

    Attributes:
        taken_bytes: What was taken.
        host_rise_bytes: What the meter of the host showed of it; ``None`` if it can't be read.
        host_source: What that meter is.
        device_rise_bytes: What the meter of the device showed of as much taken there.
        device_source: What that meter is, or why there is none.
    """

    taken_bytes: int
    host_rise_bytes: int | None = None
    host_source: str = ""
    device_rise_bytes: int | None = None
    device_source: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Evaluated:
    """What the first output held of values that were fed.

    Attributes:
        values: The output, flat.
        type: Its type, as numpy calls it.
    """

    values: tuple[float, ...]
    type: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Replayed:
    """What a recorded graph answered to values other than those it was recorded with.

    Attributes:
        answers: The first output, flat.
    """

    answers: tuple[float, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class SeenDevice:
    """Which device everybody means.

    Attributes:
        asked: What was asked for: the number or UUID of the provider's options.
        chosen: UUID of the device that is read for memory and energy; empty if none is.
        computing: UUID of the device that CUDA gives that number, without its kind (``GPU-``).
        seen_on: UUIDs of the devices on which NVML sees this process compute.
        visible: Devices that CUDA shows this process.
        in_force: Options of the provider that name a device, as the session reads them back.
        settings: Variables of the environment that choose devices, as far as they are set.
        reason: Why no device can be read; empty otherwise.
    """

    asked: str = ""
    chosen: str = ""
    computing: str = ""
    seen_on: tuple[str, ...] = ()
    visible: int = 0
    in_force: dict[str, str] = field(default_factory=dict)
    settings: dict[str, str] = field(default_factory=dict)
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class SeenClocks:
    """Clocks of the CPUs under load, and what held the process back.

    Attributes:
        clocks_mhz: Readings, over all CPUs of the process; empty where they can't be read.
        wall_ns: Length of the load.
        throttled_ns: How long the quota of a control group held it back; ``None`` if unreadable.
        steal_ticks: What the hypervisor took, in ticks of the clock; ``None`` if unreadable.
        total_ticks: Ticks altogether; ``None`` likewise.
    """

    clocks_mhz: tuple[float, ...]
    wall_ns: int
    throttled_ns: int | None = None
    steal_ticks: int | None = None
    total_ticks: int | None = None
