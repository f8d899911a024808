"""What the energy pass reads from, and which meter measures the device of a provider."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from pytest_ortbench.core.case import Provider
from pytest_ortbench.worker.gpu_choice import NVIDIA

#: Where the kernel shows the energy counters of CPUs, and the variable that says otherwise: a
#: container may have the host's folder mounted elsewhere.
POWERCAP = Path("/sys/class/powercap")
POWERCAP_VARIABLE = "ORTBENCH_POWERCAP"

#: Providers that compute on the CPU, whatever their options say.
_ON_CPU = ("CPUExecutionProvider", "XnnpackExecutionProvider", "DnnlExecutionProvider")


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
    def device(self) -> str:
        """Which device."""

    @property
    def poll_s(self) -> float:
        """How far readings should be apart."""

    @property
    def note(self) -> str:
        """What it can't read."""

    def energy_j(self) -> float | None:
        """The counter, wrap-around undone; ``None`` if there is none."""

    def power_w(self) -> float | None:
        """Power now; ``None`` if it can't be read."""

    def state(self) -> DeviceState:
        """Temperature, clock, limits."""


class NoMeter(Exception):
    """No meter can measure a provider's device; the text says why."""


def open_meter(
    provider: Provider,
    environment: Mapping[str, str] | None = None,
    *,
    powercap: Path | None = None,
) -> Meter:
    """Return the meter of the device that a provider works on.

    Args:
        provider: The provider.
        environment: Where ``CUDA_VISIBLE_DEVICES`` may stand; this process' own by default.
        powercap: Where the energy counters of CPUs are; the environment says it by default.

    Raises:
        NoMeter: if there is none, with the reason.
    """
    environment = os.environ if environment is None else environment
    if provider.name in NVIDIA:
        from pytest_ortbench.worker.nvml_meter import NvmlMeter  # needs pynvml, an option

        return NvmlMeter(provider, environment)
    device = provider.options.get("device_type", provider.device)
    openvino_on_cpu = provider.name == "OpenVINOExecutionProvider" and device.upper() == "CPU"
    if provider.name in _ON_CPU or openvino_on_cpu:
        from pytest_ortbench.worker.rapl import RaplMeter

        return RaplMeter(powercap or Path(environment.get(POWERCAP_VARIABLE, POWERCAP)))
    raise NoMeter(f"no meter is known for the device of {provider.name}")


def why_no_meter(provider: Provider) -> str:
    """Say why the energy of a provider can't be measured here; empty if it can."""
    try:
        open_meter(provider)
    except NoMeter as error:
        return str(error)
    return ""
