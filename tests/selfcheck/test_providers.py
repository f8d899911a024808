"""The self-check for real on other providers: each in its own runtime, made once and kept.

Each provider is checked in the short form. Of the lines the tests of a change carry out those that
noise can't change; all of them are carried out by the heavy tests.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from pytest_ortbench.launch.software_vulkan import software_vulkan
from tests.providers import conftest as runtimes
from tests.providers.conftest import OPENVINO, QNN, WEBGPU
from tests.selfcheck.rehearsal import Checked, check

pytestmark = [pytest.mark.live, pytest.mark.needs("network")]

#: Why a line could not be checked where others have taken most of the machine: a device in software
#: computes on the CPUs. *Seen* at a load of 17: after 60 s a first inference is not done.
TOO_BUSY = ("timeout", "no time", "unclear")


def checked_in(runtime: str, folder: Path, *arguments: str, **settings: str) -> Checked:
    cache = str(runtimes.tests_cache())
    return check(
        folder, f"--runtimes={runtime}", "--short", *arguments, ORTBENCH_CACHE=cache, **settings
    )


def passing(checked: Checked) -> set[str]:
    return {name for name, (verdict, _) in checked.lines.items() if verdict == "pass"}


@pytest.mark.needs("vulkan")
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


def test_openvino_in_short(tmp_path: Path) -> None:
    lines = "placement,accuracy,fp32,int8,memory,device"
    checked = checked_in(OPENVINO, tmp_path, "--providers=openvino", f"--only={lines}")
    assert checked.lines == {
        "placement": ("pass", "agrees"),
        "accuracy": ("pass", "accurate"),
        "fp32": ("pass", "float32"),
        "int8": ("unchecked", "inside a compiler"),
        "memory": ("pass", "agrees"),
        "device": ("unchecked", "not told"),
    }
    assert checked.code == 0


def test_the_simulator_of_qnn_in_short(tmp_path: Path) -> None:
    lines = "synchronisation,placement,accuracy,fp32,fp16"
    checked = checked_in(QNN, tmp_path, "--providers=qnn:htp", f"--only={lines}")
    assert checked.lines == {
        "synchronisation": ("unchecked", "host memory"),
        "placement": ("pass", "agrees"),
        "accuracy": ("pass", "accurate"),
        "fp32": ("pass", "float32"),
        # Its values lie in float16 between operators: the only line here that proves so much.
        "fp16": ("pass", "held in float16"),
    }
    assert checked.code == 0


@pytest.mark.heavy
@pytest.mark.needs("vulkan")
def test_all_of_webgpu(tmp_path: Path) -> None:
    device = software_vulkan({})
    assert device is not None
    checked = checked_in(WEBGPU, tmp_path, "--providers=webgpu", VK_ICD_FILENAMES=device.installed)
    expected = {
        "synchronisation": ("pass", "synchronised"),
        "placement": ("pass", "agrees"),
        "accuracy": ("pass", "accurate"),
        "fp32": ("pass", "float32"),
        "int8": ("unchecked", "no int8"),
        # A meter of the device is nowhere, and that of the host stands for nothing.
        "memory": ("unchecked", "no meter of the device"),
    }
    found = {name: checked.lines[name] for name in expected}
    busy = {name for name, (verdict, cause) in found.items() if cause in TOO_BUSY}
    assert {name: found[name] for name in expected if name not in busy} == {
        name: line for name, line in expected.items() if name not in busy
    }
    assert "fail" not in {verdict for verdict, _ in checked.lines.values()}
    if busy:
        pytest.skip(f"this machine is too busy for {', '.join(sorted(busy))}: {checked.out}")
    assert checked.code == 0


@pytest.mark.heavy
def test_all_of_openvino(tmp_path: Path) -> None:
    checked = checked_in(OPENVINO, tmp_path, "--providers=openvino")
    assert passing(checked) >= {"placement", "accuracy", "fp32", "callers", "memory"}
    assert checked.lines["int8"] == ("unchecked", "inside a compiler")
    assert checked.code == 0


@pytest.mark.heavy
def test_all_of_the_simulator_of_qnn(tmp_path: Path) -> None:
    checked = checked_in(QNN, tmp_path, "--providers=qnn:htp")
    assert passing(checked) >= {"placement", "accuracy", "fp32", "fp16"}
    assert checked.lines["fp16"] == ("pass", "held in float16")
    assert checked.code == 0
