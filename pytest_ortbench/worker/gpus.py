"""NVIDIA GPUs that this interpreter's runtime could use: which one an index or a UUID means.

CUDA numbers only the devices that ``CUDA_VISIBLE_DEVICES`` leaves, in its order, and by default
numbers the fastest first, while NVML always goes by the PCI bus. ``CUDA_DEVICE_ORDER=PCI_BUS_ID``
makes both agree; without it the numbers are certain only where all devices are of one model.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import ModuleType
from typing import Any

#: Beginnings of a device's name in ``CUDA_VISIBLE_DEVICES`` that are no index.
_UUID = "GPU-"
_SLICE = "MIG-"


@dataclass(frozen=True, slots=True, kw_only=True)
class Gpu:
    """One visible GPU.

    Attributes:
        ordinal: CUDA's number of it, ``device_id`` in provider options.
        uuid: ``GPU-…``, or ``MIG-…`` for a slice.
        name: Its model, empty for a slice.
        certain: Whether the ordinal surely means this one.
    """

    ordinal: int
    uuid: str
    name: str
    certain: bool = True


class NoSuchGpu(LookupError):
    """An index or a UUID that means no device that this process may use."""


def gpus() -> dict[str, str]:
    """Return name and driver by UUID; empty where NVML or pynvml is not there."""
    nvml = _nvml()
    if nvml is None:
        return {}
    try:
        driver = _text(nvml.nvmlSystemGetDriverVersion())
        return {uuid: f"{name}, driver {driver}" for uuid, name in _all(nvml)}
    except nvml.NVMLError:
        return {}


def visible_gpus(environment: Mapping[str, str] | None = None) -> list[Gpu]:
    """Return the GPUs that CUDA shows this process, in CUDA's order; empty without NVML.

    Args:
        environment: Where ``CUDA_VISIBLE_DEVICES`` may stand; this process' own by default.
    """
    nvml = _nvml()
    if nvml is None:
        return []
    try:
        return order(_all(nvml), os.environ if environment is None else environment)
    except nvml.NVMLError:
        return []


def order(known: list[tuple[str, str]], environment: Mapping[str, str]) -> list[Gpu]:
    """Put GPUs into CUDA's order.

    Args:
        known: UUID and model of each, in NVML's order.
        environment: Where ``CUDA_VISIBLE_DEVICES`` and ``CUDA_DEVICE_ORDER`` may stand.
    """
    by_bus = environment.get("CUDA_DEVICE_ORDER", "").upper() == "PCI_BUS_ID"
    certain = by_bus or len({name for _, name in known}) <= 1
    visible = environment.get("CUDA_VISIBLE_DEVICES")
    if visible is None:
        return [
            Gpu(ordinal=index, uuid=uuid, name=name, certain=certain)
            for index, (uuid, name) in enumerate(known)
        ]
    gpus: list[Gpu] = []
    for entry in (part.strip() for part in visible.split(",")):
        gpu = _entry(entry, len(gpus), known, certain)
        if gpu is None or gpu.uuid in {earlier.uuid for earlier in gpus}:
            # CUDA ignores everything from the first entry on that names no device, and shows none
            # at all where one is named twice.
            return [] if gpu is not None else gpus
        gpus.append(gpu)
    return gpus


def _entry(entry: str, ordinal: int, known: list[tuple[str, str]], certain: bool) -> Gpu | None:
    if entry.startswith(_SLICE):
        return Gpu(ordinal=ordinal, uuid=entry, name="")
    if entry.startswith(_UUID):
        # CUDA accepts beginnings that mean one device only.
        fitting = [(uuid, name) for uuid, name in known if uuid.startswith(entry)]
        if len(fitting) != 1:
            return None
        return Gpu(ordinal=ordinal, uuid=fitting[0][0], name=fitting[0][1])
    if entry.isascii() and entry.isdigit() and int(entry) < len(known):
        uuid, name = known[int(entry)]
        return Gpu(ordinal=ordinal, uuid=uuid, name=name, certain=certain)
    return None


def ordinal_of(device: str, visible: Sequence[Gpu]) -> int:
    """Return the place among the visible GPUs of that which an index or a UUID means.

    The beginning of a UUID will do. It is CUDA's number where that is :attr:`Gpu.certain`.

    Raises:
        NoSuchGpu: if none, or several, are meant.
    """
    if device.isascii() and device.isdigit():
        return int(device)
    fitting = [gpu for gpu in visible if gpu.uuid.lower().startswith(device.lower())]
    if len(fitting) == 1:
        return fitting[0].ordinal
    shown = ", ".join(gpu.uuid for gpu in visible) or "none (NVML is not readable, or none is here)"
    many = "means several of the GPUs" if fitting else "is not one of the GPUs"
    raise NoSuchGpu(f"{device} {many} that CUDA shows this process: {shown}")


def _all(nvml: ModuleType) -> list[tuple[str, str]]:
    return [
        (_text(nvml.nvmlDeviceGetUUID(handle)), _text(nvml.nvmlDeviceGetName(handle)))
        for handle in handles(nvml)
    ]


def handles(nvml: ModuleType) -> list[Any]:
    """Return NVML's opaque handles of all GPUs that it lets us have.

    It counts those, too, that fell off the bus or that a container may not use.
    """
    usable: list[Any] = []
    for index in range(nvml.nvmlDeviceGetCount()):
        try:
            usable.append(nvml.nvmlDeviceGetHandleByIndex(index))
        except nvml.NVMLError:
            continue
    return usable


def _nvml() -> ModuleType | None:
    try:
        import pynvml  # optional in a measured interpreter
    except ImportError:
        return None
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError:
        return None
    return pynvml  # type: ignore[no-any-return]  # the package has no types


def _text(value: str | bytes) -> str:
    # Old versions of pynvml return bytes.
    return value.decode() if isinstance(value, bytes) else value
