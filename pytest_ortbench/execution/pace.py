"""How many workers a case has, and how long each times: as was asked for, or by a budget."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

from pytest_ortbench.analysis.samples import statistic_of
from pytest_ortbench.core.case import Case
from pytest_ortbench.core.outcome import BudgetShare, Measurement
from pytest_ortbench.execution.budget import (
    LEAST_TIMED_S,
    LEAST_WORKERS,
    Turn,
    with_sampling,
)
from pytest_ortbench.execution.time_share import TimeShare

#: Another worker begins if so much of what it takes is left of the time of its case: so cases end
#: as often behind it as before it.
_BEGUN_SHARE = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class NextWorker:
    """What the next worker of a case may take.

    Attributes:
        case: The case with its share of workers and timed seconds.
        share: Until when it may time.
    """

    case: Case
    share: TimeShare


class Pacing(Protocol):
    """Says before each worker of a case what it may take."""

    def begin(self) -> None:
        """The reference is there: from here on the case's own time runs."""

    def next_worker(self, done: Sequence[Measurement]) -> NextWorker | None:
        """Return what the next worker may take; ``None`` if the case has had its last."""


@dataclass(slots=True)
class FixedPace:
    """As many workers as were asked for, within the timeout of the case.

    Attributes:
        case: The case.
    """

    case: Case
    _deadline: float = 0.0

    def begin(self) -> None:
        """As for any pace."""
        self._deadline = time.monotonic() + self.case.sampling.timeout_s

    def next_worker(self, done: Sequence[Measurement]) -> NextWorker | None:
        """As for any pace."""
        left = self.case.sampling.workers - len(done)
        if left <= 0:
            return None
        share = TimeShare(began=time.monotonic(), deadline=self._deadline, workers_left=left)
        return NextWorker(case=self.case, share=share)


@dataclass(slots=True)
class BudgetPace:
    """Three workers at least, and then as many as there is time for, within a turn of a budget.

    The three get longer blocks first, up to those that they have without a budget; what is still
    left makes further workers.

    Attributes:
        case: The case.
        turn: What its budget gives it.
        clock: That of the budget.
        timed_s: What the next worker is timed for.
    """

    case: Case
    turn: Turn
    clock: Callable[[], float] = time.monotonic
    timed_s: float = 0.0
    _deadline: float = 0.0
    _began: float = 0.0
    _begins_late: bool = False
    _beside_s: list[float] = field(default_factory=list)
    _asked_s: float = 0.0
    _workers: int = LEAST_WORKERS

    def begin(self) -> None:
        """As for any pace."""
        self._deadline = min(self.turn.at_most, self.clock() + self.case.sampling.timeout_s)
        # What there is now is of other sizes, if these are the second ones.
        self._beside_s.clear()
        self._asked_s = 0.0

    def next_worker(self, done: Sequence[Measurement]) -> NextWorker | None:
        """As for any pace."""
        now = self.clock()
        if done:
            # Of the time that was asked for: what a last block took longer comes again.
            self._beside_s.append(now - self._began - self.timed_s)
        left_s = self.turn.until - now
        if len(done) >= self.turn.most_workers:
            return None
        if len(done) >= LEAST_WORKERS:
            lacks_time = left_s < _BEGUN_SHARE * (self._worker_s() + self.timed_s)
            if lacks_time or self.turn.is_tight or self._is_outrun(done):
                return None
        elif done and now + self._worker_s() > self._deadline:
            return None
        else:
            more_s = 0.0 if done or self.turn.expected is None else self.turn.expected.first_s
            each_s = (left_s - more_s) / (LEAST_WORKERS - len(done)) - self._worker_s()
            usual_s = self.case.sampling.time_s / LEAST_WORKERS
            self.timed_s = max(LEAST_TIMED_S, min(usual_s, each_s))
            if self.turn.is_tight or self._is_outrun(done):
                self.timed_s = LEAST_TIMED_S
        self._began = now
        self._begins_late = now + self._worker_s() + LEAST_TIMED_S > self._deadline
        self._asked_s += self.timed_s
        # Where inferences are long, each worker has its share of what may still be taken.
        expected = self.turn.expected
        is_slow = expected is not None and expected.timed_s > 1.5 * LEAST_WORKERS * LEAST_TIMED_S
        workers_left = max(1, LEAST_WORKERS - len(done)) if is_slow else 1
        if not done:
            self._workers = max(LEAST_WORKERS, int(left_s / (self._worker_s() + self.timed_s)))
        return NextWorker(
            case=self._thinned(with_sampling(self.case, LEAST_WORKERS, self.timed_s)),
            share=TimeShare(began=now, deadline=self._deadline, workers_left=workers_left),
        )

    @property
    def begins_late(self) -> bool:
        """Whether the last worker began with less time than any worker takes."""
        return self._begins_late

    def _thinned(self, case: Case) -> Case:
        """The case with as many durations kept of a worker as so many workers leave to each."""
        keep = case.sampling.keep
        if keep:
            of_each = max(1, keep // min(self._workers, self.turn.most_workers))
            keep = LEAST_WORKERS * of_each
        return replace(case, sampling=replace(case.sampling, keep=keep))

    def _worker_s(self) -> float:
        """What a worker takes beside its timed blocks: the first one has more to do."""
        later = self._beside_s[1:]
        if later:
            return sum(later) / len(later)
        expected = self.turn.expected
        if expected is None:
            return 0.0
        if self._beside_s:
            # What only the first one does is known less well than that it takes some time.
            least_s = self._beside_s[0] / 2
            return max(least_s, self._beside_s[0] - expected.first_s)
        return expected.worker_s

    def _is_outrun(self, done: Sequence[Measurement]) -> bool:
        """Whether the workers so far say that a rival is faster by far."""
        if not self.turn.outrun_s or not done:
            return False
        medians = [statistic_of(measurement.samples, 50) for measurement in done]
        lows = [own.value_ns if own.low_ns is None else own.low_ns for own in medians]
        return min(lows) * 1e-9 > self.turn.outrun_s

    def share_of(self, done: Sequence[Measurement]) -> BudgetShare:
        """Return what the case had of the budget."""
        return BudgetShare(
            given_s=self.turn.given_s,
            workers=len(done),
            timed_s=self._asked_s,
            outrun=self._is_outrun(done),
        )
