"""Blocks of a worker in turns with those of a yardstick.

The side that does not work is suspended: threads of an idle session go on spinning for a while,
which would run through a block of the yardstick.
"""

from __future__ import annotations

import math
import random
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from statistics import fmean
from typing import TypeVar

from pytest_ortbench.core.case import Case
from pytest_ortbench.core.errors import WorkerError
from pytest_ortbench.core.outcome import Block, Failure, YardstickTurns
from pytest_ortbench.core.yardstick import MOST_KEPT_THREADS, YardstickBlock
from pytest_ortbench.launch.seam import Launcher, Worker, YardstickWorker
from pytest_ortbench.schema.case_questions import Opened, TimeBlock
from pytest_ortbench.yardstick.choice import SHARE, chosen_yardstick, yardstick_threads

R = TypeVar("R")

#: A block of the model, or one inference if that takes longer. Longer blocks would meet other
#: states of the machine than the yardstick's, shorter ones be lost in the change of sides.
MODEL_NS = 12_000_000

#: A block of the yardstick beside a fast model, and beside one whose inferences are long.
YARDSTICK_NS, LONGEST_YARDSTICK_NS = 2_500_000, 12_000_000

#: Both processes are stopped and go on, and two questions and their answers cross: seen, from a
#: model's worker whose caches hold other data by then 1.4 ms, from a yardstick 0.5 ms.
_CHANGE_NS = 2_000_000

#: After a turn of the yardstick a model has inferences first that nobody times: it has to find its
#: data and code in the caches again. Seen, of a model of 0.3 ms: the first takes 55 % longer, the
#: next ones 13, 7, 5, 4, 2 and 2 %.
_SETTLING_NS = 1_500_000

#: It does without where one would take long. Seen: p50 of a model of 3 ms is 1.5 % higher then, of
#: one of 8 ms the same.
_LONG_NS = 5_000_000

#: Units that say how long one takes.
_UNITS_LOOKED_AT = 8

#: Rounds without which a model is not left early: twelve make a ratio, and beside other work some
#: are lost. Two runs differ as much with 14 of their rounds as with 22 (``docs/concepts``).
ENOUGH_ROUNDS = 17

#: So many rounds may take half of what the model is timed for: on a machine where a change of sides
#: takes 15 ms in place of 2, a quarter of it makes no ratio.
LEAST_ROUNDS, MOST_SHARE = 14, 0.5

#: Rounds that are kept of a worker.
KEPT_ROUNDS = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class _Sizes:
    """How large the blocks are.

    Attributes:
        runs: Inferences of a block of the model.
        untimed_runs: Inferences before these.
        units: Units of a block of the yardstick.
        untimed_units: Units before these.
    """

    runs: int
    untimed_runs: int
    units: int
    untimed_units: int


def sizes_of_blocks(typical_ns: float, unit_ns: float) -> _Sizes:
    """Return how large blocks are.

    Args:
        typical_ns: What an inference takes.
        unit_ns: What a unit of the yardstick takes.
    """
    typical_ns, unit_ns = max(1.0, typical_ns), max(1.0, unit_ns)
    wanted_ns = min(LONGEST_YARDSTICK_NS, max(YARDSTICK_NS, SHARE * typical_ns))
    units = max(1, int(wanted_ns / unit_ns))
    untimed_runs = math.ceil(_SETTLING_NS / typical_ns) if typical_ns <= _LONG_NS else 0
    untimed_units = int(unit_ns <= _LONG_NS)
    turn_ns = (units + untimed_units) * unit_ns + untimed_runs * typical_ns + _CHANGE_NS
    model_ns = max(MODEL_NS, turn_ns / SHARE)
    return _Sizes(
        runs=max(1, round(model_ns / typical_ns)),
        untimed_runs=untimed_runs,
        units=units,
        untimed_units=untimed_units,
    )


