"""The self-check for real on other providers: each in its own runtime, made once and kept."""

from __future__ import annotations

from pathlib import Path

import pytest

from pytest_ortbench.launch.software_vulkan import software_vulkan
from tests.providers import conftest as runtimes
from tests.providers.conftest import OPENVINO, QNN, WEBGPU
from tests.selfcheck.rehearsal import Checked, check


def checked_in(runtime: str, folder: Path, *arguments: str, **settings: str) -> Checked:
    cache = str(runtimes.tests_cache())
    return check(
        folder, f"--runtimes={runtime}", "--short", *arguments, ORTBENCH_CACHE=cache, **settings
    )


@pytest.mark.live
@pytest.mark.needs("network", "vulkan")
def test_webgpu_waits_and_a_loop_that_does_not_is_noticed(tmp_path: Path) -> None:
    device = software_vulkan({})
    assert device is not None
    checked = checked_in(
        WEBGPU,
        tmp_path,
        "--providers=webgpu",
        "--only=synchronisation",
        VK_ICD_FILENAMES=device.installed,
    )
    # A device in software shares the CPUs with all else that runs: on a busy machine a little may
    # be left behind the loop that waits, never as much as behind the one that does not.
    [line] = checked.certificates[0]["lines"]
    assert (line["verdict"], line["cause"]) in {("pass", "synchronised"), ("unchecked", "unclear")}
    ours, without = (amount["value"] for amount in line["amounts"])
    assert ours < without
    assert line["words"]["device"] == "webgpu:0"


@pytest.mark.heavy
@pytest.mark.needs("network", "vulkan")
def test_all_of_webgpu(tmp_path: Path) -> None:
    device = software_vulkan({})
    assert device is not None
    checked = checked_in(WEBGPU, tmp_path, "--providers=webgpu", VK_ICD_FILENAMES=device.installed)
    assert {name for name, (verdict, _) in checked.lines.items() if verdict == "pass"} >= {
        "synchronisation",
        "placement",
        "accuracy",
        "fp32",
    }
    assert checked.lines["int8"] == ("unchecked", "no int8")
    # A meter of the device is nowhere, and that of the host stands for nothing.
    assert checked.lines["memory"] == ("unchecked", "no meter of the device")
    assert checked.code == 0


@pytest.mark.heavy
@pytest.mark.needs("network")
def test_openvino(tmp_path: Path) -> None:
    checked = checked_in(OPENVINO, tmp_path, "--providers=openvino")
    assert {name for name, (verdict, _) in checked.lines.items() if verdict == "pass"} >= {
        "placement",
        "accuracy",
        "fp32",
        "callers",
        "memory",
    }
    assert checked.lines["int8"] == ("unchecked", "inside a compiler")
    assert checked.code == 0


@pytest.mark.heavy
@pytest.mark.needs("network")
def test_the_simulator_of_qnn(tmp_path: Path) -> None:
    checked = checked_in(QNN, tmp_path, "--providers=qnn:htp")
    assert {name for name, (verdict, _) in checked.lines.items() if verdict == "pass"} >= {
        "placement",
        "accuracy",
        "fp32",
    }
    # Its values lie in float16 between operators: the only line here that proves so much.
    assert checked.lines["fp16"] == ("pass", "held in float16")
    assert checked.code == 0
