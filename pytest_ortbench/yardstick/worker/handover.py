"""What a value takes to another CPU and back: a process beside the yardstick's sends it back.

Threads of a model hand values to each other all the time, and those of a matrix product on each
thread never do. On a shared machine two virtual CPUs may be near each other in one minute and far
apart in the next, and no counter tells.
"""

from __future__ import annotations

import mmap
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

#: What is shared: the place of a value that goes out, and that of one that comes back, on cache
#: lines of their own.
_BYTES, _OUT, _BACK = 4096, 0, 2048
#: Sent instead of a value: sleep until the next time.
_STOP = 255

#: Values of one look, in batches the fastest of which counts: a thread that loses its CPU loses it
#: for many of them.
_BATCHES, _VALUES = 10, 25
#: The other process has no CPU if it does not answer within so long.
_PATIENCE_NS = 5_000_000
#: CPUs that are looked at. What runs on more of them is far apart at any time.
_MOST_CPUS = 8

#: It sleeps until it gets a byte, sends values back until it is told to stop, and ends with the
#: pipe. It gives up by itself if nothing comes: the other side may be suspended.
_ECHO = f"""
import mmap, os, sys, time
shared = memoryview(mmap.mmap(int(sys.argv[1]), {_BYTES}))
while os.read(0, 1):
    last = looks = 0
    until = time.monotonic() + 0.02
    while True:
        value = shared[{_OUT}]
        if value == {_STOP}:
            break
        if value != last:
            shared[{_BACK}] = last = value
        else:
            looks += 1
            if not looks & 1023 and time.monotonic() > until:
                break
"""


class Handover:
    """Another process that sends values back through shared memory; it sleeps but for a look.

    The kernel likes to put the two on one CPU, so each is bound to one of its own for the look:
    this one to the first CPU that it may use, the other one to each other CPU in turn.
    """

    def __init__(self) -> None:
        self._shared: memoryview | None = None
        with suppress(OSError), tempfile.TemporaryFile() as file:
            file.truncate(_BYTES)
            shared = memoryview(mmap.mmap(file.fileno(), _BYTES))
            self._process = subprocess.Popen(
                [sys.executable, "-I", "-S", "-c", _ECHO, str(file.fileno())],
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                pass_fds=[file.fileno()],
            )
            self._shared = shared

    def time(self) -> int | None:
        """Return what a value takes to the CPU that is farthest and back, in nanoseconds.

        It is ``None`` if one did not come back, or the platform binds no process to a CPU.
        """
        if self._shared is None or sys.platform != "linux":
            return None
        try:
            with _bound() as others:
                ways = [self._to(cpu, self._shared) for cpu in others]
        except OSError:
            return None
        known = [way for way in ways if way is not None]
        return max(known) if known and len(known) == len(ways) else None

    def close(self) -> None:
        """End the other process; safe to repeat."""
        if self._shared is not None:
            self._process.kill()
            self._process.communicate()
        self._shared = None

    def _to(self, cpu: int, shared: memoryview) -> int | None:
        stdin = self._process.stdin
        if stdin is None:
            return None
        os.sched_setaffinity(self._process.pid, {cpu})
        shared[_OUT] = shared[_BACK] = 0
        try:
            os.write(stdin.fileno(), b"w")
            return _there_and_back(shared)
        finally:
            shared[_OUT] = _STOP


@contextmanager
def _bound() -> Iterator[list[int]]:
    """Bind this thread to the first CPU that it may use; gives the others."""
    usable = os.sched_getaffinity(0)
    first, *others = sorted(usable)[:_MOST_CPUS]
    os.sched_setaffinity(0, {first})
    try:
        yield others
    finally:
        os.sched_setaffinity(0, usable)


def _there_and_back(shared: memoryview) -> int | None:
    clock, out, back = time.perf_counter_ns, _OUT, _BACK
    until_ns = clock() + _PATIENCE_NS
    taken = []
    for _ in range(_BATCHES):
        began = clock()
        for value in range(1, 1 + _VALUES):
            looks = 0
            shared[out] = value
            while shared[back] != value:
                looks += 1
                if not looks & 255 and clock() > until_ns:
                    return None
        taken.append(clock() - began)
    return round(min(taken) / _VALUES)
