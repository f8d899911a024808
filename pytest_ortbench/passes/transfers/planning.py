"""How long it takes to time copies between host and device."""

from __future__ import annotations

from pytest_ortbench.core.case import Case


def transfers_take_s(case: Case, worker_s: float) -> float:
    """Return about how long it takes: as many workers and seconds as inferences."""
    return case.sampling.workers * worker_s + case.sampling.time_s
