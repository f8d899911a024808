"""How long it takes to measure a case in several processes at a time."""

from __future__ import annotations

from pytest_ortbench.core.case import Case


def processes_take_s(case: Case, worker_s: float) -> float:
    """Return about how long it takes: each number of processes starts, warms up and is timed."""
    timed_s = case.sampling.time_s / max(1, case.sampling.workers)
    return sum(count * worker_s + timed_s for count in case.sampling.processes)
