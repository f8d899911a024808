"""Which CPUs this process may use: affinity, cgroup quota, physical cores.

The worker sets its threads by it and the host describes the machine with it. It lives in the
lowest layer because both need it; it only reads ``/proc`` and ``/sys``.
"""

from __future__ import annotations

import math
import os
import sys
from dataclasses import dataclass
from pathlib import Path

_ROOT = Path("/")


@dataclass(frozen=True, slots=True, kw_only=True)
class CpuAllowance:
    """What one process may use.

    Attributes:
        cpus: Logical CPUs at once: the affinity, and no more than the quota, rounded up.
        threads: A sane number of computing threads: physical cores within the affinity, and no
            more than the quota, rounded up.
        source: What limits ``threads``: ``affinity``, ``physical cores``, ``cgroup v2 quota``, ….
        affinity: Logical CPUs that the scheduler may choose from.
        quota: CPUs' worth of time that the cgroup grants; ``None`` where there is no limit.
    """

    cpus: int
    threads: int
    source: str
    affinity: int
    quota: float | None = None


def allowance(root: Path = _ROOT) -> CpuAllowance:
    """Find out what this process may use.

    ``os.cpu_count()`` is not asked where anything better exists: it names the machine's CPUs, and
    32 threads on 2 usable ones were seen to be 26 times slower than 2.

    Args:
        root: Where ``proc`` and ``sys`` are; tests pass a folder.
    """
    allowed, cores, source = _affinity_and_cores(root)
    limit = quota(root)
    if limit is None:
        return CpuAllowance(cpus=allowed, threads=cores, source=source, affinity=allowed)
    share, version = limit
    whole = max(1, math.ceil(share))
    return CpuAllowance(
        cpus=min(allowed, whole),
        threads=min(cores, whole),
        source=f"cgroup {version} quota" if whole < cores else source,
        affinity=allowed,
        quota=share,
    )


def quota(root: Path = _ROOT) -> tuple[float, str] | None:
    """Return the tightest CPU quota in force, in CPUs, and the cgroup version that sets it."""
    quotas: list[tuple[float, str]] = []
    for version, folder in cgroup_folders(root):
        read = _quota_v2 if version == "v2" else _quota_v1
        share = read(folder)
        if share is not None:
            quotas.append((share, version))
    return min(quotas, default=None)


def throttle_files(root: Path = _ROOT) -> list[tuple[Path, str, int]]:
    """Return where the kernel counts the time for which this process' cgroups were throttled.

    Returns:
        File, name of its line, and nanoseconds per unit, for each cgroup level that has one.
    """
    lines = {"v2": ("throttled_usec", 1000), "v1": ("throttled_time", 1)}
    files = []
    for version, folder in cgroup_folders(root):
        name, factor = lines[version]
        path = folder / "cpu.stat"
        if name in read_text(path):
            files.append((path, name, factor))
    return files


def cgroup_folders(root: Path = _ROOT, controller: str = "cpu") -> list[tuple[str, Path]]:
    """Return this process' cgroups of a controller, its own and those above it, with their version.

    Args:
        root: Where ``proc`` and ``sys`` are; tests pass a folder.
        controller: ``cpu`` or ``memory``.
    """
    groups: list[tuple[str, Path]] = []
    for line in read_text(root / "proc/self/cgroup").splitlines():
        _, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        mounted = root / "sys/fs/cgroup"
        if controllers == "":
            mounts = [("v2", mounted / "unified"), ("v2", mounted)]
        elif controller in controllers.split(","):
            mounts = [("v1", mounted / controllers), ("v1", mounted / controller)]
        else:
            continue
        for version, mount in mounts:
            if mount.is_dir():
                groups += [(version, folder) for folder in _up(mount, path)]
                break
    return groups


def _up(mount: Path, path: str) -> list[Path]:
    """Folders from ``path`` up to the mount; only the mount where the path is not visible.

    In a container without a cgroup namespace the path is the host's, the mount the container's.
    """
    own = mount / path.lstrip("/")
    folders = [own] if own.is_dir() else [mount]
    while folders[-1] != mount:
        folders.append(folders[-1].parent)
    return folders


def _quota_v2(folder: Path) -> float | None:
    limit, _, period = read_text(folder / "cpu.max").strip().partition(" ")
    if not limit.isdigit() or not period.isdigit() or int(period) == 0:
        return None
    return int(limit) / int(period)


def _quota_v1(folder: Path) -> float | None:
    limit = read_text(folder / "cpu.cfs_quota_us").strip()
    period = read_text(folder / "cpu.cfs_period_us").strip()
    # -1 means no limit.
    if not limit.isdigit() or not period.isdigit() or int(period) == 0:
        return None
    return int(limit) / int(period)


def _affinity_and_cores(root: Path) -> tuple[int, int, str]:
    if not hasattr(os, "sched_getaffinity"):
        return _elsewhere()
    allowed = os.sched_getaffinity(0)
    topology = [_siblings(root, cpu) for cpu in allowed]
    cores = len(set(topology)) if all(topology) else len(allowed)
    online = len(_online(root))
    source = "affinity" if cores == len(allowed) and len(allowed) < online else "physical cores"
    return len(allowed), cores, source


def _siblings(root: Path, cpu: int) -> str:
    folder = root / f"sys/devices/system/cpu/cpu{cpu}/topology"
    return (
        read_text(folder / "core_cpus_list") or read_text(folder / "thread_siblings_list")
    ).strip()


def _online(root: Path) -> set[int]:
    numbers: set[int] = set()
    for part in read_text(root / "sys/devices/system/cpu/online").strip().split(","):
        first, _, last = part.partition("-")
        if first.isdigit():
            numbers.update(range(int(first), int(last or first) + 1))
    return numbers


def _elsewhere() -> tuple[int, int, str]:
    """Without Linux' interfaces: psutil where it is installed, else all that the machine has."""
    try:
        import psutil  # optional in a measured interpreter
    except ImportError:
        everything = os.cpu_count() or 1
        return everything, everything, f"all CPUs (no better source on {sys.platform})"
    process = psutil.Process()
    everything = psutil.cpu_count() or 1
    allowed = len(process.cpu_affinity()) if hasattr(process, "cpu_affinity") else everything
    cores = min(allowed, psutil.cpu_count(logical=False) or allowed)
    return allowed, cores, "affinity" if allowed < everything else "physical cores"


def read_text(path: Path) -> str:
    """Return what a file of the system says; nothing if it can't be read."""
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
