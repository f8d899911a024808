"""For which cases copies between host and device are timed."""

from __future__ import annotations

from pytest_ortbench.core.case import Case
from pytest_ortbench.core.graph_capture import captures_graph


def why_no_transfers(case: Case) -> str:
    """Return why a case has no such copies to be timed; empty if it has."""
    if not case.provider.is_execution_provider:
        return f"{case.provider.name} does not run in a session whose values can be bound"
    if case.generation is not None:
        return "requests of language models keep their values where they are"
    if captures_graph(case.provider):
        return "a recorded graph replays on bound values only"
    return ""


def transfers_take_s(case: Case, worker_s: float) -> float:
    """Return about how long it takes: as many workers and seconds as inferences."""
    return case.sampling.workers * worker_s + case.sampling.time_s
