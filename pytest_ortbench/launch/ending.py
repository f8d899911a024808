"""How a process ended, and whether the kernel ended it for memory."""

from __future__ import annotations

import signal
from dataclasses import dataclass
from pathlib import Path

from pytest_ortbench.core.cpus import read_text
from pytest_ortbench.launch.native_text import without_colour

_ROOT = Path("/")
#: What of a native log goes into a failure.
_TAIL_LINES = 40
_TAIL_BYTES = 8_000
#: What of it is looked at for reasons: enough for a provider that complains about every node.
_SEARCHED_BYTES = 256_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Ending:
    """Exit code or signal, whichever there was."""

    exit_code: int | None = None
    signal: str = ""

    def __str__(self) -> str:
        return f"died with {self.signal}" if self.signal else f"exited with {self.exit_code}"


def ending(returncode: int) -> Ending:
    """Read a return code of :class:`subprocess.Popen`.

    Shells and containers report a signal of what they ran as 128 plus its number.
    """
    number = -returncode if returncode < 0 else returncode - 128
    if returncode < 0 or 128 < returncode <= 128 + 64:
        try:
            return Ending(signal=signal.Signals(number).name)
        except ValueError:
            if returncode < 0:
                return Ending(signal=f"signal {number}")
    return Ending(exit_code=returncode)


def oom_kills(root: Path = _ROOT) -> int:
    """Return how many processes the kernel has killed for memory, as far as this one can see.

    The counters of this process' memory cgroups, which a container's limit raises, and that of the
    whole machine.

    Args:
        root: Where ``proc`` and ``sys`` are; tests pass a folder.
    """
    total = count_in(root / "proc/vmstat", "oom_kill")
    for line in read_text(root / "proc/self/cgroup").splitlines():
        _, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        mounted = root / "sys/fs/cgroup"
        if controllers == "":
            files = [mounted / path.lstrip("/") / "memory.events", mounted / "memory.events"]
        elif controllers == "memory":
            files = [
                mounted / "memory" / path.lstrip("/") / "memory.oom_control",
                mounted / "memory" / "memory.oom_control",
            ]
        else:
            continue
        total += next((count_in(file, "oom_kill") for file in files if file.is_file()), 0)
    return total


def read_log(path: Path) -> str:
    """Return the end of a native log, as text without colours, for finding reasons in it."""
    try:
        with path.open("rb") as file:
            size = file.seek(0, 2)
            file.seek(max(0, size - _SEARCHED_BYTES))
            return without_colour(file.read().decode("utf-8", "replace"))
    except OSError:
        return ""


def tail(log: str) -> str:
    """Return the last lines of a log, as many as fit a failure."""
    lines = log.rstrip().splitlines()[-_TAIL_LINES:]
    text = "\n".join(lines).encode()[-_TAIL_BYTES:]
    return text.decode("utf-8", "ignore")


def count_in(path: Path, name: str) -> int:
    """Return the number behind a name in a file of the system; 0 if there is none."""
    for line in read_text(path).splitlines():
        key, _, value = line.partition(" ")
        if key == name and value.strip().isdigit():
            return int(value)
    return 0
