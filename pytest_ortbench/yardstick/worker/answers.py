"""What the process of a yardstick answers: what it is, and what a block of its units took."""

from __future__ import annotations

import gc
import threading
import time
from array import array
from collections.abc import Callable
from typing import cast

from pytest_ortbench.core.errors import WorkerError
from pytest_ortbench.core.failure import Failure
from pytest_ortbench.core.samples import Block
from pytest_ortbench.core.yardstick import Yardstick, YardstickBlock
from pytest_ortbench.schema.yardstick_questions import PrepareYardstick, TimeYardstick
from pytest_ortbench.worker.state import WorkerState
from pytest_ortbench.yardstick.worker.handover import Handover
from pytest_ortbench.yardstick.worker.workloads import (
    WORKLOADS,
    MemoryPass,
    ProductAndPass,
    Unit,
    digest_of_work,
    parts_of_unit,
)

_KEPT, _HANDOVER = "yardstick", "handover"


def prepare_yardstick(question: PrepareYardstick, state: WorkerState) -> Yardstick:
    """Make the data of a yardstick, and say what decides its speed.

    Raises:
        WorkerError: if it is not known how many threads the library behind it takes.
    """
    state.enter("measure")
    workload = WORKLOADS[question.name]
    library, version, kernels = _numpy()
    if not isinstance(workload, MemoryPass):
        of_numpy = f"+numpy{version}" if isinstance(workload, ProductAndPass) else ""
        library, version, kernels = _behind_numpy()
        version += of_numpy
    state.kept[_KEPT] = Crew(lambda: parts_of_unit(workload), question.threads)
    state.kept[_HANDOVER] = Handover() if question.threads > 1 else None
    # Nothing is collected inside a block: a unit makes no objects that refer to each other.
    gc.collect()
    gc.disable()
    return Yardstick(
        name=question.name,
        digest=digest_of_work(workload),
        library=library,
        version=version,
        kernels=kernels,
        threads=question.threads,
    )


def time_units(question: TimeYardstick, state: WorkerState) -> YardstickBlock:
    """Time a block; its CPU time is that of the untimed units, too, as its wall time is."""
    crew = cast("Crew", state.kept[_KEPT])
    handover = cast("Handover | None", state.kept[_HANDOVER])
    cpu_before, wall_before = time.process_time_ns(), time.perf_counter_ns()
    taken = crew.time(question.units, question.untimed)
    wall_ns = time.perf_counter_ns() - wall_before
    cpu_ns = time.process_time_ns() - cpu_before
    return YardstickBlock(
        block=Block(durations_ns=tuple(map(sum, taken)), wall_ns=wall_ns, cpu_ns=cpu_ns),
        memory_ns=tuple(last for _, last in taken) if crew.parts > 1 else (),
        handover_ns=None if handover is None else handover.time(),
    )


class Crew:
    """The calling thread and helpers that sleep between blocks, each with units of its own.

    They meet at the end of a block only. A library with threads of its own lets them meet inside
    each product, and wait by spinning: beside another busy process a block of 2 ms takes 200 ms.

    Args:
        made: Makes the parts of what each of them does, on data of its own.
        threads: How many there are, the calling one included.

    Attributes:
        parts: How many parts a unit has.
    """

    def __init__(self, made: Callable[[], tuple[Unit, ...]], threads: int) -> None:
        self._own = made()
        self.parts = len(self._own)
        self._helpers = [_Helper(made()) for _ in range(threads - 1)]

    def time(self, units: int, untimed: int) -> list[tuple[int, ...]]:
        """Do a block, and return what the parts of each unit took.

        They are those of the thread that took longest for it.

        Args:
            units: Units of each thread that are timed.
            untimed: Units of each thread before these.
        """
        for helper in self._helpers:
            helper.begin(units, untimed)
        taken = [_timed(self._own, units, untimed)]
        taken += [helper.taken() for helper in self._helpers]
        return [max(of_threads, key=sum) for of_threads in zip(*taken, strict=True)]


class _Helper:
    """A thread with units of its own."""

    def __init__(self, parts: tuple[Unit, ...]) -> None:
        self._parts = parts
        self._asked = (0, 0)
        self._taken: list[tuple[int, ...]] = []
        self._begun, self._done = threading.Semaphore(0), threading.Semaphore(0)
        threading.Thread(target=self._serve, name="yardstick", daemon=True).start()

    def begin(self, units: int, untimed: int) -> None:
        self._asked = (units, untimed)
        self._begun.release()

    def taken(self) -> list[tuple[int, ...]]:
        self._done.acquire()
        return self._taken

    def _serve(self) -> None:
        while True:
            self._begun.acquire()
            self._taken = _timed(self._parts, *self._asked)
            self._done.release()


def _timed(parts: tuple[Unit, ...], units: int, untimed: int) -> list[tuple[int, ...]]:
    """Return the nanoseconds of the parts of single units in a row, those before them left out."""
    clock = time.perf_counter_ns
    durations = [array("q", bytes(8 * units)) for _ in parts]
    for _ in range(untimed):
        for part in parts:
            part()
    kept = tuple(zip(parts, durations, strict=True))
    for index in range(units):
        for part, of_part in kept:
            started = clock()
            part()
            of_part[index] = clock() - started
    return list(zip(*durations, strict=True))


def _numpy() -> tuple[str, str, str]:
    """Return numpy, its version as far as its loops may differ, and no kernels."""
    import numpy as np

    return "numpy", ".".join(np.__version__.split(".")[:2]), ""


def _behind_numpy() -> tuple[str, str, str]:
    """Return the library that multiplies matrices for numpy, its version and its kernels."""
    import numpy as np  # loads the library
    from threadpoolctl import threadpool_info  # only yardsticks ask

    libraries = [entry for entry in threadpool_info() if entry["user_api"] == "blas"]
    if not libraries:
        raise _unknown(f"numpy {np.__version__} does not say which library multiplies matrices")
    library = libraries[0]
    if library["num_threads"] != 1:
        raise _unknown(
            f"{library['internal_api']} uses {library['num_threads']} threads, but must use 1"
        )
    version, kernels = library["version"], library.get("architecture")
    return str(library["internal_api"]), str(version or ""), str(kernels or "")


def _unknown(message: str) -> WorkerError:
    return WorkerError(Failure(kind="unsupported", phase="measure", message=message))
