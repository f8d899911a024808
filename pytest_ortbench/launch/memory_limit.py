"""What memory a worker may take: one that wants more ends alone, and not the machine with it.

Where memory cgroups can be made (version 1 or 2), the kernel holds the limit; elsewhere the host
looks at the resident size while it waits. No cap on addresses is set: those of a GPU's driver are
far more than there is memory.
"""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

from pytest_ortbench.core.cpus import cgroup_folders, read_text
from pytest_ortbench.core.descendants import descendants_of
from pytest_ortbench.core.free_memory import available
from pytest_ortbench.core.own_folder import is_alive, start_of
from pytest_ortbench.launch.ending import count_in

#: Of what is free, this share is left to others, and no more than so many bytes.
_LEFT_SHARE, _LEFT_MOST = 0.05, 2 << 30
#: A worker without a model takes some 150 MB; less than that would be no limit but a refusal.
_LEAST = 512 << 20
#: By the version of cgroups: the file of the limit, and that which counts what it killed.
_FILES = {
    "v2": ("memory.max", "memory.events"),
    "v1": ("memory.limit_in_bytes", "memory.oom_control"),
}
#: By the version: what else is set, where it is there. Memory that is swapped out would make a
#: worker slow instead of ending it, and what is left of a group without its worker is of no use.
_ALSO = {"v2": {"memory.swap.max": "0", "memory.oom.group": "1"}, "v1": {}}
_PREFIX = "ortbench-"
#: An empty cgroup may be busy for a moment after its last process ended.
_TRIES, _PAUSE_S = 20, 0.01


def default_limit() -> int | None:
    """Return what a worker may take by default: nearly all that is free now.

    ``None`` where the system does not say how much that is.
    """
    free = available()
    if free is None:
        return None
    return max(_LEAST, free - min(_LEFT_MOST, int(_LEFT_SHARE * free)))


class MemoryLimit:
    """The limit of one process and what it starts, taken together.

    Attributes:
        limit_bytes: The limit.
        by_kernel: Whether the kernel holds it; else somebody has to ask :meth:`exceeded`.

    Args:
        pid: The process, which has not begun to take memory.
        limit_bytes: What it may take.
        kernel: Whether to let the kernel hold the limit, where that can be.
    """

    def __init__(self, pid: int, limit_bytes: int, *, kernel: bool = True) -> None:
        self.limit_bytes = limit_bytes
        self._pid = pid
        self._group: tuple[str, Path] | None = None
        if kernel:
            self._group = next(_made_groups(pid, limit_bytes), None)

    @property
    def by_kernel(self) -> bool:
        """Whether the kernel holds the limit."""
        return self._group is not None

    def exceeded(self) -> bool:
        """Return whether the process takes more than its limit now, as far as can be seen."""
        if self._group is not None:
            return False
        pids = [self._pid, *descendants_of(self._pid)]
        if sum(map(_resident, pids)) <= self.limit_bytes:
            return False
        # Forks share pages with each other, which are counted once for each of them above.
        return len(pids) == 1 or sum(map(_own_share, pids)) > self.limit_bytes

    def killed(self) -> bool:
        """Return whether the kernel killed something for the limit."""
        if self._group is None:
            return False
        version, folder = self._group
        return count_in(folder / _FILES[version][1], "oom_kill") > 0

    def close(self) -> None:
        """End what is left in the cgroup, and remove it; safe to repeat."""
        if self._group is None:
            return
        _, folder = self._group
        self._group = None
        for _ in range(_TRIES):
            with contextlib.suppress(OSError):
                folder.rmdir()
                return
            for pid in read_text(folder / "cgroup.procs").split():
                with contextlib.suppress(OSError):
                    os.kill(int(pid), signal.SIGKILL)
            time.sleep(_PAUSE_S)


def _resident(pid: int) -> int:
    """Bytes of a process that are in memory; 0 for one that is gone."""
    fields = read_text(Path(f"/proc/{pid}/statm")).split()
    return int(fields[1]) * os.sysconf("SC_PAGE_SIZE") if len(fields) > 1 else 0


def _own_share(pid: int) -> int:
    """Bytes in memory, those that several processes share divided among them."""
    lines = read_text(Path(f"/proc/{pid}/smaps_rollup")).splitlines()
    shares = {name: rest for name, _, rest in (line.partition(":") for line in lines)}
    if "Pss" in shares:
        return int(shares["Pss"].split()[0]) * 1024
    return _resident(pid)


def _made_groups(pid: int, limit_bytes: int) -> Iterator[tuple[str, Path]]:
    """Yield the process' cgroup with its limit, made in the first place that allows it."""
    for version, parent in _parents():
        _sweep(parent)
        folder = parent / f"{_PREFIX}{os.getpid()}-{start_of(os.getpid())}-{pid}"
        try:
            folder.mkdir()
            (folder / _FILES[version][0]).write_text(str(limit_bytes), encoding="ascii")
            for name, setting in _ALSO[version].items():
                with contextlib.suppress(OSError):  # a kernel without it
                    (folder / name).write_text(setting, encoding="ascii")
            (folder / "cgroup.procs").write_text(str(pid), encoding="ascii")
        except OSError:  # no right to it, or a cgroup that only has processes or only cgroups
            with contextlib.suppress(OSError):
                folder.rmdir()
            continue
        yield version, folder


def _parents() -> list[tuple[str, Path]]:
    """Where a cgroup may be made: in the host's own, or beside it where that holds processes."""
    places = cgroup_folders(controller="memory")
    return [
        place
        for version in _FILES
        for place in [entry for entry in places if entry[0] == version][:2]
        if (place[1] / "cgroup.procs").exists()
    ]


def _sweep(parent: Path) -> None:
    """Remove the empty cgroups of hosts that were killed; one with processes can't be removed."""
    for folder in parent.glob(f"{_PREFIX}*"):
        pid, _, rest = folder.name.removeprefix(_PREFIX).partition("-")
        start = rest.partition("-")[0]
        if pid.isdecimal() and not is_alive(int(pid), start):
            with contextlib.suppress(OSError):
                folder.rmdir()
