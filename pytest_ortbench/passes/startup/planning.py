"""How long it takes to start a case again and again."""

from __future__ import annotations

from pytest_ortbench.core.case import Case

#: Starts of a turn: files cold, and warm.
_STARTS_A_TURN = 2


def starts_take_s(case: Case, worker_s: float) -> float:
    """Return about how long it takes: each worker starts with cold files, then with warm ones."""
    return case.sampling.workers * _STARTS_A_TURN * worker_s
