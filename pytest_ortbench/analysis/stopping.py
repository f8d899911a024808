"""How many inferences the next block has, and when a worker has measured enough. Knows no clock."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median

from pytest_ortbench.analysis.order import order_statistic, samples_needed
from pytest_ortbench.core.case import Sampling
from pytest_ortbench.core.outcome import Block

#: Length of a block. Shorter ones would make the exchange with the worker a visible part of the
#: time, longer ones would make CPU share and steal time coarse.
BLOCK_NS = 250_000_000

#: The most inferences in a block: what travels back stays below a quarter of a megabyte.
MAX_ITERATIONS = 20_000

#: The fewest samples of a worker, whatever they cost.
MIN_SAMPLES = 3

#: The median counts as known only if the medians of segments this long agree, too: consecutive
#: inferences resemble each other, so their own interval gets narrow long before it is true.
SEGMENT_NS = 50_000_000
MAX_SEGMENTS = 30

#: Samples that are looked at to judge the median, after every block; more would keep the worker
#: waiting and the host busy.
_LOOKED_AT = 3_000

#: Share of the time left until the deadline that a block may take.
_SHARE_OF_TIME_LEFT = 0.5


@dataclass(slots=True, kw_only=True)
class StopRule:
    """Decides about one worker.

    Attributes:
        budget_ns: Timed nanoseconds of this worker.
        target: Stop once the half-width of the median's interval is below this share of it.
        needed: Samples that this worker must give even beyond its budget.
        enough: Samples without which the target does not count as reached.
        least_ns: Timed nanoseconds without which it does not either.
        typical_ns: What one inference is expected to take, known from the warm-up; 0 if unknown.
        reason: After the end: ``target``, ``budget`` or ``timeout``.
    """

    budget_ns: float
    target: float
    needed: int = MIN_SAMPLES
    enough: int = MIN_SAMPLES
    least_ns: float = 0.0
    typical_ns: float = 0.0
    reason: str = ""

    @classmethod
    def for_worker(
        cls, sampling: Sampling, *, typical_ns: float = 0.0, least_ns: float = 0.0
    ) -> StopRule:
        """Return the rule for each of the workers of a case.

        A worker owes its share of the samples that a median needs (6) and that a limit needs,
        even past the budget. It stops early only with its share of what a p99 needs (368), since
        that is what the table shows, and with the rounds that a yardstick needs.
        """
        workers = max(1, sampling.workers)
        needed = max(
            MIN_SAMPLES,
            math.ceil(samples_needed(50) / workers),
            math.ceil(sampling.min_samples / workers),
        )
        return cls(
            budget_ns=sampling.time_s * 1e9 / workers,
            target=sampling.target,
            needed=needed,
            enough=max(needed, math.ceil(samples_needed(99) / workers)),
            typical_ns=typical_ns,
            least_ns=least_ns,
        )

    def next_block(self, blocks: Sequence[Block], *, left_s: float | None = None) -> int | None:
        """Return how many inferences to time next.

        Args:
            blocks: All timed blocks of this worker so far.
            left_s: Seconds that this worker may still spend on timing; ``None`` for no limit.

        Returns:
            At least 1, or ``None`` to stop; then :attr:`reason` says why.
        """
        count = sum(len(block.durations_ns) for block in blocks)
        spent_ns = sum(block.wall_ns for block in blocks)
        each_ns = max(1.0, spent_ns / count if count else self.typical_ns or BLOCK_NS)
        at_most = MAX_ITERATIONS
        if left_s is not None:
            at_most = min(at_most, int(left_s * 1e9 * _SHARE_OF_TIME_LEFT / each_ns))
            if at_most < 1 and count:
                self.reason = "timeout"
                return None
        left_ns = self.budget_ns - spent_ns
        if count >= self.needed:
            if left_ns < each_ns / 2:
                self.reason = "budget"
                return None
            is_enough = count >= self.enough and spent_ns >= self.least_ns
            if is_enough and median_is_known(blocks, self.target):
                self.reason = "target"
                return None
        # Equal blocks up to the end of the budget, so that no sliver of a block is left over.
        blocks_left = max(1, round(left_ns / BLOCK_NS))
        block_ns = min(left_ns / blocks_left, 1.5 * BLOCK_NS)
        wanted = round(block_ns / each_ns)
        if wanted < self.needed - count:
            wanted = min(self.needed - count, round(BLOCK_NS / each_ns))
        return max(1, min(wanted, at_most))


def median_is_known(blocks: Sequence[Block], target: float) -> bool:
    """Whether the median of these blocks is known to ``± target``, as a share of it.

    Both the interval of the median over the samples and the one over medians of segments of at
    least 50 ms must be that narrow.
    """
    count = sum(len(block.durations_ns) for block in blocks)
    segments = min(MAX_SEGMENTS, count, sum(block.wall_ns for block in blocks) // SEGMENT_NS)
    if segments < samples_needed(50):
        return False
    looked_at = _every(blocks, math.ceil(count / _LOOKED_AT))
    bounds = [len(looked_at) * index // segments for index in range(segments + 1)]
    medians = [round(median(looked_at[start:stop])) for start, stop in pairwise(bounds)]
    return _is_narrow(looked_at, target) and _is_narrow(medians, target)


def _every(blocks: Sequence[Block], stride: int) -> list[int]:
    """Every ``stride``-th duration over all blocks, without laying them side by side first."""
    looked_at: list[int] = []
    start = 0
    for block in blocks:
        looked_at += block.durations_ns[start::stride]
        start = (start - len(block.durations_ns)) % stride
    return looked_at


def _is_narrow(values: Sequence[int], target: float) -> bool:
    statistic = order_statistic(sorted(values), 50)
    if statistic.low_ns is None or statistic.high_ns is None:
        return False
    return statistic.high_ns - statistic.low_ns <= 2 * target * statistic.value_ns
