"""What a machine draws under a load: stated, or from the measured energy."""

from __future__ import annotations

import math
from dataclasses import dataclass

from pytest_ortbench.fleet.numbers.facts import CaseFacts
from pytest_ortbench.fleet.procurement.figure import Figure, measured_figure
from pytest_ortbench.fleet.procurement.machines import PricedMachine

#: Absolute power readings of different boards agree no better than this.
POWER_ERROR = 0.05


@dataclass(frozen=True, slots=True, kw_only=True)
class Power:
    """What a machine draws, as far as it is known.

    Attributes:
        idle_w: Doing nothing.
        load_w: Under this load.
        source: Where the numbers come from and what they include.
        whole: Whether they are of the whole machine, not of the device alone.
    """

    idle_w: float
    load_w: Figure
    source: str
    whole: bool = True


def power_of(
    case: CaseFacts, machine: PricedMachine, missing: dict[str, str], *, share: float
) -> Power | None:
    """The whole machine where its idle power is stated, else the device alone, and so labelled.

    Power is measured in one process. More of them rise as much higher as they do more, since an
    inference takes the same energy beside what the machine draws anyway.
    """
    idle = machine.idle_power_w
    if machine.load_power_w is not None:
        stated = machine.load_power_w
        return Power(
            idle_w=stated if idle is None else idle,
            load_w=Figure(value=stated, low=stated, high=stated),
            source="as given: at the wall socket",
        )
    measured = case.power
    if measured is None:
        missing["power"] = (
            "the power under this load is not known: the run has no energy measurement, and "
            "load_power is not given"
        )
        return None
    if case.power_reason:
        missing["power"] = (
            f"the power under this load is not certain: {case.power_reason}, and load_power is "
            "not given"
        )
        return None
    gross = measured_figure(measured, case)
    gross = Figure(
        value=gross.value,
        low=gross.low * (1 - POWER_ERROR),
        high=gross.high * (1 + POWER_ERROR),
    )
    scaled = (
        ""
        if math.isclose(share, 1.0)
        else (", scaled with the throughput of all processes together")
    )
    own_idle = case.idle_w or 0.0
    gross = gross.of(lambda watts: own_idle + max(0.0, watts - own_idle) * share)
    if idle is None:
        return Power(
            idle_w=own_idle,
            load_w=gross,
            source=f"measured: the device alone, without the rest of the machine{scaled}",
            whole=False,
        )
    # The machine's idle power holds the device's; where that was not measured, it is counted twice
    # at worst and the device is all of it at best.
    if case.idle_w is None:
        load = Figure(value=idle + gross.value, low=max(idle, gross.low), high=idle + gross.high)
        note = ", the device's own idle power counted twice"
    else:
        load = gross.of(lambda watts: idle + max(0.0, watts - own_idle))
        note = ""
    return Power(
        idle_w=idle,
        load_w=load,
        source=f"the idle power that was given plus the measured rise of the device{scaled}{note}",
    )
