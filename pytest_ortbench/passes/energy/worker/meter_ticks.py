"""How often the counter and the power of a device move, and what a reading takes."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from pytest_ortbench.passes.energy.facts import MeterTicks
from pytest_ortbench.passes.energy.questions import PollMeter
from pytest_ortbench.passes.energy.worker.meter import Meter, NoMeter
from pytest_ortbench.passes.energy.worker.meter_choice import open_meter

if TYPE_CHECKING:
    from pytest_ortbench.worker.measured import MeasuredCase


def poll_meter(question: PollMeter, measured: MeasuredCase) -> MeterTicks:
    """Read the meter of the case's device as fast as it goes."""
    measured.enter("energy")
    try:
        meter = open_meter(measured.case.provider)
    except NoMeter as error:
        return MeterTicks(reason=str(error))
    return ticks_of(meter, question.seconds)


def ticks_of(
    meter: Meter, seconds: float, clock: Callable[[], int] = time.perf_counter_ns
) -> MeterTicks:
    """Read a meter for so long.

    Args:
        meter: What is read.
        seconds: How long.
        clock: Nanoseconds; a test sets its own time.
    """
    moves: list[int] = []
    steps: list[int] = []
    energy, power = meter.energy_j(), meter.power_w()
    started = clock()
    readings = 0
    while (now := clock()) - started < seconds * 1e9:
        energy_now, power_now = meter.energy_j(), meter.power_w()
        readings += 1
        if energy_now != energy:
            moves.append(now)
        if power_now != power:
            steps.append(now)
        energy, power = energy_now, power_now
    return MeterTicks(
        source=meter.source,
        device=meter.device,
        reading_ns=(now - started) // max(readings, 1),
        tick_ns=_gaps(moves),
        step_ns=_gaps(steps),
    )


def _gaps(moments: list[int]) -> tuple[int, ...]:
    return tuple(later - earlier for earlier, later in itertools.pairwise(moments))
