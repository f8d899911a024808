"""Facts about machine and working tree."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from pytest_ortbench.launch.machine import commit, fingerprint

_CPUINFO = """\
processor\t: 0
model name\t: Example CPU 9000 @ 3.00GHz
cpu MHz\t\t: 2999.5
flags\t\t: fpu smep avx avx2 avx512f avx512_vnni avx_vnni amx_int8 hypervisor

processor\t: 1
model name\t: Other
"""


def lay(root: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def test_facts_of_a_virtual_machine_with_a_quota(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1, 2, 3}, raising=False)
    topology = {
        f"sys/devices/system/cpu/cpu{cpu}/topology/core_cpus_list": "0-1" if cpu < 2 else "2-3"
        for cpu in range(4)
    }
    lay(
        tmp_path,
        {
            "proc/cpuinfo": _CPUINFO,
            "proc/meminfo": "MemTotal:       16384000 kB\nMemFree: 1 kB\n",
            "proc/loadavg": "0.50 0.40 0.30 1/100 1234\n",
            "proc/self/cgroup": "0::/\n",
            "sys/fs/cgroup/cpu.max": "150000 100000\n",
            "sys/devices/system/cpu/online": "0-3\n",
            "sys/class/dmi/id/sys_vendor": "QEMU\n",
            "sys/class/dmi/id/product_name": "Standard PC\n",
            "sys/devices/system/cpu/cpu0/cpufreq/scaling_governor": "performance\n",
            **topology,
        },
    )
    machine = fingerprint(tmp_path)
    assert machine.host
    assert machine.stable["cpu"] == "Example CPU 9000 @ 3.00GHz"
    assert machine.stable["cpu_flags"] == "amx_int8 avx avx2 avx512_vnni avx512f avx_vnni"
    assert machine.stable["cpu_quota"] == "1.5"
    assert machine.stable["cpus_usable"] == "2"
    assert machine.stable["cores_usable"] == "2"
    assert machine.stable["memory"] == "15.6 GiB"
    assert machine.stable["virtualisation"] == "QEMU Standard PC"
    assert machine.volatile == {
        "load": "0.50 0.40 0.30",
        "cpu_mhz": "2999.5",
        "governor": "performance",
    }


def test_an_arm_cpu_is_named_by_its_part(tmp_path: Path) -> None:
    lay(
        tmp_path,
        {
            "proc/cpuinfo": "CPU implementer\t: 0x41\nCPU part\t: 0xd40\n"
            "Features\t: fp asimd asimdhp fphp sve i8mm bf16\n"
        },
    )
    stable = fingerprint(tmp_path).stable
    assert stable["cpu"] == "ARM implementer 0x41 part 0xd40"
    assert stable["cpu_flags"] == "asimd asimdhp bf16 fphp i8mm sve"


ARM = {"proc/cpuinfo": "CPU implementer\t: 0x41\nFeatures\t: fp asimd\n"}
X86 = {"proc/cpuinfo": "flags\t\t: fpu avx2\n"}
DMI = "sys/class/dmi/id/"
TREE = "sys/firmware/devicetree/base/"


@pytest.mark.parametrize(
    ("files", "kind"),
    [
        (X86, "none seen"),
        (X86 | {"var/run/secrets/kubernetes.io/token": ""}, "container"),
        # A processor of this kind has no flag that says so: what is not known is not "none seen".
        (ARM, "unknown"),
        (ARM | {".dockerenv": ""}, "container"),
        (ARM | {DMI + "sys_vendor": "Amazon EC2", DMI + "product_name": "c7g.large"},
         "Amazon EC2 c7g.large"),
        (ARM | {DMI + "sys_vendor": "Amazon EC2", DMI + "product_name": "c7g.metal"}, "none seen"),
        (ARM | {DMI + "sys_vendor": "Microsoft Corporation",
                DMI + "product_name": "Virtual Machine"}, "Microsoft Corporation Virtual Machine"),
        (ARM | {DMI + "sys_vendor": "Ampere", DMI + "product_name": "Altra"}, "none seen"),
        (ARM | {TREE + "model": "Example Board 5"}, "none seen"),
        (ARM | {TREE + "model": "x", TREE + "compatible": "linux,dummy-virt"}, "virtual machine"),
        (ARM | {TREE + "hypervisor/compatible": "xen,xen", "sys/hypervisor/type": "xen\n"}, "xen"),
    ],
)  # fmt: skip
def test_a_machine_is_called_bare_only_where_it_would_say_otherwise(
    files: dict[str, str], kind: str, tmp_path: Path
) -> None:
    lay(tmp_path, files)
    assert fingerprint(tmp_path).stable["virtualisation"] == kind


def test_two_looks_at_this_machine_agree() -> None:
    assert fingerprint().stable == fingerprint().stable


def git(folder: Path, *arguments: str) -> None:
    subprocess.run(
        ["git", "-C", str(folder), "-c", "user.name=n", "-c", "user.email=e@x", *arguments],
        check=True,
        capture_output=True,
    )


@pytest.mark.live
@pytest.mark.needs("git")
def test_a_working_tree_and_its_state(tmp_path: Path) -> None:
    assert commit(tmp_path / "missing") is None
    git(tmp_path, "init", "-b", "trunk")
    assert commit(tmp_path) is None
    (tmp_path / "a").write_text("1")
    git(tmp_path, "add", "a")
    git(tmp_path, "commit", "-m", "one")
    found = commit(tmp_path)
    assert found is not None
    assert len(found.revision) == 40
    assert (found.branch, found.dirty) == ("trunk", False)
    (tmp_path / "untracked").write_text("results lie here")
    assert commit(tmp_path) == found
    (tmp_path / "a").write_text("2")
    changed = commit(tmp_path)
    assert changed is not None
    assert changed.dirty
    git(tmp_path, "checkout", "--detach")
    detached = commit(tmp_path)
    assert detached is not None
    assert detached.branch == ""
