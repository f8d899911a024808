"""The energy pass on a simulated board, without any library."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pytest_ortbench.passes.energy.worker.energy_pass import EnergyPass, Procedure
from pytest_ortbench.passes.energy.worker.meter import DeviceState
from pytest_ortbench.worker.calling import alone

from . import energy_simulation as simulated


class Laid:
    """A meter of a simulated board."""

    source, device, note, poll_s = "laid", "board", "", 0.02
    power_source = "nvml power"

    def __init__(self, board: simulated.Board) -> None:
        self.board = board
        self.counter = self.power = True
        self.stuck = False
        self.temperatures: Callable[[int], float] = lambda _: 40.0

    def energy_j(self) -> float | None:
        if self.stuck:
            return 7.0
        return self.board.shown()[0] / 1000 if self.counter else None

    def power_w(self) -> float | None:
        return self.board.shown()[1] / 1000 if self.power else None

    def state(self) -> DeviceState:
        return DeviceState(temperature_c=self.temperatures(self.board.now_ms))


def laid_pass(
    meter: Laid, *, inference_ms: int = 20, shape: str = "steady", **how: Any
) -> tuple[EnergyPass, simulated.Simulation]:
    simulation = simulated.Simulation(meter.board, shape, None, poll_s=meter.poll_s)

    def infer() -> None:
        for _ in range(inference_ms // simulated.INFERENCE_MS):
            simulation.infer()

    made = EnergyPass(
        meter, alone(infer), procedure=Procedure(**how), clock=simulation.clock,
        sleep=simulation.sleep, sampler=simulation.sampler(meter), seed=1,
    )  # fmt: skip
    return made, simulation
