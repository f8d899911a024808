"""Facts about the machine and the working tree that a run is made on."""

from __future__ import annotations

import os
import platform
import re
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from pytest_ortbench.core.cpus import allowance, read_text
from pytest_ortbench.core.run import NO_HYPERVISOR, NO_QUOTA, Commit, Machine

_ROOT = Path("/")
#: git on a huge tree or a network share must not hold a run up.
_GIT_S = 3.0

#: Instruction sets that decide which kernels ONNX Runtime and the providers pick.
_FLAGS = re.compile(
    r"avx|avx2|fma|f16c|avx512\w*|avx_vnni\w*|avx_ne_convert|amx_\w+|sse4_2"
    r"|asimd\w*|fphp|sve\w*|i8mm|bf16|sme[\d_]\w*|sme"
)

#: What firmware calls virtual machines, where the CPU does not say that it is one.
_VIRTUAL_MAKERS = re.compile(
    r"QEMU|KVM|VMware|VirtualBox|Xen|Virtual Machine|Amazon EC2|Google Compute Engine|OpenStack"
    r"|Alibaba Cloud|Parallels|Apple Virtualization|BHYVE|Cloud Hypervisor|Firecracker"
)

_CONTAINER_MARKS = (".dockerenv", "run/.containerenv", "var/run/secrets/kubernetes.io")


def fingerprint(root: Path = _ROOT) -> Machine:
    """Describe this machine.

    Stable facts decide whether latencies of two runs may be compared. GPUs are not among them:
    they are facts of a runtime, which a worker reports.

    Args:
        root: Where ``proc`` and ``sys`` are; tests pass a folder.
    """
    allowed = allowance(root)
    stable = {
        "cpu": _cpu_model(root),
        "cpu_flags": " ".join(_cpu_flags(root)),
        "architecture": platform.machine(),
        "cpus_usable": str(allowed.cpus),
        "cores_usable": str(allowed.threads),
        "cpu_quota": NO_QUOTA if allowed.quota is None else f"{allowed.quota:g}",
        "memory": _memory(root),
        "system": f"{platform.system()} {platform.release()}",
        "virtualisation": _virtualisation(root),
    }
    return Machine(host=socket.gethostname(), stable=stable, volatile=dict(_volatile(root)))


def commit(folder: Path) -> Commit | None:
    """Return the state of the git working tree around ``folder``, ``None`` outside of one.

    Untracked files do not make it dirty: results lie among them.
    """
    command = ["git", "-C", str(folder), "status", "--porcelain=v2", "--branch"]
    try:
        status = subprocess.run(
            [*command, "--untracked-files=no"],
            capture_output=True,
            check=True,
            timeout=_GIT_S,
            # Refreshing the index would take its lock from under somebody who is committing.
            env={**os.environ, "GIT_OPTIONAL_LOCKS": "0"},
        )
    except (OSError, subprocess.SubprocessError):
        return None
    revision = branch = ""
    dirty = False
    for line in status.stdout.decode("utf-8", "replace").splitlines():
        if line.startswith("# branch.oid "):
            revision = line.removeprefix("# branch.oid ")
        elif line.startswith("# branch.head "):
            branch = line.removeprefix("# branch.head ")
        elif not line.startswith("#"):
            dirty = True
    if not re.fullmatch(r"[0-9a-f]{40,64}", revision):  # no commit yet
        return None
    return Commit(revision=revision, branch="" if branch == "(detached)" else branch, dirty=dirty)


def _cpu_model(root: Path) -> str:
    fields = dict(_cpu_fields(root))
    for name in ("model name", "Model", "cpu model"):
        if fields.get(name):
            return fields[name]
    if "CPU part" in fields:  # ARM names its parts by number
        return f"ARM implementer {fields.get('CPU implementer', '?')} part {fields['CPU part']}"
    if sys.platform == "darwin":
        return _sysctl("machdep.cpu.brand_string")
    return platform.processor() or "unknown"