class OfCase:
    """The yardstick of a case: chosen for its first worker, kept for the others.

    Attributes:
        name: Which one it is; empty before it was chosen.

    Args:
        case: The case.
        launcher: Starts its process.
    """

    def __init__(self, case: Case, launcher: Launcher) -> None:
        self.name = ""
        self._case = case
        self._launcher = launcher
        self._process: YardstickWorker | None = None

    def started(self, opened: Opened, cpus_used: float | None) -> YardstickWorker:
        """Return its process, which is suspended, and may be that of an earlier case.

        Args:
            opened: What the worker said of itself that takes turns with it.
            cpus_used: CPUs that the model keeps busy; ``None`` if that is not known.

        Raises:
            WorkerError: if it can't be started.
        """
        if self._process is None:
            self.name = self.name or chosen_yardstick(
                self._case.sampling.yardstick,
                threads=opened.threads,
                cpus_used=cpus_used,
            )
            threads = yardstick_threads(self.name, threads=opened.threads, cpus=opened.cpus)
            self._process = self._launcher.yardstick(self.name, threads=threads)
        return self._process

    def end(self) -> None:
        """End its process; the next worker starts another one. Safe to repeat."""
        if self._process is not None:
            self._process.close()
        self._process = None

    def leave(self) -> None:
        """Leave its process to the next case, unless its data take much memory."""
        if self._process is not None and self._process.yardstick.threads > MOST_KEPT_THREADS:
            self.end()


class Turns:
    """The blocks of one worker; a yardstick has its turns between them if there is one.

    Outside of :meth:`time` the worker goes on and the yardstick is suspended.

    Attributes:
        least_ns: Timed nanoseconds of the model that make enough rounds; 0 without a yardstick.

    Args:
        worker: Whose blocks.
        kept: The yardstick of its case.
        seed: Decides who begins a round.
        absence: Why there is no yardstick, a key of ``ABSENCES``.
    """

    def __init__(self, worker: Worker, kept: OfCase, *, seed: int = 0, absence: str = "") -> None:
        self.least_ns = 0.0
        self._kept = kept
        self._worker = worker
        self._order = random.Random(seed)
        self._absence, self._detail = absence, ""
        self._yardstick: YardstickWorker | None = None
        self._sizes = sizes_of_blocks(1, 1)
        self._rounds: list[tuple[Block, YardstickBlock]] = []
        self._model_ns = self._lost_ns = self._timed = 0
        #: Whether the model's data and code may have left the caches since its last block.
        self._is_cold = True

    def begin(self, *, typical_ns: float, cpus_used: float | None) -> None:
        """Start the yardstick if there is to be one.

        What goes wrong is kept as the reason why there is none.

        Args:
            typical_ns: What an inference takes where nothing disturbs it.
            cpus_used: CPUs that the model keeps busy; ``None`` if that is not known.
        """
        if self._absence:
            return
        with self._suspended():
            try:
                self._yardstick = self._kept.started(self._worker.opened, cpus_used)
                look = self._yardstick.time(_UNITS_LOOKED_AT, untimed=_UNITS_LOOKED_AT)
                self._sizes = sizes_of_blocks(typical_ns, min(look.block.durations_ns))
                self.least_ns = ENOUGH_ROUNDS * self._sizes.runs * typical_ns
            except WorkerError as error:
                self._lose(error.failure)

    def time(self, iterations: int) -> Block:
        """Time inferences, in turns with the yardstick; return them as one block.

        Args:
            iterations: How many.

        Raises:
            WorkerError: if the model's worker fails.
        """
        if self._yardstick is None:
            return self._worker.ask(TimeBlock(iterations=iterations))
        blocks, left = [], iterations
        while left > 0:
            is_due = self._is_due
            runs = self._sizes.runs if is_due else self._runs_until_due()
            # What would be left alone is too little for a block.
            runs = left if left < runs + self._sizes.runs / 2 else runs
            blocks.append(self._round(runs) if is_due else self._alone(runs))
            left -= runs
        return in_one_block(blocks)

    def facts(self) -> YardstickTurns:
        """Return the rounds, or why there are none."""
        yardstick, sizes = self._yardstick, self._sizes
        if yardstick is None or not self._rounds:
            return YardstickTurns(absence=self._absence or "short", detail=self._detail)
        kept = spread_evenly(self._rounds, KEPT_ROUNDS)
        models = [block for block, _ in kept]
        yardsticks = [own.block for _, own in kept]
        in_parts = [own for _, own in kept if own.memory_ns]
        return YardstickTurns(
            yardstick=yardstick.yardstick,
            rounds=len(self._rounds),
            model_mean_ns=tuple(map(_mean_ns, models)),
            model_low_ns=tuple(map(_low_ns, models)),
            yardstick_mean_ns=tuple(map(_mean_ns, yardsticks)),
            yardstick_low_ns=tuple(map(_low_ns, yardsticks)),
            memory_mean_ns=tuple(round(fmean(own.memory_ns)) for own in in_parts),
            memory_low_ns=tuple(map(_memory_of_fastest_ns, in_parts)),
            model_runs=sizes.runs,
            yardstick_runs=sizes.units,
            model_cpus=_cpus([block for block, _ in self._rounds]),
            yardstick_cpus=_cpus([own.block for _, own in self._rounds]),
            handover_ns=tuple(own.handover_ns for _, own in kept)
            if yardstick.yardstick.threads > 1
            else (),
        )

    @property
    def _is_due(self) -> bool:
        """Whether turns of the yardstick took so little time that there may be one more."""
        return self._yardstick is not None and self._lost_ns <= self._share * self._model_ns

    @property
    def _share(self) -> float:
        """Share of what the model is timed for that turns may take by now."""
        return SHARE if len(self._rounds) >= LEAST_ROUNDS else MOST_SHARE

    def _runs_until_due(self) -> int:
        """Return after how many inferences there may be one, a block of them at least.

        Each question takes time of its own, so that they are asked for at once.
        """
        each_ns = max(1.0, self._model_ns / max(1, self._timed))
        missing_ns = self._lost_ns / self._share - self._model_ns
        return max(self._sizes.runs, math.ceil(missing_ns / each_ns))

    def _round(self, iterations: int) -> Block:
        """Time a block of each side, in random order."""
        is_first = self._order.random() < 0.5
        began = time.monotonic_ns()
        between = self._turn() if is_first else None
        block = self._block(iterations)
        if not is_first:
            between = self._turn()
        self._lost_ns += time.monotonic_ns() - began - block.wall_ns
        if between is not None:
            self._rounds.append((block, between))
        return block

    def _alone(self, iterations: int) -> Block:
        """Time a block of the model."""
        began = time.monotonic_ns()
        block = self._block(iterations)
        self._lost_ns += time.monotonic_ns() - began - block.wall_ns
        return block

    def _block(self, iterations: int) -> Block:
        untimed = self._sizes.untimed_runs if self._is_cold else 0
        block = self._worker.ask(TimeBlock(iterations=iterations, untimed=untimed))
        self._is_cold = False
        self._model_ns += block.wall_ns
        self._timed += iterations
        return block

    def _turn(self) -> YardstickBlock | None:
        """Time a block of the yardstick; ``None`` if it failed, now or before."""
        yardstick, sizes = self._yardstick, self._sizes
        if yardstick is None:
            return None
        self._is_cold = True
        with self._suspended():
            try:
                return yardstick.time(sizes.units, untimed=sizes.untimed_units)
            except WorkerError as error:
                self._lose(error.failure)
                return None

    @contextmanager
    def _suspended(self) -> Iterator[None]:
        """Let the worker sleep meanwhile."""
        self._worker.pause()
        try:
            yield
        finally:
            self._worker.resume()

    def _lose(self, failure: Failure) -> None:
        """Go on without the yardstick."""
        is_unknown = failure.kind == "unsupported"
        self._absence, self._detail = "library" if is_unknown else "failed", failure.message
        self._kept.end()
        self._yardstick = None
        self._rounds.clear()


