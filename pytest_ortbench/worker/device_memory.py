"""Device memory through NVML: this process' share where it is visible, else the device's rise."""

from __future__ import annotations

import os
from collections.abc import Mapping
from types import ModuleType
from typing import Any

from pytest_ortbench.core.case import Provider
from pytest_ortbench.core.provider_kinds import NVIDIA
from pytest_ortbench.worker.gpu_choice import chosen_gpu


class DeviceMemory:
    """Reads the memory in use on the device that a provider works on.

    Attributes:
        reason: Why nothing can be read; empty if it can.
        device: UUID of the device, empty if nothing can be read.

    Args:
        provider: The asked provider; its ``device_id`` counts among the visible devices.
        environment: Where ``CUDA_VISIBLE_DEVICES`` may stand.
    """

    def __init__(self, provider: Provider, environment: Mapping[str, str] | None = None) -> None:
        self.reason = ""
        self.device = ""
        self._handle: Any = None  # an opaque handle of NVML
        self._used_before: int | None = None
        self._context: tuple[str, int] | None = None
        self._neighbours: int | None = None
        on_gpu = [link for link in provider.links if link.name in NVIDIA]
        if not on_gpu:
            self.reason = f"the device memory of {provider.name} can't be read"
            return
        provider = on_gpu[0]
        environment = os.environ if environment is None else environment
        try:
            import pynvml  # optional in a measured interpreter
        except ImportError:
            self.reason = "pynvml is not installed (pip install nvidia-ml-py)"
            return
        self._nvml: ModuleType = pynvml
        try:
            pynvml.nvmlInit()
            gpu = chosen_gpu(pynvml, provider, environment)
            self._handle, self.device = gpu.handle, gpu.uuid
            self._used_before = int(pynvml.nvmlDeviceGetMemoryInfo(self._handle).used)
            # Whoever computes there now can't be us: no context exists yet. Later it may be, since
            # in a container process ids need not be ours.
            processes = self._processes()
            if processes is not None:
                self._neighbours = len(
                    [process for process in processes if process.pid != os.getpid()]
                )
        except (pynvml.NVMLError, LookupError) as error:
            self.reason = f"NVML: {error}"
            self._handle = None

    def note_context(self) -> None:
        """Remember what the bare device context takes, before the session exists."""
        self._context = self._in_use()

    def read(self) -> tuple[int | None, str]:
        """Return the bytes in use over the bare context, and how they were read or why not."""
        if self._handle is None:
            return None, self.reason
        now = self._in_use()
        if now is None:
            return None, self.reason
        how, used = now
        # Only differences of one kind mean anything.
        bare = self._context[1] if self._context is not None and self._context[0] == how else 0
        return max(0, used - bare), f"{how}, over {bare} bytes of the bare context"

    def neighbours(self) -> int | None:
        """Return how many other processes computed on the device, ``None`` if it can't be read."""
        if self._handle is None or self._neighbours is None:
            return None
        pids = {process.pid for process in self._processes() or ()}
        if os.getpid() not in pids:
            return self._neighbours
        return max(self._neighbours, len(pids) - 1)

    def _processes(self) -> list[Any] | None:
        """Who computes on the device; ``None`` where the driver does not tell."""
        try:
            return list(self._nvml.nvmlDeviceGetComputeRunningProcesses(self._handle))
        except self._nvml.NVMLError:
            return None

    def _in_use(self) -> tuple[str, int] | None:
        if self._handle is None:
            return None
        nvml = self._nvml
        try:
            for process in self._processes() or ():
                if process.pid == os.getpid() and process.usedGpuMemory is not None:
                    return "NVML, this process", int(process.usedGpuMemory)
            used = int(nvml.nvmlDeviceGetMemoryInfo(self._handle).used)
        except nvml.NVMLError as error:
            self.reason = f"NVML: {error}"
            return None
        # In containers process ids differ, under WDDM there are none.
        return "NVML, rise of the whole device", max(0, used - (self._used_before or 0))
