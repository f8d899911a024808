"""A device for WebGPU in software: whether this machine has one, and the way to it.

Linux only. Vulkan's loader reads which drivers there are from manifests, those of a variable in
place of the installed ones. *Seen* with onnxruntime-webgpu 1.27: it takes SwiftShader, which
browsers bring, and refuses llvmpipe of Mesa 22.3.
"""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from pytest_ortbench.core.device_variables import MANIFEST_VARIABLES

_ROOT = Path("/")
#: Where browsers keep SwiftShader's manifest: Debian and Arch, Fedora, Google's packages.
_PLACES = (
    "usr/lib/chromium/vk_swiftshader_icd.json",
    "usr/lib64/chromium-browser/vk_swiftshader_icd.json",
    "opt/google/chrome/vk_swiftshader_icd.json",
)
#: The package that brings each part on Debian, and the manifest that lies there then.
_LOADER_PACKAGE, _DRIVER_PACKAGE = "libvulkan1", "chromium"
_DEBIAN = f"/{_PLACES[0]}"


@dataclass(frozen=True, slots=True, kw_only=True)
class SoftwareVulkan:
    """What a machine has for Vulkan in software.

    Attributes:
        has_loader: Whether the loader of Vulkan's drivers is installed.
        variable: The variable that names manifests; empty if none is set.
        named: The manifests that it names.
        missing: Those of them that do not exist.
        installed: Manifest of SwiftShader that lies where browsers keep it; empty without one.
    """

    has_loader: bool
    variable: str = ""
    named: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    installed: str = ""

    @property
    def is_ready(self) -> bool:
        """Whether nothing is left to do: loader and named manifests are there."""
        return self.has_loader and bool(self.named) and not self.missing


def software_vulkan(
    environment: Mapping[str, str] | None = None, root: Path = _ROOT
) -> SoftwareVulkan | None:
    """Look at this machine; ``None`` where it is not Linux.

    Args:
        environment: Where variables stand; this process's own by default.
        root: Where browsers are installed; tests pass a folder.
    """
    if sys.platform != "linux":
        return None
    environment = os.environ if environment is None else environment
    variable = next((name for name in MANIFEST_VARIABLES if environment.get(name)), "")
    named = tuple(path for path in environment.get(variable, "").split(os.pathsep) if path)
    return SoftwareVulkan(
        has_loader=_loads("libvulkan.so.1"),
        variable=variable,
        named=named,
        missing=tuple(path for path in named if not Path(path).exists()),
        installed=next((f"/{place}" for place in _PLACES if (root / place).is_file()), ""),
    )


def _loads(library: str) -> bool:
    """Whether this process finds a library."""
    try:
        ctypes.CDLL(library)
    except OSError:
        return False
    return True


def steps(found: SoftwareVulkan) -> tuple[str, ...]:
    """Say what is there, and what to do for a device in software, one sentence a step."""
    said = []
    if found.missing:
        said.append(f"{found.variable} names {', '.join(found.missing)}, which does not exist")
    elif found.named:
        said.append(f"{found.variable} names {', '.join(found.named)}")
    packages = [] if found.has_loader else [_LOADER_PACKAGE]
    if not found.is_ready:
        manifest = found.installed or _DEBIAN
        if not found.installed and (found.missing or not found.named):
            packages.append(_DRIVER_PACKAGE)
        if packages:
            said.append(f"on Debian: apt-get install {' '.join(packages)}")
        if found.missing or not found.named:
            variable = found.variable or MANIFEST_VARIABLES[-1]
            said.append(f"set {variable}={manifest}: SwiftShader computes on the CPU")
    said.append("measure: --ort-providers=webgpu --ort-runtimes=onnxruntime-webgpu")
    return tuple(said)
