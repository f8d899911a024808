"""Devices that are gone while something runs on them: what drivers and runtimes say of it."""

from __future__ import annotations

import re

HINT = (
    "The driver reset the device, it was removed, or another program holds it. The log of the "
    "system says more: 'dmesg' on Linux, the Event Viewer on Windows. Measure the case again. If "
    "this happens again, measure smaller inputs"
)

_LOST = re.compile(
    # Dawn, below WebGPU; Vulkan
    r"\[Device[^\n\]]*\] is lost|WebGPU device lost\b|VK_ERROR_DEVICE_LOST"
    # Direct3D: removed, hung, reset, internal error
    r"|DXGI_ERROR_(?:DEVICE_(?:REMOVED|HUNG|RESET)|DRIVER_INTERNAL_ERROR)|\b887A00(?:05|06|07|20)\b"
    r"|GPU device instance has been suspended|GPU will not respond to more commands"
    # CUDA, NVML
    r"|device\(s\) is/are busy or unavailable|uncorrectable ECC error encountered|GPU is lost"
)


def lost_device(text: str) -> str:
    """Return the words in ``text`` that say that a device is gone, empty if none do."""
    match = _LOST.search(text)
    return match.group(0) if match else ""
