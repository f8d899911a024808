"""One launch of a pair: two fresh workers, short blocks in turns, the idle side suspended.

An idle session's threads go on spinning for tens of milliseconds after its last run, right through
the other side's block. So the other side is stopped with a signal, which also keeps its garbage
collector and its allocator quiet.
"""

from __future__ import annotations

import random
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median

from pytest_ortbench.core.errors import WorkerError
from pytest_ortbench.core.gate import PairedLaunch
from pytest_ortbench.core.generation import GeneratedRequest
from pytest_ortbench.core.outcome import Accuracy, Failure, Memory, Placement
from pytest_ortbench.gate.measuring.answers import Exchange
from pytest_ortbench.gate.measuring.pair import BASELINE, CONTENDER, Pair
from pytest_ortbench.gate.numbers.contrasts import (
    FEWEST_ROUNDS,
    Round,
    block_size,
    reduce_rounds,
    round_count,
)
from pytest_ortbench.launch.launcher import Launcher, Worker
from pytest_ortbench.schema.case_questions import (
    CompareOutputs,
    ProfilePlacement,
    ReadMemory,
    TimeBlock,
    WarmUpFor,
)

#: A warm-up is cut off here: what the two sides have left to learn they have left alike, since
#: both make the same number of runs, and a launch is repeated anyway.
WARM_UP_S = 1.0

#: A side that needs fewer runs to warm up makes as many as the other one, but for no longer than
#: this: a hundred times slower one would take minutes for them.
MAKING_UP_S = 2.0

#: Runs at the end of a warm-up that say how long one inference takes.
_LAST_OF_WARM_UP = 9