def in_one_block(blocks: Sequence[Block]) -> Block:
    """Return blocks that follow each other as one; a counter that one lacks is unknown."""
    return Block(
        durations_ns=tuple(took for block in blocks for took in block.durations_ns),
        wall_ns=sum(block.wall_ns for block in blocks),
        cpu_ns=sum(block.cpu_ns for block in blocks),
        steal_ticks=_total([block.steal_ticks for block in blocks]),
        total_ticks=_total([block.total_ticks for block in blocks]),
        throttled_ns=_total([block.throttled_ns for block in blocks]),
    )


def spread_evenly(rounds: Sequence[R], most: int) -> list[R]:
    """Return at most so many rounds, spread evenly over all."""
    kept = min(most, len(rounds))
    return [rounds[index * len(rounds) // kept] for index in range(kept)]


def _total(counts: Sequence[int | None]) -> int | None:
    known = [count for count in counts if count is not None]
    return sum(known) if len(known) == len(counts) else None


def _mean_ns(block: Block) -> int:
    return max(_low_ns(block), round(sum(block.durations_ns) / len(block.durations_ns)))


def _low_ns(block: Block) -> int:
    """Return the fastest of a block; a clock that stood still for it is no measurement of zero."""
    return max(1, min(block.durations_ns))


def _memory_of_fastest_ns(turn: YardstickBlock) -> int:
    """Return what of the fastest unit of a block went into its pass over memory."""
    durations = turn.block.durations_ns
    return turn.memory_ns[durations.index(min(durations))]


def _cpus(blocks: Sequence[Block]) -> float | None:
    wall_ns = sum(block.wall_ns for block in blocks)
    return sum(block.cpu_ns for block in blocks) / wall_ns if wall_ns else None
