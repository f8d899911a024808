"""The pass over several models together: rounds of a block alone and one beside the others."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field

from pytest_ortbench.core.case import Case
from pytest_ortbench.core.errors import WorkerError
from pytest_ortbench.core.outcome import Block, CaseResult, Failure
from pytest_ortbench.execution.means import Means
from pytest_ortbench.execution.rounds import in_turns, iterations_for, median_ns
from pytest_ortbench.launch.launcher import Launcher, Worker
from pytest_ortbench.passes.together.facts import WAYS, Together, TogetherLaunch
from pytest_ortbench.passes.together.planning import neighbour_of, why_not_together
from pytest_ortbench.passes.together.questions import OpenBeside, TimeBeside
from pytest_ortbench.planning.warm_up_budget import warm_up_budget_s
from pytest_ortbench.schema.case_questions import TimeBlock, WarmUpFor

#: A block of the case lasts about so long; one of a neighbour, after which it looks whether to go
#: on, a fifth of that.
BLOCK_NS = 20_000_000
_STEP_NS = 4_000_000


class _NeighbourFailed(Exception):
    """A neighbour can't run beside the case."""

    def __init__(self, neighbour: Case, failure: Failure) -> None:
        super().__init__(f"{neighbour.case_id}: {failure.kind}: {failure.message}")


def measure(result: CaseResult, means: Means) -> tuple[Together, ...]:
    """Measure a case beside its neighbours, in each way; never raises for what fails."""
    case = result.case
    reason = why_not_together(case)
    neighbours: list[Case] = []
    for name in case.together:
        found = neighbour_of(case, name, means.others)
        reason = reason or (found if isinstance(found, str) else "")
        if isinstance(found, Case):
            neighbours.append(found)
    ids = tuple(neighbour.case_id for neighbour in neighbours)
    if reason:
        return tuple(Together(way=way, neighbours=ids, reason=reason) for way in WAYS)
    try:
        ready = [_prepared(neighbour, means) for neighbour in neighbours]
    except _NeighbourFailed as error:
        return tuple(Together(way=way, neighbours=ids, reason=str(error)) for way in WAYS)
    return tuple(_in_one_way(way, case, ready, means.launcher) for way in WAYS)


def lacking(
    _result: CaseResult, _argument: str, *, reason: str, interrupted: bool
) -> tuple[Together, ...]:
    """Return what stands for ways that were not measured."""
    return tuple(Together(way=way, reason=reason, interrupted=interrupted) for way in WAYS)


def _prepared(neighbour: Case, means: Means) -> Case:
    """The neighbour with its file.

    Raises:
        _NeighbourFailed: if it failed before, or has none.
    """
    known = next((found for found in means.results if found.case.key == neighbour.key), None)
    if known is not None and known.failure is not None:
        raise _NeighbourFailed(neighbour, known.failure)
    try:
        return means.prepare(neighbour)
    except WorkerError as error:
        raise _NeighbourFailed(neighbour, error.failure) from error


def _in_one_way(way: str, case: Case, neighbours: Sequence[Case], launcher: Launcher) -> Together:
    ids = tuple(neighbour.case_id for neighbour in neighbours)
    launch = _shared if way == "shared" else _apart
    launches: list[TogetherLaunch] = []
    try:
        for worker in range(case.sampling.workers):
            launches.append(launch(case, neighbours, launcher, worker))
    except WorkerError as error:
        reason = f"{error.failure.kind}: {error.failure.told}"
        return Together(way=way, neighbours=ids, reason=reason)
    except _NeighbourFailed as error:
        return Together(way=way, neighbours=ids, reason=str(error))
    return Together(way=way, neighbours=ids, launches=tuple(launches))


def _shared(
    case: Case, neighbours: Sequence[Case], launcher: Launcher, worker: int
) -> TogetherLaunch:
    """One launch in one process."""
    deadline = time.monotonic() + case.sampling.timeout_s
    with closing(launcher.open(case, worker=worker, deadline=deadline)) as measured:
        warmed = measured.ask(WarmUpFor(budget_s=warm_up_budget_s(case)))
        for neighbour in neighbours:
            with _names(neighbour):
                measured.ask(OpenBeside(case=neighbour, budget_s=warm_up_budget_s(neighbour)))
        iterations = iterations_for(warmed, BLOCK_NS)

        def beside() -> tuple[Block, int]:
            found = measured.ask(TimeBeside(iterations=iterations))
            return found.block, found.neighbour_runs

        return _rounds(case, worker, lambda: _alone(measured, iterations), beside)


