"""A device for WebGPU in software: what is there, and what is left to do."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from pytest_ortbench.launch import software_vulkan as module
from pytest_ortbench.launch.software_vulkan import SoftwareVulkan, software_vulkan, steps

MANIFEST = "/usr/lib/chromium/vk_swiftshader_icd.json"


@pytest.mark.parametrize(
    ("found", "words", "others"),
    [
        (
            SoftwareVulkan(has_loader=False),
            ["apt-get install libvulkan1 chromium", f"VK_ICD_FILENAMES={MANIFEST}"],
            ["does not exist"],
        ),
        (
            SoftwareVulkan(has_loader=True),
            ["apt-get install chromium", f"VK_ICD_FILENAMES={MANIFEST}"],
            ["libvulkan1"],
        ),
        (
            SoftwareVulkan(has_loader=True, installed="/opt/google/chrome/icd.json"),
            ["VK_ICD_FILENAMES=/opt/google/chrome/icd.json"],
            ["apt-get"],
        ),
        (
            SoftwareVulkan(
                has_loader=True,
                variable="VK_DRIVER_FILES",
                named=("/no.json",),
                missing=("/no.json",),
            ),
            ["/no.json, which does not exist", "chromium", f"VK_DRIVER_FILES={MANIFEST}"],
            ["VK_ICD_FILENAMES"],
        ),
        (
            SoftwareVulkan(has_loader=False, variable="VK_ICD_FILENAMES", named=(MANIFEST,)),
            ["apt-get install libvulkan1"],
            ["chromium ", "set VK"],
        ),
        (
            SoftwareVulkan(
                has_loader=True, variable="VK_ICD_FILENAMES", named=(MANIFEST,), installed=MANIFEST
            ),
            [f"VK_ICD_FILENAMES names {MANIFEST}"],
            ["apt-get", "set VK"],
        ),
    ],
    ids=["nothing", "no driver", "not named", "names none", "no loader", "ready"],
)
def test_what_is_left_to_do(found: SoftwareVulkan, words: list[str], others: list[str]) -> None:
    text = "\n".join(steps(found))
    assert [word for word in words if word not in text] == []
    assert [word for word in others if word in text] == []


@pytest.mark.skipif(sys.platform != "linux", reason="drivers are manifests on Linux")
def test_variables_and_browsers_are_looked_at(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_loads", lambda _: False)
    assert software_vulkan({}, tmp_path) == SoftwareVulkan(has_loader=False)
    manifest = tmp_path / MANIFEST.lstrip("/")
    manifest.parent.mkdir(parents=True)
    manifest.write_text("{}", encoding="utf-8")
    monkeypatch.setattr(module, "_loads", lambda _: True)
    found = software_vulkan({"VK_ICD_FILENAMES": f"{manifest}:/nowhere.json"}, tmp_path)
    assert found == SoftwareVulkan(
        has_loader=True,
        variable="VK_ICD_FILENAMES",
        named=(str(manifest), "/nowhere.json"),
        missing=("/nowhere.json",),
        installed=MANIFEST,
    )
    assert not found.is_ready
    # The newer variable wins, set and empty is not set.
    both = {"VK_ICD_FILENAMES": "/a.json", "VK_DRIVER_FILES": str(manifest)}
    newer = software_vulkan(both, tmp_path)
    assert newer is not None
    assert (newer.variable, newer.is_ready) == ("VK_DRIVER_FILES", True)
    older = software_vulkan({**both, "VK_DRIVER_FILES": ""}, tmp_path)
    assert older is not None
    assert older.variable == "VK_ICD_FILENAMES"
