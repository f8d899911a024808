"""The pass over copies: rounds of a block from the host and one on the device, in one session."""

from __future__ import annotations

import time
from contextlib import closing
from dataclasses import replace

from pytest_ortbench.core.case import Case
from pytest_ortbench.core.graph_capture import captures_graph
from pytest_ortbench.core.outcome import CaseResult
from pytest_ortbench.execution.means import Means
from pytest_ortbench.execution.rounds import in_turns, iterations_for, median_ns
from pytest_ortbench.launch.launcher import Launcher
from pytest_ortbench.passes.transfers.facts import TransferLaunch, Transfers
from pytest_ortbench.passes.transfers.questions import TimeTransfers, TransferBlock
from pytest_ortbench.planning.warm_up_budget import warm_up_budget_s
from pytest_ortbench.schema.case_questions import WarmUpFor

#: A block lasts about so long.
BLOCK_NS = 20_000_000

#: Inferences on the device before the first round, which the warm-up from the host did not do.
_UNTIMED = 5


def _why_none(case: Case) -> str:
    """Return why a case has no such copies to be timed; empty if it has."""
    if not case.provider.is_execution_provider:
        return f"{case.provider.name} does not run in a session whose values can be bound"
    if case.generation is not None:
        return "requests of language models keep their values where they are"
    if captures_graph(case.provider):
        return "a recorded graph replays on bound values only"
    return ""


def measure_transfers(result: CaseResult, means: Means) -> Transfers:
    """Time a case with its values on the host and on the device.

    Raises:
        WorkerError: if a worker fails.
    """
    reason = _why_none(result.case)
    if reason:
        return Transfers(reason=reason)
    # One session and one caller from the host, whatever the row is of.
    case = replace(result.case, io="end-to-end", call="sync", sessions=1, concurrency=1)
    found = [_launch(case, means.launcher, worker) for worker in range(case.sampling.workers)]
    return Transfers(
        device=found[0][0] if found else "", launches=tuple(launch for _, launch in found)
    )


def _launch(case: Case, launcher: Launcher, worker: int) -> tuple[str, TransferLaunch]:
    """Where outputs were kept, and the rounds of one process."""
    deadline = time.monotonic() + case.sampling.timeout_s
    with closing(launcher.open(case, worker=worker, deadline=deadline)) as measured:
        warmed = measured.ask(WarmUpFor(budget_s=warm_up_budget_s(case)))
        iterations = iterations_for(warmed, BLOCK_NS)
        device = measured.ask(TimeTransfers(io="device", iterations=1, untimed=_UNTIMED)).device

        def block(io: str) -> TransferBlock:
            return measured.ask(TimeTransfers(io=io, iterations=iterations))

        rounds = in_turns(case, worker, lambda: block("end-to-end"), lambda: block("device"))
    return device, TransferLaunch(
        host_ns=tuple(median_ns(host.durations_ns) for host, _ in rounds),
        device_ns=tuple(median_ns(bound.durations_ns) for _, bound in rounds),
    )
