"""The endurance of a service: a worker keeps it under load, and its memory is read meanwhile."""

from __future__ import annotations

import threading
import time
from contextlib import closing
from types import TracebackType

from pytest_ortbench.analysis.summary import summarise
from pytest_ortbench.core.case import Case
from pytest_ortbench.core.errors import WorkerError
from pytest_ortbench.core.outcome import CaseResult
from pytest_ortbench.execution.means import Means
from pytest_ortbench.execution.reference_file import path_of_reference
from pytest_ortbench.launch.service_process import ServiceProcess
from pytest_ortbench.passes.endurance.facts import (
    ADD_SERVICE,
    NO_SERVICE,
    Endurance,
    SteadyLoad,
)
from pytest_ortbench.passes.endurance.questions import KeepUnderLoad
from pytest_ortbench.passes.endurance.run.faults import Faults
from pytest_ortbench.planning.endpoints import URL
from pytest_ortbench.planning.warm_up_budget import warm_up_budget_s
from pytest_ortbench.schema.case_questions import WarmUpFor

#: Share of what one caller gets that arrives where nobody says a rate.
SHARE = 0.8
#: Readings of the memory at most, and how far they are apart at least.
_READINGS, _LEAST_APART_S = 600, 0.05


def measure(result: CaseResult, means: Means) -> Endurance:
    """Keep the service of a case under load.

    Raises:
        WorkerError: if the worker that sends fails.
    """
    case = result.case
    if not case.provider.is_endpoint:
        return Endurance(reason=f"{NO_SERVICE}. {ADD_SERVICE}")
    throughput = summarise(result, percentiles=False).quantities.get("throughput")
    capacity = None if throughput is None else throughput.value / case.batch
    rate = case.sampling.endurance_per_s or SHARE * (capacity or 0.0)
    if not rate:
        return Endurance(
            reason="the throughput of the standard pass is not known: add --ort-endurance-rate=RATE"
        )
    seconds = case.sampling.endurance_s
    process = means.launcher.service_of(case)
    question = KeepUnderLoad(
        seconds=seconds, rate_per_s=rate, reference=path_of_reference(case, means.reference)
    )
    memory = ServiceMemory(process, seconds)
    faults = Faults(
        case.sampling.endurance_faults,
        case.provider.options.get(URL, ""),
        process,
        seconds,
        memory.begin_anew,
    )
    deadline = time.monotonic() + case.sampling.timeout_s + seconds
    with closing(means.launcher.open(case, worker=0, deadline=deadline)) as worker:
        worker.ask(WarmUpFor(budget_s=warm_up_budget_s(case)))
        with memory, faults:
            load = worker.ask(question)
    return endurance_of(case, load, memory, faults, capacity)


def endurance_of(
    case: Case, load: SteadyLoad, memory: ServiceMemory, faults: Faults, capacity: float | None
) -> Endurance:
    """Return what was found, with the readings of the time of the load."""
    length_ns = max(1, load.ended_ns - load.began_ns)
    sent = load.exchanges.sent
    readings = [
        (sent * (at_ns - load.began_ns) // length_ns, size)
        for at_ns, size in memory.readings
        if load.began_ns <= at_ns <= load.ended_ns
    ]
    return Endurance(
        seconds=length_ns * 1e-9,
        rate_per_s=case.sampling.endurance_per_s or SHARE * (capacity or 0.0),
        capacity_per_s=capacity,
        exchanges=load.exchanges,
        at=tuple(done for done, _ in readings),
        resident_bytes=tuple(size for _, size in readings),
        memory_note=memory.note,
        faults=faults.found,
    )


class ServiceMemory:
    """Reads the memory of a service now and then, from a thread of its own.

    Attributes:
        readings: When, by the clock of all processes, and how much, in the order of time.
        note: Why there are none; empty otherwise.

    Args:
        process: The service; ``None`` where somebody else has started it.
        seconds: How long it goes on, about.
    """

    def __init__(self, process: ServiceProcess | None, seconds: float) -> None:
        self.readings: list[tuple[int, int]] = []
        self.note = ""
        if process is None:
            self.note = "this run has not started the service, and can't read its memory"
        self._process, self._apart_s = process, max(_LEAST_APART_S, seconds / _READINGS)
        self._over = threading.Event()
        self._lock = threading.Lock()
        self._thread = threading.Thread(target=self._read, daemon=True)

    def __enter__(self) -> ServiceMemory:
        self._thread.start()
        return self

    def __exit__(
        self,
        _kind: type[BaseException] | None,
        _error: BaseException | None,
        _trace: TracebackType | None,
    ) -> None:
        self._over.set()
        self._thread.join()

    def begin_anew(self) -> None:
        """Forget what was read: the service is another process now."""
        with self._lock:
            self.readings.clear()

    def _read(self) -> None:
        while self._process is not None and not self._over.wait(self._apart_s):
            with self._lock:
                try:
                    use = self._process.use()
                except WorkerError:  # it is gone, maybe for a moment
                    continue
                self.readings.append((time.monotonic_ns(), use.resident_bytes))
