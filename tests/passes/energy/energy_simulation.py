"""A board whose true energy is known, on a clock of its own, shown through the stand-in library.

Run as a program (with the stand-in on the library path) it goes through loads, sampling windows and
phases, and prints one JSON object a trial: what the energy pass says, what is true, and what a
naive average of polled power says.
"""

from __future__ import annotations

import json
import mmap
import random
import struct
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from pytest_ortbench.core.case import Provider
from pytest_ortbench.passes.energy.worker.energy_pass import EnergyPass, Procedure
from pytest_ortbench.passes.energy.worker.meter import Meter
from pytest_ortbench.passes.energy.worker.meter_choice import open_meter
from pytest_ortbench.passes.energy.worker.sampler import Reader, Trace
from pytest_ortbench.passes.energy.worker.trace import span_of
from pytest_ortbench.worker.calling import alone

MS = 1_000_000
IDLE_W = 20.0
#: The sensor and the counter show something new this often.
PERIOD_MS = 100
#: An inference of the simulated load.
INFERENCE_MS = 20


def steady(at_s: float) -> float:
    return 400.0 if at_s >= 0 else IDLE_W


def ramp(at_s: float) -> float:
    return 60.0 + 55.0 * at_s


def steps(at_s: float) -> float:
    """A rhythm of its own, close to that of the sensor: 40 ms at work, 60 ms waiting."""
    return 400.0 if (at_s * 1000) % 100.5 < 40 else 90.0


SHAPES = {"steady": steady, "ramp": ramp, "steps": steps}


