"""``--ort-runtimes=auto``: the distributions of ONNX Runtime that suit this machine, and why."""

from __future__ import annotations

import platform
import shutil
import sys
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

_ROOT = Path("/")
#: PCI vendor ids.
_NVIDIA, _AMD = "0x10de", "0x1002"


@dataclass(frozen=True, slots=True, kw_only=True)
class Hardware:
    """What decides which distributions suit a machine.

    Attributes:
        system: ``sys.platform``.
        machine: ``x86_64`` or ``arm64``, in this spelling; others as the system says.
        nvidia: How an NVIDIA GPU was found; empty without one.
        amd: Likewise for an AMD GPU.
        qualcomm: Likewise for a Qualcomm processor.
        ascend: Likewise for a Huawei Ascend device.
    """

    system: str
    machine: str
    nvidia: str = ""
    amd: str = ""
    qualcomm: str = ""
    ascend: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class SuitingRuntime:
    """One runtime that suits a machine.

    Attributes:
        spec: As one would write it.
        reason: Why, for people.
    """

    spec: str
    reason: str


def suiting_runtimes(hardware: Hardware, here: Collection[str] = ()) -> list[SuitingRuntime]:
    """Return the runtimes that suit a machine, ``current`` first.

    Args:
        hardware: The machine.
        here: Distributions in ``current``, which need no runtime of their own.
    """
    suiting = [SuitingRuntime(spec="current", reason="the interpreter that runs pytest")]
    for distribution, spec, reason in _suiting(hardware):
        if distribution not in here:
            suiting.append(SuitingRuntime(spec=spec, reason=reason))
    return suiting


def _suiting(hardware: Hardware) -> list[tuple[str, str, str]]:
    """Distribution that has the provider, specification, reason."""
    x86 = hardware.machine == "x86_64"
    linux, windows = hardware.system == "linux", hardware.system == "win32"
    rows = []
    if hardware.system == "darwin":
        rows.append(("onnxruntime", "onnxruntime", "the plain one has CoreML on macOS"))
    if hardware.nvidia and (linux or windows):
        rows.append(
            ("onnxruntime-gpu", "onnxruntime-gpu[cuda,cudnn]", f"NVIDIA GPU ({hardware.nvidia})")
        )
    if hardware.amd and linux:
        rows.append(("onnxruntime-migraphx", "onnxruntime-migraphx", f"AMD GPU ({hardware.amd})"))
    if windows:
        rows.append(("onnxruntime-directml", "onnxruntime-directml", "DirectML on Windows"))
    if x86 and (linux or windows):
        rows.append(("onnxruntime-openvino", "onnxruntime-openvino", "OpenVINO on an x86-64 CPU"))
    if hardware.qualcomm:
        qnn = f"Qualcomm processor ({hardware.qualcomm})"
        rows.append(("onnxruntime-qnn", "onnxruntime+onnxruntime-qnn", qnn))
    elif x86 and linux:
        qnn = "QNN's simulator on x86-64 Linux"
        rows.append(("onnxruntime-qnn", "onnxruntime+onnxruntime-qnn", qnn))
    if hardware.ascend:
        rows.append(("onnxruntime-cann", "onnxruntime-cann", f"Ascend device ({hardware.ascend})"))
    return rows


def this_hardware(root: Path = _ROOT) -> Hardware:
    """Look at this machine.

    Args:
        root: Where ``dev``, ``proc`` and ``sys`` are; tests pass a folder.
    """
    machine = platform.machine().lower()
    spelt = {"amd64": "x86_64", "x64": "x86_64", "aarch64": "arm64"}.get(machine, machine)
    return Hardware(
        system=sys.platform,
        machine=spelt,
        nvidia=_nvidia(root),
        amd=_first(root, "dev/kfd") or _display(root, _AMD),
        qualcomm=_qualcomm(root),
        ascend=_first(root, "dev/davinci0", "dev/davinci_manager"),
    )


def _nvidia(root: Path) -> str:
    device = _first(root, "dev/nvidia0", "proc/driver/nvidia/version", "dev/dxg")
    if device == "/dev/dxg":  # Windows' GPUs within its Linux; only NVIDIA's tool tells whose
        device = ""
    return device or _display(root, _NVIDIA) or shutil.which("nvidia-smi") or ""


def _qualcomm(root: Path) -> str:
    compatible = root / "proc/device-tree/compatible"
    try:
        names = compatible.read_bytes().decode("ascii", "replace").split("\0")
    except OSError:
        names = [platform.processor()]
    return next((name for name in names if "qcom" in name or "Qualcomm" in name), "")


def _display(root: Path, vendor: str) -> str:
    """The PCI device of a display controller of ``vendor``."""
    for device in sorted((root / "sys/bus/pci/devices").glob("*")):
        try:
            kind = (device / "class").read_text().strip()
            if kind.startswith("0x03") and (device / "vendor").read_text().strip() == vendor:
                return f"PCI {device.name}"
        except OSError:
            continue
    return ""


def _first(root: Path, *names: str) -> str:
    return next((f"/{name}" for name in names if (root / name).exists()), "")
