"""The energy pass on real requests to a language model, read from a meter of known power."""

from __future__ import annotations

import threading
import time
from pathlib import Path

import pytest

from pytest_ortbench.analysis.collector import Collector
from pytest_ortbench.core.generation import GeneratedRequest
from pytest_ortbench.passes.energy.numbers import add_energy
from pytest_ortbench.passes.energy.worker.energy_pass import EnergyPass, Procedure
from pytest_ortbench.passes.energy.worker.meter import DeviceState
from pytest_ortbench.passes.energy.worker.trace import Least
from pytest_ortbench.worker.calling import until_of
from pytest_ortbench.worker.generation.generating_case import GeneratingCase
from tests.results_factory import make_result
from tests.worker.decoder_cases import decoder_case

pytestmark = pytest.mark.live

WATTS = 10.0


class Constant:
    """A meter of a device that always takes the same power, and the clock that it goes by."""

    source, device, note, poll_s = "constant", "board", "", 0.005

    def __init__(self) -> None:
        self._read = threading.local()

    def energy_j(self) -> float | None:
        # A thread that is held up behind this reads the clock no later than the counter.
        self._read.at_ns = time.perf_counter_ns()
        joules: float = self._read.at_ns * 1e-9 * WATTS
        return joules

    def clock(self) -> int:
        """Return the moment of this thread's last look at the counter, once; else the time."""
        at_ns: int = self._read.__dict__.pop("at_ns", 0)
        return at_ns or time.perf_counter_ns()

    def power_w(self) -> float | None:
        return WATTS

    def state(self) -> DeviceState:
        return DeviceState()


@pytest.mark.parametrize("batch", [1, 2])
def test_joules_of_a_token_are_those_of_the_requests_that_were_carried_out(
    batch: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    case = decoder_case(tmp_path, new=5, batch=batch)
    measured = GeneratingCase(case, lambda _: None)
    measured.open()
    loop, carried_out = measured.live_requests(), []
    carry_out = loop.carry_out

    def counted() -> GeneratedRequest:
        carried_out.append(carry_out())
        return carried_out[-1]

    monkeypatch.setattr(loop, "carry_out", counted)
    procedure = Procedure(
        least=Least(seconds=0.4, ticks=5, inferences=4),
        trials=1,
        drop_s=0.05,
        cooldown_s=0.1,
        settle_s=0.05,
    )
    meter = Constant()
    energy = EnergyPass(meter, until_of(loop), procedure=procedure, clock=meter.clock).run(600.0)
    (window,) = energy.windows
    assert window.energy_j == pytest.approx(WATTS * window.duration_ns * 1e-9)
    assert 4 <= window.inferences <= len(carried_out)
    collector = Collector()
    add_energy(collector, make_result(case=case, energy=energy))
    per_token = collector.quantities["energy_per_token"].value
    assert per_token == pytest.approx(window.energy_j / window.inferences / (5 * batch))
    assert {request.new_tokens for request in carried_out} == {5}
