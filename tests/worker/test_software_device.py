"""Programs on the CPU in the place of a device, told by the libraries that a process has loaded."""

from __future__ import annotations

from pathlib import Path

import pytest

from pytest_ortbench.planning.providers import parse_provider
from pytest_ortbench.worker import software_device as module
from pytest_ortbench.worker.software_device import software_device

_LINE = "7f1c2a000000-7f1c2a200000 r-xp 00000000 08:01 1234    {path}\n"
SWIFTSHADER = "/usr/lib/chromium/libvk_swiftshader.so"
LLVMPIPE = "/usr/lib/x86_64-linux-gnu/libvulkan_lvp.so"


@pytest.mark.parametrize(
    ("alias", "libraries", "device"),
    [
        ("webgpu", [SWIFTSHADER], "SwiftShader"),
        ("webgpu", [LLVMPIPE], "llvmpipe"),
        ("ggml:gpu", [LLVMPIPE], "llvmpipe"),
        ("iree:vulkan", [SWIFTSHADER], "SwiftShader"),
        ("iree", [SWIFTSHADER], ""),
        # Nobody tells which of them is used.
        ("webgpu", [LLVMPIPE, "/usr/lib/libGLX_nvidia.so.0"], ""),
        ("webgpu", [LLVMPIPE, "/usr/lib/libvulkan_radeon.so"], ""),
        ("webgpu", ["/usr/lib/libvulkan_intel.so"], ""),
        ("webgpu", ["/usr/lib/libvulkan.so.1"], ""),
        ("ggml", [LLVMPIPE], ""),
        ("cpu", [SWIFTSHADER], ""),
    ],
)
def test_the_driver_tells(tmp_path: Path, alias: str, libraries: list[str], device: str) -> None:
    maps = tmp_path / "maps"
    lines = [_LINE.format(path=path) for path in ["[heap]", *libraries]]
    maps.write_text("".join(lines), encoding="utf-8")
    assert software_device(parse_provider(alias), maps) == device


@pytest.mark.parametrize(
    ("machine", "device"), [("x86_64", "Qualcomm's simulator of HTP"), ("aarch64", "")]
)
def test_htp_is_a_simulator_on_x86(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, machine: str, device: str
) -> None:
    monkeypatch.setattr(module.platform, "machine", lambda: machine)
    maps = tmp_path / "maps"
    maps.write_text(_LINE.format(path="/site/onnxruntime_qnn/libQnnHtp.so"), encoding="utf-8")
    assert software_device(parse_provider("qnn:htp"), maps) == device


def test_where_the_system_does_not_tell_nothing_is_claimed(tmp_path: Path) -> None:
    assert software_device(parse_provider("webgpu"), tmp_path / "none") == ""
