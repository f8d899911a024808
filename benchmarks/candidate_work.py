"""Reference workloads that could be a yardstick, in a process that times blocks of them.

    python benchmarks/candidate_work.py BLAS_THREADS

It reads a line of JSON from its input for each block (which workload, how many units, how many
untimed ones before them) and answers with the nanoseconds of each unit. ``yardstick_candidates.py``
starts it.
"""

from __future__ import annotations

import gc
import json
import mmap
import os
import sys
import time
from collections.abc import Callable

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from pytest_ortbench.yardstick.worker.answers import Crew
from pytest_ortbench.yardstick.worker.workloads import MatrixProduct, MemoryPass, Unit

_SEED = 20_240_229


def _drawn(*shape: int) -> np.ndarray:
    return np.random.default_rng(_SEED).standard_normal(shape, dtype=np.float32)


def _product(rows: int, inner: int, columns: int) -> Unit:
    left, right = _drawn(rows, inner), _drawn(inner, columns)
    out = np.empty((rows, columns), dtype=np.float32)
    return lambda: np.matmul(left, right, out=out)


def _convolution(channels: int, side: int) -> Unit:
    """A convolution of 3 × 3 as a copy of its windows and a product."""
    image, filters = _drawn(channels, side + 2, side + 2), _drawn(channels, channels * 9)
    windows = sliding_window_view(image, (3, 3), axis=(1, 2)).transpose(0, 3, 4, 1, 2)
    columns = np.empty(windows.shape, dtype=np.float32)
    out = np.empty((channels, side * side), dtype=np.float32)

    def unit() -> None:
        np.copyto(columns, windows)
        np.matmul(filters, columns.reshape(channels * 9, side * side), out=out)

    return unit


def _mixture(whole_bytes: int) -> Unit:
    """A product of 256 × 256, then a multiplication in place of the next 2 MiB of so many."""
    product = _product(256, 256, 256)
    stream = MemoryPass(whole_bytes=whole_bytes, piece_bytes=2 * 2**20).unit()

    def unit() -> None:
        product()
        stream()

    return unit


def _chain() -> Unit:
    """Products each of which takes the last one's result: threads read what others wrote."""
    rotation = np.linalg.qr(_drawn(256, 256))[0].astype(np.float32)
    values, other = _drawn(256, 256), np.empty((256, 256), dtype=np.float32)

    def unit() -> np.ndarray:
        np.matmul(rotation, values, out=other)
        return np.matmul(rotation, other, out=values)

    return unit


#: Values that a unit hands over, there and back, and how long the other side spins for the next.
_HANDOVERS, _SPIN_NS = 500, 1_000_000
#: A unit that the other side does not take part in, since it has no CPU, ends by then.
_PATIENCE_NS = 20_000_000
#: Places of the two values: each on a cache line of its own.
_SENT, _BACK, _SHARED_BYTES = 0, 2048, 4096


def _handover() -> Unit:
    """Values go to another process and back through shared memory: what two CPUs are apart."""
    shared = memoryview(mmap.mmap(-1, _SHARED_BYTES))
    wakes, wake = os.pipe()
    if os.fork() == 0:
        try:
            os.close(wake)
            _echo(shared, wakes)
        finally:
            os._exit(0)
    os.close(wakes)
    asleep_from_ns = 0

    def unit() -> None:
        nonlocal asleep_from_ns
        if time.monotonic_ns() > asleep_from_ns:
            os.write(wake, b"w")
        until_ns = time.monotonic_ns() + _PATIENCE_NS
        for number in range(_HANDOVERS):
            value, looks = 1 + number % 200, 0
            shared[_SENT] = value
            while shared[_BACK] != value:
                looks += 1
                if looks & 1023 == 0 and time.monotonic_ns() > until_ns:
                    return
        # Before it would be, so that no value waits for a side that sleeps.
        asleep_from_ns = time.monotonic_ns() + _SPIN_NS // 4

    return unit


def _echo(shared: memoryview, wakes: int) -> None:
    """Send each value back; sleep when none came for a while, and end with the other side."""
    last, looks = 0, 0
    while os.read(wakes, 4096):
        until_ns = time.monotonic_ns() + _SPIN_NS
        while True:
            value = shared[_SENT]
            looks += 1
            if value != last:
                shared[_BACK] = last = value
                looks = 0
            elif looks & 255 == 0:
                now_ns = time.monotonic_ns()
                if looks == 256:
                    until_ns = now_ns + _SPIN_NS
                elif now_ns > until_ns:
                    break


#: What makes a unit of each, for one thread. "handover" needs a process of its own, which it forks.
WORKS: dict[str, Callable[[], Unit]] = {
    "product": MatrixProduct().unit,
    "large product": lambda: _product(1024, 1024, 256),
    "convolution": lambda: _convolution(64, 28),
    "large convolution": lambda: _convolution(32, 112),
    "mixture": lambda: _mixture(128 * 2**20),
    "mixture in cache": lambda: _mixture(8 * 2**20),
    "chain": _chain,
    "handover": _handover,
}


def serve() -> None:
    """Answer until the input ends."""
    crews: dict[tuple[str, int], Crew] = {}
    gc.disable()
    for line in sys.stdin:
        asked = json.loads(line)
        key = (asked["work"], asked["threads"])
        if key not in crews:
            made = WORKS[asked["work"]]
            crews[key] = Crew(lambda made=made: (made(),), asked["threads"])
        taken = crews[key].time(asked["units"], asked["untimed"])
        print(json.dumps([sum(parts) for parts in taken]), flush=True)


if __name__ == "__main__":
    serve()
