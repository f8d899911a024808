"""The GPU that a provider works on, as NVML knows it."""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import ModuleType
from typing import Any

from pytest_ortbench.core.case import Provider
from pytest_ortbench.worker.gpus import Gpu, NoSuchGpu, handles, ordinal_of, visible_gpus

_UUID_BYTES = 16


def uuid_of(ordinal: int) -> str:
    """Return the UUID of CUDA's device number ``ordinal``, without ``GPU-`` or ``MIG-``.

    ``CUDA_VISIBLE_DEVICES`` and ``CUDA_DEVICE_ORDER`` are read by the driver, once a process.
    Without the latter the fastest GPU is the first one, and what is fastest only the driver knows.

    Nothing is left behind but an initialised driver: no context, no memory on the device.

    Returns:
        ``8f6d3f1c-…``; empty where there is no driver, or it has no such device.
    """
    try:
        driver = ctypes.CDLL("nvcuda.dll" if sys.platform == "win32" else "libcuda.so.1")
        # The second version tells slices of a device from the device; drivers since 11.4 have it.
        newest = hasattr(driver, "cuDeviceGetUuid_v2")
        read = driver["cuDeviceGetUuid_v2" if newest else "cuDeviceGetUuid"]
        device, raw = ctypes.c_int(), (ctypes.c_ubyte * _UUID_BYTES)()
        steps = (
            lambda: driver.cuInit(0),
            lambda: driver.cuDeviceGet(ctypes.byref(device), ordinal),
            lambda: read(raw, device),
        )
        if any(step() for step in steps):  # type: ignore[no-untyped-call]  # ctypes has none
            return ""
    except (OSError, AttributeError):
        return ""
    digits = bytes(raw).hex()
    return "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]))


@dataclass(frozen=True, slots=True, kw_only=True)
class ChosenGpu:
    """One GPU.

    Attributes:
        handle: NVML's opaque handle.
        uuid: ``GPU-…``.
    """

    handle: Any
    uuid: str


def number_of(
    device: str, visible: Sequence[Gpu], *, ask_cuda: Callable[[int], str] = uuid_of
) -> int:
    """Return CUDA's number of the GPU that an index or a (beginning of a) UUID means.

    Raises:
        NoSuchGpu: if none, or several, are meant, or nobody knows which number it has.
    """
    number = ordinal_of(device, visible)
    if device.isdigit() or visible[number].certain:
        return number
    meant = visible[number].uuid
    for other in range(len(visible)):
        if f"GPU-{ask_cuda(other)}" == meant:
            return other
    raise NoSuchGpu(
        f"the CUDA number of {meant} is not known, because there are GPUs of several models; set "
        "CUDA_DEVICE_ORDER=PCI_BUS_ID"
    )


def chosen_gpu(
    nvml: ModuleType,
    provider: Provider,
    environment: Mapping[str, str],
    *,
    ask_cuda: Callable[[int], str] = uuid_of,
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
        LookupError: if the variables hide it, it is cut into slices, or it is left open which one
            is meant.
    """
    visible = visible_gpus(environment)
    ordinal = number_of(provider.options.get("device_id", "0"), visible, ask_cuda=ask_cuda)
    setting = environment.get("CUDA_VISIBLE_DEVICES")
    if ordinal < len(visible):
        gpu = visible[ordinal]
        if gpu.certain and gpu.name:
            return _whole(nvml, gpu.uuid)
        if gpu.certain:
            raise LookupError(f"{gpu.uuid} is a MIG slice, and what is read is that of its device")
        uuid = ask_cuda(ordinal)
        if not uuid:
            raise LookupError(
                f"it is not known which GPU has the number {ordinal}, because there are GPUs of "
                "several models; set CUDA_DEVICE_ORDER=PCI_BUS_ID"
            )
        return _whole(nvml, f"GPU-{uuid}")
    if setting is None:
        raise LookupError(f"GPU number {ordinal} does not exist; NVML knows {len(visible)}")
    unknown = _unknown(setting, len(visible))
    if unknown and ordinal == len(visible):
        raise LookupError(f"CUDA_VISIBLE_DEVICES names {unknown}, which NVML does not know")
    raise LookupError(f"CUDA_VISIBLE_DEVICES={setting!r} hides device {ordinal}")


def _whole(nvml: ModuleType, uuid: str) -> ChosenGpu:
    """A GPU of which a process gets all; what is read of one in slices is that of all slices."""
    handle = handle_of(nvml, uuid)
    try:
        sliced = nvml.nvmlDeviceGetMigMode(handle)[0] == nvml.NVML_DEVICE_MIG_ENABLE
    except nvml.NVMLError:  # it can't be cut
        sliced = False
    if sliced:
        raise LookupError(f"{uuid} is cut into MIG slices, and what is read is that of the device")
    return ChosenGpu(handle=handle, uuid=uuid)


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
    for handle in handles(nvml):
        told = nvml.nvmlDeviceGetUUID(handle)
        if (told.decode() if isinstance(told, bytes) else told) == uuid:
            return handle
    raise LookupError(f"NVML knows no GPU {uuid}: a MIG slice, or one hidden from this container")
