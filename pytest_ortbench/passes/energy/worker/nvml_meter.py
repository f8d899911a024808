"""Energy and power of an NVIDIA GPU, through NVML.

The energy counter (Volta and newer) is the source, instantaneous power its check. Both are those
of the whole board: a slice of it (MIG) or a share (vGPU) has none of its own, and what another
process computes there can't be told apart.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import ModuleType
from typing import Any

from pytest_ortbench.core.case import Provider
from pytest_ortbench.passes.energy.worker.meter import DeviceState, NoMeter
from pytest_ortbench.worker.gpu_choice import chosen_gpu

#: Why clocks are held back, by NVML's bits; idle, application settings and the like are left out.
THROTTLE_REASONS = {
    0x4: "power cap",
    0x8: "hardware slowdown",
    0x20: "thermal",
    0x40: "hardware thermal",
    0x80: "power brake",
}


class NvmlMeter:
    """The GPU that a provider works on.

    Args:
        provider: Its ``device_id`` counts among the visible devices.
        environment: Where ``CUDA_VISIBLE_DEVICES`` may stand.

    Raises:
        NoMeter: if neither its counter nor its power can be read, or they are not its own.
    """

    #: The counter moves every 100 ms, power too; 50 readings a second place a tick within 20 ms.
    poll_s = 0.02
    power_source = "nvml power"

    def __init__(self, provider: Provider, environment: Mapping[str, str]) -> None:
        try:
            import pynvml  # optional in a measured interpreter
        except ImportError as error:
            raise NoMeter("pynvml is not installed (pip install nvidia-ml-py)") from error
        self._nvml: ModuleType = pynvml
        try:
            pynvml.nvmlInit()
            gpu = chosen_gpu(pynvml, provider, environment)
        except (pynvml.NVMLError, LookupError) as error:
            raise NoMeter(f"NVML: {error}") from error
        self._handle: Any = gpu.handle
        self.device = gpu.uuid
        self._refuse_shares()
        counter, why_no_counter = self._try(self._counter_mj)
        self._has_counter = counter is not None
        self._read_power, why_no_power = self._find_power()
        if not self._has_counter and self._read_power is None:
            raise NoMeter(f"NVML: no energy counter: {why_no_counter}; no power: {why_no_power}")
        self.source = "nvml energy counter" if self._has_counter else self.power_source
        self.note = ""
        if not self._has_counter:
            self.note = f"no energy counter: {why_no_counter}"
        elif self._read_power is None:
            self.note = f"the counter can't be checked against power: {why_no_power}"

    def energy_j(self) -> float | None:
        """Return the counter since the driver was loaded."""
        return _thousandth(self._try(self._counter_mj)[0]) if self._has_counter else None

    def power_w(self) -> float | None:
        """Return instantaneous power where the driver has it, else what it calls the usage."""
        if self._read_power is None:
            return None
        return _thousandth(self._try(self._read_power)[0])

    def state(self) -> DeviceState:
        """Return temperature, clock, power limit, and why the clock is held back."""
        nvml, handle = self._nvml, self._handle
        temperature, _ = self._try(
            lambda: nvml.nvmlDeviceGetTemperature(handle, nvml.NVML_TEMPERATURE_GPU)
        )
        clock, _ = self._try(lambda: nvml.nvmlDeviceGetClockInfo(handle, nvml.NVML_CLOCK_SM))
        limit, _ = self._try(lambda: nvml.nvmlDeviceGetEnforcedPowerLimit(handle))
        bits, _ = self._try(self._throttle_bits)
        return DeviceState(
            temperature_c=temperature,
            clock_mhz=clock,
            power_limit_w=_thousandth(limit),
            throttled=tuple(name for bit, name in THROTTLE_REASONS.items() if int(bits or 0) & bit),
        )

    def _refuse_shares(self) -> None:
        """Refuse a board whose figures are not those of this process' work alone."""
        nvml, handle = self._nvml, self._handle
        mode, _ = self._try(lambda: nvml.nvmlDeviceGetVirtualizationMode(handle))
        if mode == nvml.NVML_GPU_VIRTUALIZATION_MODE_VGPU:
            raise NoMeter("the GPU is virtual: counter and power are those of the whole board")

    def _counter_mj(self) -> float:
        return float(self._nvml.nvmlDeviceGetTotalEnergyConsumption(self._handle))

    def _find_power(self) -> tuple[Callable[[], float] | None, str]:
        """The best reading of power, or why there is none."""
        instant, _ = self._try(self._instant_mw)
        if instant is not None:
            return self._instant_mw, ""
        usage, why = self._try(self._usage_mw)
        return (None, why) if usage is None else (self._usage_mw, "")

    def _instant_mw(self) -> float:
        nvml = self._nvml
        field = nvml.nvmlDeviceGetFieldValues(self._handle, [nvml.NVML_FI_DEV_POWER_INSTANT])[0]
        if field.nvmlReturn != nvml.NVML_SUCCESS:
            raise nvml.NVMLError(field.nvmlReturn)
        return float(field.value.uiVal)

    def _usage_mw(self) -> float:
        return float(self._nvml.nvmlDeviceGetPowerUsage(self._handle))

    def _throttle_bits(self) -> float:
        # The new name is missing in older versions of the package, and in drivers before 535.
        ask = getattr(self._nvml, "nvmlDeviceGetCurrentClocksEventReasons", None)
        if ask is not None:
            bits, _ = self._try(lambda: float(ask(self._handle)))
            if bits is not None:
                return bits
        return float(self._nvml.nvmlDeviceGetCurrentClocksThrottleReasons(self._handle))

    def _try(self, read: Callable[[], float]) -> tuple[float | None, str]:
        """What a reading gives, or why it gives nothing."""
        try:
            return float(read()), ""
        except self._nvml.NVMLError as error:
            return None, str(error)
        except AttributeError as error:  # a version of the package that lacks the call
            return None, str(error)


def _thousandth(value: float | None) -> float | None:
    return None if value is None else value / 1000
