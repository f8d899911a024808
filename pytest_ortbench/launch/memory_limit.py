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
    """The limit of one process and what it starts.

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
        fields = read_text(Path(f"/proc/{self._pid}/statm")).split()
        if len(fields) < 2:
            return False
        return int(fields[1]) * os.sysconf("SC_PAGE_SIZE") > self.limit_bytes

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


def _made_groups(pid: int, limit_bytes: int) -> Iterator[tuple[str, Path]]:
    """Yield the process' cgroup with its limit, made in the first place that allows it."""
    for version, parent in _parents():
        _sweep(parent)
        folder = parent / f"{_PREFIX}{os.getpid()}-{start_of(os.getpid())}-{pid}"
        try:
            folder.mkdir()
            (folder / _FILES[version][0]).write_text(str(limit_bytes), encoding="ascii")
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
