"""Devices that are programs: what computes on the CPU in the place of a GPU or an accelerator."""

from __future__ import annotations

import platform
import re
from pathlib import Path

from pytest_ortbench.core.case import Provider
from pytest_ortbench.core.provider_kinds import WEBGPU

_MAPS = Path("/proc/self/maps")

#: Libraries of Vulkan's drivers: those that compute on the CPU, with what they are called, ...
_SOFTWARE = (
    (re.compile(r"libvk_swiftshader\."), "SwiftShader"),
    (re.compile(r"libvulkan_lvp\."), "llvmpipe"),
)
#: ... and those of hardware.
_HARDWARE = re.compile(
    r"libvulkan_(?!lvp\b)\w+\.|libGLX_nvidia\.|libEGL_nvidia\.|amdvlk\d*\.|libnvidia-vulkan"
)
#: Devices of providers and engines that Vulkan drives, by alias.
_VULKAN_DEVICES = {"ggml": "gpu", "iree": "vulkan"}
_SIMULATOR = re.compile(r"libQnnHtp\.|QnnHtp\.dll")


def software_device(provider: Provider, maps: Path = _MAPS) -> str:
    """Return what computes in the place of a device, empty where that is not known.

    Told by the libraries that this process has loaded. Where drivers of hardware are among them,
    nobody tells which of them the provider took.

    Args:
        provider: Whose sessions exist.
        maps: The files that this process has mapped.
    """
    found = (_in_place_of(link, maps) for link in provider.links)
    return next(filter(None, found), "")


def _in_place_of(provider: Provider, maps: Path) -> str:
    on_vulkan = provider.device == _VULKAN_DEVICES.get(provider.alias, "none")
    if provider.name == WEBGPU or on_vulkan:
        libraries = _libraries(maps)
        if any(_HARDWARE.match(name) for name in libraries):
            return ""
        return next((title for is_one, title in _SOFTWARE if any(map(is_one.match, libraries))), "")
    if provider.name == "QNNExecutionProvider" and platform.machine() in ("x86_64", "AMD64"):
        loaded = any(_SIMULATOR.match(name) for name in _libraries(maps))
        return "Qualcomm's simulator of HTP" if loaded else ""
    return ""


def _libraries(maps: Path) -> frozenset[str]:
    """Names of the files that this process has mapped; none where the system does not tell."""
    try:
        lines = maps.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return frozenset()
    return frozenset(line.rpartition("/")[2] for line in lines if "/" in line)
