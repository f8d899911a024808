"""A thread that reads a meter while the load runs, seldom enough to leave it alone."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from pytest_ortbench.passes.energy.worker.meter import DeviceState, Meter
from pytest_ortbench.passes.energy.worker.trace import Reading

#: Temperature and clocks are read once in so many seconds: they take several calls.
STATE_S = 0.5


@dataclass(slots=True)
class Trace:
    """What was read so far; the lists only ever grow at their ends."""

    readings: list[Reading] = field(default_factory=list)
    states: list[tuple[int, DeviceState]] = field(default_factory=list)


class Reader:
    """Takes readings one by one; it knows no thread, so that a test can drive it.

    Args:
        meter: What is read.
        clock: Nanoseconds, the clock of the load.
    """

    def __init__(self, meter: Meter, clock: Callable[[], int]) -> None:
        self.trace = Trace()
        self._meter = meter
        self._clock = clock
        self._next_state_ns = clock()

    def read(self) -> None:
        """Read counter and power, and now and then the state of the device."""
        meter = self._meter
        energy = meter.energy_j()
        # Between the two calls, each of which may take a millisecond.
        now = self._clock()
        self.trace.readings.append(Reading(at_ns=now, energy_j=energy, power_w=meter.power_w()))
        if now >= self._next_state_ns:
            self._next_state_ns = now + int(STATE_S * 1e9)
            self.trace.states.append((now, meter.state()))


class ThreadSampler:
    """Reads a meter from a thread of its own.

    Args:
        meter: What is read.
        clock: Nanoseconds, the clock of the load.
    """

    def __init__(self, meter: Meter, clock: Callable[[], int] = time.perf_counter_ns) -> None:
        self._meter = meter
        self._clock = clock
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self) -> Trace:
        """Begin to read, and return the trace, which fills up meanwhile."""
        reader = Reader(self._meter, self._clock)
        self._stopping.clear()
        # The first reading is there when this returns.
        reader.read()
        self._thread = threading.Thread(
            target=self._poll, args=(reader,), name="ortbench-energy", daemon=True
        )
        self._thread.start()
        return reader.trace

    def stop(self) -> None:
        """End the thread."""
        if self._thread is not None:
            self._stopping.set()
            self._thread.join()
            self._thread = None

    def _poll(self, reader: Reader) -> None:
        poll_s = self._meter.poll_s
        due = time.monotonic() + poll_s
        while not self._stopping.wait(max(0.0, due - time.monotonic())):
            reader.read()
            # A thread that was held up does not catch up by reading at once again.
            due = max(due + poll_s, time.monotonic() + poll_s / 2)