#: On a busy machine blocks take many times as long as planned. Rounds end when they have taken so
#: long and there are enough of them; that knows no side, so it favours none.
ROUNDS_S = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class SideFacts:
    """What one side says of itself beside its durations.

    Attributes:
        threads: Intra-op threads in force.
        cpus: CPUs that its worker may use.
        memory: Of its worker, after the rounds.
        placement: Which provider ran the nodes; ``None`` where it was not looked at.
        accuracy: Its outputs against its own reference, likewise.
        requests: What each request of its blocks took, where requests are timed.
    """

    threads: int
    cpus: int
    memory: Memory
    placement: Placement | None = None
    accuracy: Accuracy | None = None
    requests: tuple[GeneratedRequest, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Launched:
    """A launch and what its two workers said of themselves."""

    launch: PairedLaunch
    baseline: SideFacts
    contender: SideFacts


class SideFailed(Exception):
    """One side could not be measured.

    Attributes:
        side: ``baseline`` or ``contender``.
        failure: Why.
    """

    def __init__(self, side: str, failure: Failure) -> None:
        super().__init__(failure.message)
        self.side = side
        self.failure = failure


def measure_launch(
    pair: Pair,
    launcher: Launcher,
    *,
    seed: int,
    index: int,
    deadline: float,
    references: tuple[Path | Accuracy, Path | Accuracy] | None = None,
    exchange: Exchange | None = None,
) -> Launched:
    """Measure both sides in turns.

    Args:
        pair: The two cases.
        launcher: Starts the workers.
        seed: Decides every order.
        index: Number of the launch, for logs.
        deadline: Until when it must be over, of ``time.monotonic()``.
        references: Reference outputs of baseline and contender, or why there are none: placement
            and accuracy of both sides are looked at, too, once their blocks are over.
        exchange: Compares the outputs of the two sides, after that.

    Raises:
        SideFailed: if a worker fails.
    """
    began = time.monotonic()
    order = random.Random(seed)
    with ExitStack() as stack:
        workers: dict[str, Worker] = {}
        cases = [pair.baseline, pair.contender]
        stack.enter_context(launcher.ahead(cases, worker=index, deadline=deadline))
        for side in _shuffled(order):
            # Whoever is open already must not spin while the other one is opened.
            for other in workers.values():
                other.pause()
            with _names(side):
                worker = launcher.open(pair.side(side), worker=index, deadline=deadline)
            workers[side] = stack.enter_context(closing(worker))
        for worker in workers.values():
            worker.pause()
        typical_s, runs = _warm_alike(workers, order)
        callers = max(pair.baseline.callers, pair.contender.callers)
        rounds = _alternate(
            workers, order, block_size(typical_s, callers), round_count(typical_s, callers)
        )
        launch = reduce_rounds(rounds, seed=seed, warm_up_runs=runs)
        facts: dict[str, SideFacts] = {}
        # Where only the rise of a whole device can be read, it is that of one side once the other
        # one, which came later, is gone.
        for side, worker in reversed(workers.items()):
            looked_at = _look_at(worker, side, references and references[side == CONTENDER])
            facts[side] = replace(looked_at, requests=_requests_of(rounds, side))
            if exchange is not None:
                exchange.ask(worker, side)
            worker.close()
    return Launched(
        launch=replace(
            launch,
            baseline_peak_bytes=facts[BASELINE].memory.peak_bytes,
            contender_peak_bytes=facts[CONTENDER].memory.peak_bytes,
            wall_s=time.monotonic() - began,
        ),
        baseline=facts[BASELINE],
        contender=facts[CONTENDER],
    )


def _shuffled(order: random.Random) -> list[str]:
    sides = [BASELINE, CONTENDER]
    order.shuffle(sides)
    return sides


@contextmanager
def _names(side: str) -> Iterator[None]:
    """Say of a failure whose it is."""
    try:
        yield
    except WorkerError as error:
        raise SideFailed(side, error.failure) from error


@contextmanager
def _running(worker: Worker, side: str) -> Iterator[None]:
    """Let one side run, and stop it again; a worker that failed is gone and stays so."""
    worker.resume()
    with _names(side):
        yield
    worker.pause()


def _warm_alike(workers: dict[str, Worker], order: random.Random) -> tuple[float, int]:
    """Warm both sides up, with the same number of runs where that takes no long time.

    Returns:
        What one inference of the slower side takes, in seconds, and the runs that both made.
    """
    counts: dict[str, int] = {}
    typical_s: dict[str, float] = {}
    for side in _shuffled(order):
        with _running(workers[side], side):
            warm_up = workers[side].ask(WarmUpFor(budget_s=WARM_UP_S))
        counts[side] = warm_up.count
        last = warm_up.durations_ns[-_LAST_OF_WARM_UP:]
        # A clock that stood still for a whole inference gives no size of a block.
        typical_s[side] = max(median(last) / 1e9 if last else 0.0, 1e-6)
    most = max(counts.values())
    for side, count in counts.items():
        more = min(most - count, int(MAKING_UP_S / typical_s[side]))
        if more > 0:
            with _running(workers[side], side):
                workers[side].ask(TimeBlock(iterations=more))
            counts[side] += more
    # The slower one, whichever side it is: so blocks of 10 µs against 2 ms do not last seconds, and
    # a side that was disturbed while it warmed up has the same say as the other one would have had.
    return max(typical_s.values()), min(counts.values())


def _alternate(
    workers: dict[str, Worker], order: random.Random, iterations: int, rounds: int
) -> list[Round]:
    done: list[Round] = []
    began = time.monotonic()
    for _ in range(rounds):
        if len(done) >= FEWEST_ROUNDS and time.monotonic() - began > ROUNDS_S:
            break
        blocks = {}
        for side in _shuffled(order):
            with _running(workers[side], side):
                blocks[side] = workers[side].ask(TimeBlock(iterations=iterations))
        done.append(Round(baseline=blocks[BASELINE], contender=blocks[CONTENDER]))
    return done


def _requests_of(rounds: Sequence[Round], side: str) -> tuple[GeneratedRequest, ...]:
    """Return the requests of all blocks of a side."""
    blocks = (turn.baseline if side == BASELINE else turn.contender for turn in rounds)
    return tuple(request for block in blocks for request in block.requests)


def _look_at(worker: Worker, side: str, reference: Path | Accuracy | None) -> SideFacts:
    """What is asked of a side after its blocks; it is left running, to be closed in peace."""
    worker.resume()
    with _names(side):
        memory = worker.ask(ReadMemory())
        placement = accuracy = None
        if reference is not None:
            if not worker.opened.info.engine:
                placement = worker.ask(ProfilePlacement())
            accuracy = (
                reference
                if isinstance(reference, Accuracy)
                else worker.ask(CompareOutputs(reference=str(reference)))
            )
    return SideFacts(
        threads=worker.opened.threads,
        cpus=worker.opened.cpus,
        memory=memory,
        placement=placement,
        accuracy=accuracy,
    )