def _cpu_flags(root: Path) -> list[str]:
    fields = dict(_cpu_fields(root))
    flags = (fields.get("flags") or fields.get("Features") or "").split()
    return sorted(flag for flag in flags if _FLAGS.fullmatch(flag))


def _cpu_fields(root: Path) -> Iterator[tuple[str, str]]:
    """Fields of the first CPU in ``/proc/cpuinfo``."""
    for line in read_text(root / "proc/cpuinfo").splitlines():
        name, colon, value = line.partition(":")
        if not colon:
            return
        yield name.strip(), value.strip()


def _memory(root: Path) -> str:
    """Total memory to a tenth of a GiB: the kernel's own share differs from boot to boot."""
    match = re.search(r"^MemTotal:\s+(\d+) kB", read_text(root / "proc/meminfo"), re.MULTILINE)
    if match:
        return f"{int(match.group(1)) / 2**20:.1f} GiB"
    if sys.platform == "darwin":
        size = _sysctl("hw.memsize")
        return f"{int(size) / 2**30:.1f} GiB" if size.isdigit() else "unknown"
    return "unknown"


def _virtualisation(root: Path) -> str:
    """What is between us and the hardware; ``unknown`` where nothing would say so if it were."""
    kinds = []
    flags = dict(_cpu_fields(root)).get("flags")
    dmi = root / "sys/class/dmi/id"
    names = [read_text(dmi / name).strip() for name in ("sys_vendor", "product_name")]
    named = " ".join(name for name in names if name)
    unknown = False
    if flags is None:
        # Only x86 has a flag for it.
        kind = _hypervisor_without_flag(root, named)
        unknown = kind is None
        kinds += [kind] if kind else []
    elif "hypervisor" in flags.split():
        kinds.append(named or read_text(root / "sys/hypervisor/type").strip() or "virtual machine")
    if any((root / mark).exists() for mark in _CONTAINER_MARKS):
        kinds.append("container")
    return ", ".join(kinds) or ("unknown" if unknown else NO_HYPERVISOR)


def _hypervisor_without_flag(root: Path, named: str) -> str | None:
    """The hypervisor of a machine that is not x86; empty for none, ``None`` if nothing tells."""
    kind = read_text(root / "sys/hypervisor/type").strip()
    tree = root / "sys/firmware/devicetree/base"
    if kind or (tree / "hypervisor").exists():
        return named or kind or "virtual machine"
    if named:
        virtual = _VIRTUAL_MAKERS.search(named) and not re.search(r"\bmetal\b", named)
        return named if virtual else ""
    if "dummy-virt" in read_text(tree / "compatible"):
        return "virtual machine"
    if (tree / "model").exists():  # a board that somebody made
        return ""
    if sys.platform == "darwin":
        return {"0": "", "1": "virtual machine"}.get(_sysctl("kern.hv_vmm_present"))
    return None


def _volatile(root: Path) -> Iterator[tuple[str, str]]:
    """What may change at any time: only stored."""
    load = read_text(root / "proc/loadavg").split()[:3]
    if load:
        yield "load", " ".join(load)
    speed = dict(_cpu_fields(root)).get("cpu MHz")
    if speed:
        yield "cpu_mhz", speed
    cpu = root / "sys/devices/system/cpu"
    files = {
        "governor": cpu / "cpu0/cpufreq/scaling_governor",
        "no_turbo": cpu / "intel_pstate/no_turbo",
        "boost": cpu / "cpufreq/boost",
        "aslr": root / "proc/sys/kernel/randomize_va_space",
        "microcode": cpu / "cpu0/microcode/version",
    }
    for name, path in files.items():
        value = read_text(path).strip()
        if value:
            yield name, value


def _sysctl(name: str) -> str:
    try:
        ended = subprocess.run(
            ["sysctl", "-n", name], capture_output=True, check=True, timeout=_GIT_S
        )
    except (OSError, subprocess.SubprocessError):
        return "unknown"
    return ended.stdout.decode("utf-8", "replace").strip()
