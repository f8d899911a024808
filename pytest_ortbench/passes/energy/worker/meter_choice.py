"""Which meter measures the device of a provider."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from pytest_ortbench.core.case import Provider
from pytest_ortbench.core.provider_kinds import NVIDIA
from pytest_ortbench.passes.energy.worker.battery import BatteryMeter
from pytest_ortbench.passes.energy.worker.meter import Meter, NoMeter
from pytest_ortbench.passes.energy.worker.nvml_meter import NvmlMeter
from pytest_ortbench.passes.energy.worker.rapl import RaplMeter

#: Where the kernel shows the energy counters of CPUs, and the variable that says otherwise: a
#: container may have the host's folder mounted elsewhere.
POWERCAP = Path("/sys/class/powercap")
POWERCAP_VARIABLE = "ORTBENCH_POWERCAP"
#: Likewise of batteries.
SUPPLIES = Path("/sys/class/power_supply")
SUPPLIES_VARIABLE = "ORTBENCH_POWER_SUPPLY"


def open_meter(
    provider: Provider,
    environment: Mapping[str, str] | None = None,
    *,
    powercap: Path | None = None,
    supplies: Path | None = None,
) -> Meter:
    """Return the meter of the device that a provider works on.

    A battery that feeds the machine stands in for a counter that is not there: of the CPU, and of
    a device without a known one.

    Args:
        provider: The provider.
        environment: Where ``CUDA_VISIBLE_DEVICES`` may stand; this process' own by default.
        powercap: Where the energy counters of CPUs are; the environment says it by default.
        supplies: Where batteries are, likewise.

    Raises:
        NoMeter: if there is none, with the reason.
    """
    environment = os.environ if environment is None else environment
    if provider.name in NVIDIA and not provider.then:
        return NvmlMeter(provider, environment)
    if all(link.works_on_cpus for link in provider.links):
        try:
            return RaplMeter(powercap or Path(environment.get(POWERCAP_VARIABLE, POWERCAP)))
        except NoMeter as error:
            reason = str(error)
    elif provider.then:
        reason = f"no energy meter is known for all devices of {provider.label}"
    else:
        reason = f"no energy meter is known for the device of {provider.name}"
    try:
        return BatteryMeter(supplies or Path(environment.get(SUPPLIES_VARIABLE, SUPPLIES)))
    except NoMeter as error:
        raise NoMeter(f"{reason}; {error}") from error


def why_no_meter(provider: Provider) -> str:
    """Say why the energy of a provider can't be measured here; empty if it can."""
    try:
        open_meter(provider)
    except NoMeter as error:
        return str(error)
    return ""
