"""Devices that are gone while something runs on them: what drivers and runtimes say of it."""

from __future__ import annotations

import re
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class LostDevice:
    """A device that can't be used any more, or not now.

    Attributes:
        words: What says so.
        what: What became of it, as a sentence.
        hint: The next step.
    """

    words: str
    what: str
    hint: str


_LOG = (
    "Measure the case again. If this happens again, read the log of the system: run 'dmesg' (on "
    "Windows, open the Event Viewer)"
)
_END = "End the program that uses it ('nvidia-smi' shows it), and run again"

_BUSY = re.compile(r"device\(s\) is/are busy or unavailable")

_LOST = re.compile(
    # Dawn, below WebGPU; Vulkan
    r"\[Device[^\n\]]*\] is lost|WebGPU device lost\b|VK_ERROR_DEVICE_LOST"
    # Direct3D: removed, hung, reset, internal error
    r"|DXGI_ERROR_(?:DEVICE_(?:REMOVED|HUNG|RESET)|DRIVER_INTERNAL_ERROR)|\b887A00(?:05|06|07|20)\b"
    r"|GPU device instance has been suspended|GPU will not respond to more commands"
    # CUDA, NVML
    r"|uncorrectable ECC error encountered|GPU is lost"
)


def lost_device(text: str, device: str = "the device") -> LostDevice | None:
    """Return what ``text`` says of a device that is gone or held by another program.

    Args:
        text: Of a driver or a runtime.
        device: What the device is called.
    """
    lost, busy = _LOST.search(text), _BUSY.search(text)
    if lost is not None:
        return LostDevice(words=lost[0], what=f"{device} was lost", hint=_LOG)
    if busy is not None:
        return LostDevice(words=busy[0], what=f"{device} is in use", hint=_END)
    return None
