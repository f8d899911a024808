"""Conversions stay within the memory that is free, or end with a reason instead of being killed."""

from __future__ import annotations

import sys
from pathlib import Path

from pytest_ortbench.core.errors import WorkerError
from pytest_ortbench.core.outcome import Failure
from pytest_ortbench.core.recipe import Conversion

#: Memory that a conversion takes at its peak, as a multiple of the model's size. *Seen* on one
#: weight of 0.54 GB: pre-processing 3.0, rounding to half precision 2.6, four bits 2.6, eight
#: bits 3.6.
_TIMES = 4.0
#: Smaller models are converted anyway.
_SMALL = 1 << 28

#: Share of the free memory that a conversion may take.
_SHARE = 0.95
#: What it may take anyway: a cap on addresses also holds for those that nothing lies behind (stacks
#: of threads, arenas of the allocator).
_LEAST = 1 << 31

_CGROUP = Path("/sys/fs/cgroup")
#: Below that, by version (2, then 1): the limit, what is used, and which of it are pages of files.
_CGROUP_FILES = {
    "": ("memory.max", "memory.current", ("inactive_file", "active_file")),
    "memory": (
        "memory.limit_in_bytes",
        "memory.usage_in_bytes",
        ("total_inactive_file", "total_active_file"),
    ),
}


def limit(conversion: Conversion) -> None:
    """Refuse a conversion that can't fit, and let one that grows beyond what is free fail alone.

    Raises:
        WorkerError: if the model needs more memory than there is.
    """
    free = available()
    if free is None:
        return
    size = conversion.size_bytes * (2 if conversion.widened else 1)
    needed = int(_TIMES * size)
    if size > _SMALL and needed > free:
        raise WorkerError(
            Failure(
                kind="unsupported",
                phase="convert",
                message=f"making {conversion.recipe.base} of {conversion.size_bytes / 1e9:.1f} GB "
                f"takes about {needed / 1e9:.0f} GB of memory, and {free / 1e9:.0f} GB are free",
                hint="Convert it on a machine with more memory, and name the file as an own "
                "variant of the model",
            )
        )
    _cap(free)


def available() -> int | None:
    """Bytes of memory that can be had, the cgroup's limit considered; ``None`` if unknown."""
    found = [value for value in (_of_machine(), _of_cgroup()) if value is not None]
    return min(found, default=None)


def _of_machine() -> int | None:
    try:
        text = Path("/proc/meminfo").read_text(encoding="ascii")
    except OSError:
        return None
    for line in text.splitlines():
        if line.startswith("MemAvailable:"):
            return int(line.split()[1]) * 1024
    return None


def _of_cgroup() -> int | None:
    for version, (maximum, current, cache) in _CGROUP_FILES.items():
        folder = _CGROUP / version
        try:
            most = (folder / maximum).read_text(encoding="ascii").strip()
            used = int((folder / current).read_text(encoding="ascii"))
            stat = (folder / "memory.stat").read_text(encoding="ascii").splitlines()
        except OSError:
            continue
        if not most.isdigit():
            return None
        # Pages of files count as used, but are given up for whoever needs memory.
        cached = sum(int(line.split()[1]) for line in stat if line.split()[0] in cache)
        return int(most) - used + cached
    return None


def _cap(free: int) -> None:
    """Let allocations beyond what is free fail in this process, which converts and nothing else.

    *Seen*: a histogram whose first values are tiny grows by as many bins as later ones are larger.
    """
    if sys.platform != "linux":
        return
    import resource

    try:
        mapped = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0])
    except OSError:
        return
    wanted = mapped * resource.getpagesize() + max(_LEAST, int(_SHARE * free))
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    if hard == resource.RLIM_INFINITY or wanted < hard:
        resource.setrlimit(resource.RLIMIT_AS, (wanted, hard))
