"""Processes that a worker started: those below it now, and those with its mark.

A process group does not hold a process that made a session of its own, and one whose parent died
has no parent that tells; its environment stays what it was (Linux only).
"""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Iterator
from pathlib import Path

#: The variable that holds the mark of a worker.
MARK = "ORTBENCH_WORKER"
#: A process may start another one while it is looked for; so it is looked again, this often.
_ROUNDS = 5


def descendants_of(pid: int) -> list[int]:
    """Return the processes that a process started, and those that these started (Linux only).

    One whose parent ended is below nobody. psutil would look at every process of the machine for
    this, and whoever watches a worker asks four times a second.
    """
    descendants: list[int] = []
    pending = [pid]
    while pending:
        children = [child for child in _children(pending.pop()) if child not in descendants]
        descendants += children
        pending += children
    return descendants


def _children(pid: int) -> Iterator[int]:
    """Yield what the threads of a process started; nothing where the kernel keeps no such list."""
    with contextlib.suppress(OSError):
        for thread in os.listdir(f"/proc/{pid}/task"):  # noqa: PTH208  # four times a second
            with contextlib.suppress(OSError):
                text = Path(f"/proc/{pid}/task/{thread}/children").read_text(encoding="ascii")
                yield from map(int, text.split())


def end_marked(mark: str) -> int:
    """Kill the processes with a mark, except this one, and return how many there were.

    Args:
        mark: The value of the variable; an empty one marks nothing.
    """
    ended: set[int] = set()
    for _ in range(_ROUNDS if mark else 0):
        # One that was killed keeps its environment until the kernel takes its memory back.
        now = {pid for pid in _readable() if pid not in ended and _kill_if_marked(pid, mark)}
        if not now:
            break
        ended |= now
    return len(ended)


def _readable() -> Iterator[int]:
    with contextlib.suppress(OSError), os.scandir("/proc") as entries:
        for entry in entries:
            if entry.name.isdecimal() and int(entry.name) != os.getpid():
                yield int(entry.name)


def _kill_if_marked(pid: int, mark: str) -> bool:
    """Kill a process if it has the mark; a later one with its id is not hit."""
    if not hasattr(signal, "pidfd_send_signal"):
        return False
    try:
        if not _is_marked(pid, mark):
            return False
        descriptor = os.pidfd_open(pid)
    except OSError:  # gone, another user's, or a kernel without such descriptors
        return False
    try:
        if not _is_marked(pid, mark):
            return False
        signal.pidfd_send_signal(descriptor, signal.SIGKILL)
    except OSError:
        return False
    finally:
        os.close(descriptor)
    return True


def _is_marked(pid: int, mark: str) -> bool:
    """Whether a process has the mark; one that ended has no environment any more."""
    return f"\0{MARK}={mark}\0".encode() in b"\0" + Path(f"/proc/{pid}/environ").read_bytes()
