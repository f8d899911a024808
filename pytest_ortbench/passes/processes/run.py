"""The pass over several processes at a time, whose workers run side by side."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from dataclasses import dataclass, field

from pytest_ortbench.analysis.samples import reduce_blocks
from pytest_ortbench.analysis.stopping import BLOCK_NS, MAX_ITERATIONS
from pytest_ortbench.core.case import Case
from pytest_ortbench.core.errors import WorkerError
from pytest_ortbench.core.outcome import Block, CaseResult
from pytest_ortbench.execution.means import Means
from pytest_ortbench.launch.launcher import Launcher, Worker
from pytest_ortbench.passes.processes.facts import OneOfSeveral, ProcessPoint
from pytest_ortbench.planning.warm_up_budget import warm_up_budget_s
from pytest_ortbench.schema.case_questions import ReadMemory, TimeBlock, WarmUpFor


def measure(result: CaseResult, means: Means) -> tuple[ProcessPoint, ...]:
    """Measure a case at every asked number of processes; never raises for what fails."""
    case = result.case
    return tuple(_point(case, means.launcher, count) for count in case.sampling.processes)


def lacking(
    result: CaseResult, _argument: str, *, reason: str, interrupted: bool
) -> tuple[ProcessPoint, ...]:
    """Return what stands for numbers of processes that were not measured."""
    return tuple(
        ProcessPoint(asked=count, reason=reason, interrupted=interrupted)
        for count in result.case.sampling.processes
    )


def _point(case: Case, launcher: Launcher, count: int) -> ProcessPoint:
    deadline = time.monotonic() + case.sampling.timeout_s
    try:
        with ExitStack() as open_workers:
            workers = [
                open_workers.enter_context(
                    closing(launcher.open(case, worker=index, deadline=deadline))
                )
                for index in range(count)
            ]
            runs = [_Run(worker) for worker in workers]
            _side_by_side([_in_turns(case, run, runs) for run in runs])
            return ProcessPoint(
                asked=count,
                threads=workers[0].opened.threads,
                processes=tuple(_reduced(case, run, _first_end(runs)) for run in runs),
            )
    except WorkerError as error:
        return ProcessPoint(asked=count, reason=f"{error.failure.kind}: {error.failure.told}")


@dataclass(slots=True)
class _Run:
    """One worker among several, and what it has timed: each block with the moment of its end."""

    worker: Worker
    blocks: list[tuple[float, Block]] = field(default_factory=list)
    failed: bool = False


def _in_turns(case: Case, run: _Run, runs: Sequence[_Run]) -> Callable[[threading.Barrier], None]:
    """Warm up together with the others, then time blocks for the share of time of one worker."""

    def work(together: threading.Barrier) -> None:
        try:
            # All processes load the machine while each finds out how long an inference takes.
            warmed = run.worker.ask(WarmUpFor(budget_s=warm_up_budget_s(case)))
            last = warmed.durations_ns[-5:]
            typical_ns = max(1, sum(last) // max(1, len(last)))
            iterations = min(MAX_ITERATIONS, max(1, BLOCK_NS // typical_ns))
            together.wait()
            end = time.monotonic() + case.sampling.time_s / max(1, case.sampling.workers)
            while not run.blocks or time.monotonic() < end:
                block = run.worker.ask(TimeBlock(iterations=iterations))
                run.blocks.append((time.monotonic(), block))
                if any(other.failed for other in runs):
                    return
        except threading.BrokenBarrierError:
            return  # another one failed, and says why
        except BaseException:
            run.failed = True
            together.abort()
            raise

    return work


def _side_by_side(works: Sequence[Callable[[threading.Barrier], None]]) -> None:
    """Do all at a time; the threads only wait for their processes.

    Raises:
        WorkerError: of the first that failed.
    """
    together = threading.Barrier(len(works))
    with ThreadPoolExecutor(len(works)) as pool:
        for future in [pool.submit(work, together) for work in works]:
            future.result()


def _first_end(runs: Sequence[_Run]) -> float:
    """When the first process was through: what ended later ran with fewer beside it."""
    return min(run.blocks[-1][0] for run in runs)


def _reduced(case: Case, run: _Run, until: float) -> OneOfSeveral:
    blocks = [block for ended, block in run.blocks if ended <= until] or [run.blocks[0][1]]
    keep = case.sampling.keep
    return OneOfSeveral(
        samples=reduce_blocks(
            blocks,
            keep=0 if keep == 0 else max(1, keep // case.sampling.workers),
            clock_pair_ns=run.worker.opened.clock_pair_ns,
        ),
        peak_bytes=run.worker.ask(ReadMemory()).peak_bytes,
    )
