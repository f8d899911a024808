"""How much memory can be had: what the machine has free, and what memory cgroups leave of it."""

from __future__ import annotations

from pathlib import Path

from pytest_ortbench.core.cpus import cgroup_folders, read_text

_ROOT = Path("/")
#: By the version of cgroups: the limit, what is used, and which of it are pages of files.
_CGROUP_FILES = {
    "v2": ("memory.max", "memory.current", ("inactive_file", "active_file")),
    "v1": (
        "memory.limit_in_bytes",
        "memory.usage_in_bytes",
        ("total_inactive_file", "total_active_file"),
    ),
}


def available(root: Path = _ROOT) -> int | None:
    """Return the bytes of memory that can be had, limits of cgroups considered.

    Args:
        root: Where ``proc`` and ``sys`` are; tests pass a folder.

    Returns:
        ``None`` where the system does not say it.
    """
    folders = cgroup_folders(root, "memory")
    amounts = [_of_machine(root), *(_of_cgroup(folder, version) for version, folder in folders)]
    return min((value for value in amounts if value is not None), default=None)


def _of_machine(root: Path) -> int | None:
    for line in read_text(root / "proc/meminfo").splitlines():
        if line.startswith("MemAvailable:"):
            return int(line.split()[1]) * 1024
    return None


def _of_cgroup(folder: Path, version: str) -> int | None:
    maximum, current, cache = _CGROUP_FILES[version]
    most = read_text(folder / maximum).strip()
    used = read_text(folder / current).strip()
    if not most.isdigit() or not used.isdigit():
        return None
    # Pages of files count as used, but are given up for whoever needs memory.
    stat = [line.split() for line in read_text(folder / "memory.stat").splitlines()]
    cached = sum(int(entry[1]) for entry in stat if len(entry) == 2 and entry[0] in cache)
    return int(most) - int(used) + cached