def _apart(
    case: Case, neighbours: Sequence[Case], launcher: Launcher, worker: int
) -> TogetherLaunch:
    """One launch with a process for each model; the neighbours are suspended meanwhile."""
    deadline = time.monotonic() + case.sampling.timeout_s
    with ExitStack() as stack:
        others: list[_ProcessBeside] = []
        for neighbour in neighbours:
            with _names(neighbour):
                opened = launcher.open(neighbour, worker=worker, deadline=deadline)
                stack.enter_context(closing(opened))
                warmed = opened.ask(WarmUpFor(budget_s=warm_up_budget_s(neighbour)))
            opened.pause()
            steps = iterations_for(warmed, _STEP_NS)
            others.append(_ProcessBeside(case=neighbour, worker=opened, iterations=steps))
        measured = stack.enter_context(
            closing(launcher.open(case, worker=worker, deadline=deadline))
        )
        warmed = measured.ask(WarmUpFor(budget_s=warm_up_budget_s(case)))
        iterations = iterations_for(warmed, BLOCK_NS)

        def beside() -> tuple[Block, int]:
            with _running(others):
                before = [other.runs for other in others]
                block = _alone(measured, iterations)
                # What goes on ran beside the block, too.
                runs = [
                    other.runs - earlier + 1 for earlier, other in zip(before, others, strict=True)
                ]
            return block, min(runs)

        return _rounds(case, worker, lambda: _alone(measured, iterations), beside)


def _alone(worker: Worker, iterations: int) -> Block:
    return worker.ask(TimeBlock(iterations=iterations))


def _rounds(
    case: Case, seed: int, alone: Callable[[], Block], beside: Callable[[], tuple[Block, int]]
) -> TogetherLaunch:
    rounds = in_turns(case, seed, alone, beside)
    return TogetherLaunch(
        alone_ns=tuple(median_ns(block.durations_ns) for block, _ in rounds),
        beside_ns=tuple(median_ns(block.durations_ns) for _, (block, _) in rounds),
        neighbour_runs=tuple(runs for _, (_, runs) in rounds),
    )


@contextmanager
def _names(neighbour: Case) -> Iterator[None]:
    """Say of a failure that it is a neighbour's."""
    try:
        yield
    except WorkerError as error:
        raise _NeighbourFailed(neighbour, error.failure) from error


@dataclass(slots=True)
class _ProcessBeside:
    """A case in a process of its own that runs beside another one, step after step."""

    case: Case
    worker: Worker
    iterations: int
    runs: int = 0
    over: threading.Event = field(default_factory=threading.Event)
    begun: threading.Event = field(default_factory=threading.Event)
    error: Exception | None = None

    def work(self) -> None:
        """Run until it is over; the thread only waits for the process."""
        try:
            while not self.over.is_set():
                self.worker.ask(TimeBlock(iterations=self.iterations))
                self.runs += self.iterations
                self.begun.set()
        except Exception as error:  # noqa: BLE001 - handed over to the thread that waits
            self.error = error
        finally:
            self.begun.set()

    def check(self) -> None:
        """Raise what made it fail."""
        if isinstance(self.error, WorkerError):
            raise _NeighbourFailed(self.case, self.error.failure) from self.error
        if self.error is not None:
            raise self.error


@contextmanager
def _running(neighbours: Sequence[_ProcessBeside]) -> Iterator[None]:
    """Let all neighbours run while the block lasts, each after its first step."""
    threads = [threading.Thread(target=neighbour.work) for neighbour in neighbours]
    try:
        for neighbour, thread in zip(neighbours, threads, strict=True):
            neighbour.over.clear()
            neighbour.begun.clear()
            neighbour.worker.resume()
            thread.start()
        for neighbour in neighbours:
            neighbour.begun.wait()
            neighbour.check()
        yield
    finally:
        for neighbour in neighbours:
            neighbour.over.set()
        for neighbour, thread in zip(neighbours, threads, strict=True):
            if thread.ident is not None:
                thread.join()
            if neighbour.error is None:
                neighbour.worker.pause()
    for neighbour in neighbours:
        neighbour.check()