@dataclass
class Board:
    """True power a millisecond at a time, and what its instruments show of it.

    Attributes:
        window_ms: The sensor averages over this much at the end of each period.
        phase_ms: Where in a millisecond count the periods begin.
        load: Power by seconds since the load began; ``None`` while idle.
    """

    window_ms: int
    phase_ms: int = 0
    load: Callable[[float], float] | None = None
    loaded_at: int = 0
    #: Joules up to each millisecond.
    energy: list[float] = field(default_factory=lambda: [0.0])

    @property
    def now_ms(self) -> int:
        return len(self.energy) - 1

    def tick(self) -> None:
        watts = IDLE_W
        if self.load is not None:
            watts = self.load((self.now_ms - self.loaded_at) / 1000)
        self.energy.append(self.energy[-1] + watts / 1000)

    def true_j(self, start_ns: int, end_ns: int) -> float:
        return self.energy[end_ns // MS] - self.energy[start_ns // MS]

    def _last_period(self) -> int:
        return max(0, (self.now_ms - self.phase_ms) // PERIOD_MS * PERIOD_MS + self.phase_ms)

    def shown(self) -> tuple[int, int, int]:
        """Counter in mJ, power over the sensor's window and over a second, in mW."""
        end = self._last_period()

        def mean_mw(length: int) -> int:
            start = max(0, end - length)
            if start == end:
                return int(IDLE_W * 1000)
            return int((self.energy[end] - self.energy[start]) / (end - start) * 1e6)

        return int(self.energy[end] * 1000), mean_mw(self.window_ms), mean_mw(1000)


class Simulation:
    """Clock, load and sampler of an energy pass, with a meter that is the real one."""

    def __init__(self, board: Board, shape: str, state: mmap.mmap | None, poll_s: float) -> None:
        self.board, self.shape, self.state = board, SHAPES[shape], state
        self.poll_ms = round(poll_s * 1000)
        self.reader: Reader | None = None
        self.next_poll = 0
        self.loads: list[tuple[int, int]] = []
        #: (milliseconds, averaged power in mW), every 100 ms: what a naive script collects.
        self.naive: list[tuple[int, int]] = []
        self._jitter = random.Random(3)

    def clock(self) -> int:
        return self.board.now_ms * MS

    def _advance(self, milliseconds: int) -> None:
        for _ in range(milliseconds):
            self.board.tick()
            now = self.board.now_ms
            if now % 100 == 0:
                self.naive.append((now, self.board.shown()[2]))
            if self.reader is not None and now >= self.next_poll:
                self._poll()

    def _poll(self) -> None:
        assert self.reader is not None
        if self.state is not None:
            self.state[:24] = struct.pack("<3q", *self.board.shown())
        self.reader.read()
        # Threads wake up late, now and then very late.
        late = 120 if self._jitter.random() < 0.005 else self._jitter.choice((0, 0, 1, 2))
        self.next_poll = self.board.now_ms + self.poll_ms + late

    def sleep(self, seconds: float) -> None:
        if self.board.load is not None:
            self.loads.append((self.board.loaded_at, self.board.now_ms))
        self.board.load = None
        self._advance(round(seconds * 1000))

    def infer(self) -> None:
        if self.board.load is None:
            self.board.load, self.board.loaded_at = self.shape, self.board.now_ms
        self._advance(INFERENCE_MS)

    # The sampler ---------------------------------------------------------------------------

    def sampler(self, meter: Meter) -> Any:
        simulation = self

        class Sampler:
            def start(self) -> Trace:
                simulation.reader = Reader(meter, simulation.clock)
                simulation._poll()
                return simulation.reader.trace

            def stop(self) -> None:
                simulation.reader = None

        return Sampler()


def naive_w(simulation: Simulation, start_ms: int, end_ms: int) -> float:
    shown = [mw for at, mw in simulation.naive if start_ms <= at <= end_ms]
    return sum(shown) / len(shown) / 1000


def trial(shape: str, window_ms: int, phase: int, state: mmap.mmap, **how: Any) -> dict[str, Any]:
    """One load in one simulated board, against the truth."""
    board = Board(window_ms=window_ms, phase_ms=phase % PERIOD_MS)
    simulation = Simulation(board, shape, state, poll_s=0.02)
    state[:24] = struct.pack("<3q", *board.shown())
    meter = open_meter(Provider(alias="cuda", name="CUDAExecutionProvider"), {})
    spans = []

    def spy(*args: Any, **kwargs: Any) -> Any:
        spans.append(span_of(*args, **kwargs))
        return spans[-1]

    import pytest_ortbench.passes.energy.worker.energy_pass as module

    module.span_of = spy
    energy = EnergyPass(
        meter,
        alone(simulation.infer),
        procedure=Procedure(trials=1, **how),
        clock=simulation.clock,
        sleep=simulation.sleep,
        sampler=simulation.sampler(meter),
        seed=phase,
    ).run(600)
    simulation.sleep(0.0)
    [window] = energy.windows
    span = spans[-1]
    true_j = board.true_j(span.start_ns, span.end_ns)
    # As a script does it that polls averaged power while a benchmark of five seconds runs.
    start_ms, end_ms = simulation.loads[-1][0], simulation.loads[-1][0] + 5000
    true_load_w = board.true_j(start_ms * MS, end_ms * MS) / 5
    per_inference = true_j / (span.duration_ns / MS / INFERENCE_MS)
    return {
        "shape": shape,
        "window_ms": window_ms,
        "phase": phase,
        "source": window.source,
        "seconds": window.duration_ns * 1e-9,
        "ticks": window.ticks,
        "inferences": window.inferences,
        "error": window.energy_j / true_j - 1,
        "error_per_inference": window.energy_j / window.inferences / per_inference - 1,
        "integral_error": window.integral_j / true_j - 1,
        "idle_error": window.idle_w / IDLE_W - 1,
        "naive_error": naive_w(simulation, start_ms, end_ms) / true_load_w - 1,
    }


def main(path: str, phases: int) -> None:
    draw = random.Random(11)
    found = []
    with open(path, "r+b") as file, mmap.mmap(file.fileno(), 0) as state:  # noqa: PTH123
        for shape in SHAPES:
            for window_ms in (25, 100):
                found += [
                    trial(shape, window_ms, draw.randrange(10_000), state) for _ in range(phases)
                ]
    print(json.dumps(found))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
