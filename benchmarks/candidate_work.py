"""Reference workloads that could be a yardstick, in a process that times blocks of them.

    python benchmarks/candidate_work.py BLAS_THREADS

It reads a line of JSON from its input for each block (which workload, how many units, how many
untimed ones before them) and answers with the nanoseconds of each unit. ``yardstick_candidates.py``
starts it.
"""

from __future__ import annotations

import gc
import itertools
import json
import os
import sys
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


def _sizes() -> Unit:
    """Products of several sizes in a row: calls, cache of the second level, cache of the third."""
    products = [_product(side, side, side) for side in (32, 64, 128, 256, 512)]

    def unit() -> None:
        for product in products:
            product()

    return unit


def _convolution() -> Unit:
    """A convolution of 3 × 3 as a copy of its windows and a product: 64 channels of 28 × 28."""
    image, filters = _drawn(64, 30, 30), _drawn(64, 64 * 9)
    windows = sliding_window_view(image, (3, 3), axis=(1, 2)).transpose(0, 3, 4, 1, 2)
    columns = np.empty(windows.shape, dtype=np.float32)
    out = np.empty((64, 28 * 28), dtype=np.float32)

    def unit() -> None:
        np.copyto(columns, windows)
        np.matmul(filters, columns.reshape(64 * 9, 28 * 28), out=out)

    return unit


def _mixture() -> Unit:
    """A product of 256 × 256, then a multiplication in place of 2 MiB that no cache holds."""
    product = _product(256, 256, 256)
    stream = MemoryPass(piece_bytes=2 * 2**20).unit()

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


def _apart(made: Callable[[], Unit]) -> Callable[[], Unit]:
    """Return a maker of units each of which binds the thread that calls it to the next CPU."""
    cpus = itertools.cycle(sorted(os.sched_getaffinity(0)))

    def make() -> Unit:
        unit, cpu = made(), next(cpus)
        is_bound = False

        def bound() -> object:
            nonlocal is_bound
            if not is_bound:
                os.sched_setaffinity(0, {cpu})
                is_bound = True
            return unit()

        return bound

    return make


#: What makes a unit of each, for one thread. "apart" needs a process of its own: what it binds
#: stays bound.
WORKS: dict[str, Callable[[], Unit]] = {
    "product": MatrixProduct().unit,
    "product apart": _apart(MatrixProduct().unit),
    "large product": lambda: _product(1024, 1024, 256),
    "sizes": _sizes,
    "convolution": _convolution,
    "mixture": _mixture,
    "chain": _chain,
}


def serve() -> None:
    """Answer until the input ends."""
    crews: dict[tuple[str, int], Crew] = {}
    gc.disable()
    for line in sys.stdin:
        asked = json.loads(line)
        key = (asked["work"], asked["threads"])
        if key not in crews:
            crews[key] = Crew(WORKS[asked["work"]], asked["threads"])
        print(json.dumps(crews[key].time(asked["units"], asked["untimed"])), flush=True)


if __name__ == "__main__":
    serve()
