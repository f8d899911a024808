"""The GPU that a provider works on, as NVML knows it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import ModuleType
from typing import Any

from pytest_ortbench.core.case import Provider
from pytest_ortbench.worker import cuda_driver
from pytest_ortbench.worker.gpus import ordinal_of, visible_gpus

#: Providers that work on NVIDIA's GPUs.
NVIDIA = ("CUDAExecutionProvider", "TensorrtExecutionProvider", "NvTensorRTRTXExecutionProvider")


@dataclass(frozen=True, slots=True, kw_only=True)
class ChosenGpu:
    """One GPU.

    Attributes:
        handle: NVML's opaque handle.
        uuid: ``GPU-…``.
    """

    handle: Any
    uuid: str


def chosen_gpu(
    nvml: ModuleType,
    provider: Provider,
    environment: Mapping[str, str],
    *,
    ask_cuda: Callable[[int], str] = cuda_driver.uuid_of,
) -> ChosenGpu:
    """Return the GPU that a provider's ``device_id`` means.

    The environment decides where it is plain. Where it is not (GPUs of several models in CUDA's
    own order), CUDA is asked.

    Args:
        nvml: The initialised library.
        provider: Its ``device_id`` counts among the visible devices.
        environment: Where ``CUDA_VISIBLE_DEVICES`` and ``CUDA_DEVICE_ORDER`` may stand.
        ask_cuda: Gives the UUID of CUDA's device of that number, empty where it can't.

    Raises:
        LookupError: if the variables hide it, name a part of a device, or leave it open which one.
    """
    visible = visible_gpus(environment)
    ordinal = ordinal_of(provider.options.get("device_id", "0"), visible)
    setting = environment.get("CUDA_VISIBLE_DEVICES")
    if ordinal < len(visible):
        gpu = visible[ordinal]
        if gpu.certain and gpu.name:
            return ChosenGpu(handle=handle_of(nvml, gpu.uuid), uuid=gpu.uuid)
        if gpu.certain:
            raise LookupError(f"{gpu.uuid} is a MIG slice, and what is read is that of its device")
        uuid = ask_cuda(ordinal)
        if not uuid:
            raise LookupError(
                f"which GPU is number {ordinal} is not known: they are of several models; "
                "set CUDA_DEVICE_ORDER=PCI_BUS_ID"
            )
        return ChosenGpu(handle=handle_of(nvml, f"GPU-{uuid}"), uuid=f"GPU-{uuid}")
    if setting is None:
        raise LookupError(f"there is no GPU number {ordinal}, NVML knows {len(visible)}")
    unknown = _unknown(setting, len(visible))
    if unknown and ordinal == len(visible):
        raise LookupError(f"CUDA_VISIBLE_DEVICES names {unknown}, which NVML does not know")
    raise LookupError(f"CUDA_VISIBLE_DEVICES={setting!r} hides device {ordinal}")


def _unknown(setting: str, shown: int) -> str:
    """The entry that ends the list of visible devices though it looks like one; else empty."""
    entries = [entry.strip() for entry in setting.split(",")]
    entry = entries[shown] if shown < len(entries) else ""
    return "" if entry.startswith("-") else entry


def handle_of(nvml: ModuleType, uuid: str) -> Any:
    """Return NVML's handle of a whole GPU by its UUID.

    Raises:
        LookupError: if NVML knows no such GPU: it is a slice of one, or hidden from us.
    """
    for index in range(nvml.nvmlDeviceGetCount()):
        handle = nvml.nvmlDeviceGetHandleByIndex(index)
        found = nvml.nvmlDeviceGetUUID(handle)
        if (found.decode() if isinstance(found, bytes) else found) == uuid:
            return handle
    raise LookupError(f"NVML knows no GPU {uuid}: a MIG slice, or one hidden from this container")
