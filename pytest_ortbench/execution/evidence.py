"""What a worker finds out behind its timed blocks, or why it could not.

Durations that were measured stand whatever happens afterwards: a phase that runs out of time, dies
or fails leaves the reason in its own place. Only where it shows that the case can't run as it was
asked is the failure that of the case.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path

from pytest_ortbench.core.case import CHAIN, Case, Provider
from pytest_ortbench.core.errors import WorkerError
from pytest_ortbench.core.links import LinkPlacement, earlier_places, reordered
from pytest_ortbench.core.outcome import CHANGED_FILE, Accuracy, Failure, Memory, Placement
from pytest_ortbench.core.placement import idle_links, is_fallback, missing_evidence
from pytest_ortbench.launch.launcher import Launcher, Worker
from pytest_ortbench.schema.case_questions import (
    CompareOutputs,
    ProfileOrder,
    ProfilePlacement,
    ReadMemory,
    TryProduct,
)

#: Failures that say that something else was measured than was asked for.
_NOT_AS_ASKED = ("unsupported", "unavailable", "fallback")


def memory_of(worker: Worker) -> Memory:
    """Ask what session and runs took; without an answer the source says why.

    Raises:
        WorkerError: here and below, if a file of the case turns out to be another one by now.
    """
    try:
        return worker.ask(ReadMemory())
    except WorkerError as error:
        return Memory(source=_reason(error))


def placement_of(worker: Worker, case: Case) -> Placement:
    """Ask what ran where; without an answer the placement says why.

    Raises:
        WorkerError: if the provider turns out not to run the case as asked.
    """
    try:
        return worker.ask(ProfilePlacement())
    except WorkerError as error:
        if error.failure.kind in _NOT_AS_ASKED:
            raise
        return Placement(provider=case.provider.name, executed={}, reason=_reason(error))


def with_orders(worker: Worker, case: Case, placement: Placement | None) -> Placement | None:
    """Return the placement with the reason for each link of a chain that computed nothing.

    Whether an earlier link took its nodes is tried out: in another order of the chain, in which it
    stands ahead of one that computed.

    Args:
        worker: Has profiled the chain.
        case: What was measured.
        placement: What the profile showed.
    """
    if placement is None or is_fallback(placement):
        return placement
    links = list(placement.links)
    for place in idle_links(placement):
        links[place] = _why_idle(worker, case.provider.links, place, placement)
    return replace(placement, links=tuple(links))


def _why_idle(
    worker: Worker, chain: Sequence[Provider], place: int, placement: Placement
) -> LinkPlacement:
    link = placement.links[place]
    for ahead in earlier_places(chain, place, placement.executed):
        order = reordered(range(len(chain)), place, ahead)
        try:
            tried = worker.ask(ProfileOrder(order=order))
        except WorkerError as error:
            return replace(link, idle="unknown", reason=_reason(error))
        missing = missing_evidence(tried)
        if missing:
            return replace(link, idle="unknown", reason=missing)
        count = tried.executed.get(link.provider, 0)
        if count:
            written = CHAIN.join(chain[index].label for index in order)
            return replace(link, idle="taken", order=written, executed=count)
    return replace(link, idle="none")


def accuracy_of(worker: Worker, reference: Path | Accuracy) -> Accuracy:
    """Ask how the outputs compare; without an answer, or without a reference, it says why."""
    if isinstance(reference, Accuracy):
        return reference
    try:
        return worker.ask(CompareOutputs(reference=str(reference)))
    except WorkerError as error:
        return Accuracy(reason=_reason(error))


def product_bits_of(worker: Worker) -> int | None:
    """Ask what products of float32 keep on an engine; ``None`` without an answer."""
    try:
        return worker.ask(TryProduct()).bits
    except WorkerError as error:
        _reason(error)
        return None


def accuracy_afresh(
    launcher: Launcher, case: Case, reference: Path | Accuracy, *, deadline: float, left_s: float
) -> Accuracy:
    """Ask a fresh worker how the outputs compare, for a case whose own worker is of no more use.

    Args:
        launcher: Starts it.
        case: What was measured.
        reference: Its reference outputs, or why there are none.
        deadline: Until when it must be over, of ``time.monotonic()``.
        left_s: Seconds until then.
    """
    if isinstance(reference, Accuracy):
        return reference
    if left_s <= 0:
        return Accuracy(
            reason="the time limit of the case was reached before outputs were compared"
        )
    try:
        with closing(launcher.open(case, worker=0, deadline=deadline)) as worker:
            return worker.ask(CompareOutputs(reference=str(reference)))
    except WorkerError as error:
        return Accuracy(reason=_reason(error))


def _reason(error: WorkerError) -> str:
    """Why there is nothing, where the durations stand; raises the error where they don't."""
    if error.failure.phase == CHANGED_FILE:
        raise error
    return failure_line(error.failure)


def failure_line(failure: Failure) -> str:
    """A failure in one line, with the phase that it happened in."""
    during = f" while {failure.doing}" if failure.doing else ""
    return f"{failure.kind}{during}: {failure.told}"
