"""Cases that may be ranked: by what, and when two of them can't be told apart for certain."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pytest_ortbench.analysis.judgements import flag_names
from pytest_ortbench.analysis.summary import Summary
from pytest_ortbench.core.case import Case
from pytest_ortbench.core.flags import ONE_WORKER
from pytest_ortbench.core.quantity import Quantity
from pytest_ortbench.passes.registry import unit_of

#: By how much the interval of a case is widened, each way, where a flag blurs its number. Five
#: per cent is the least that block medians on shared machines were seen to hold.
BLUR = 0.05

#: Gap that a single process can't prove, as a share of the smaller number: between processes the
#: same model was often seen to differ by this much, which its own interval does not hold.
ONE_WORKER_GAP = 0.05

#: Numbers that can't be told apart are even where neither may be this many times the other.
EVEN_WITHIN = 1.25


def speed_metric(case: Case) -> str:
    """Return the metric by which cases like this one are ranked and compared."""
    unit = unit_of(case)
    return "latency_p50" if unit is None else unit.speed[0]


@dataclass(frozen=True, slots=True)
class Candidate:
    """A case that may be ranked."""

    summary: Summary
    label: str
    variant: str = ""

    @property
    def batch(self) -> int:
        return self.summary.case.batch

    @property
    def speed(self) -> Quantity:
        return self.summary.quantities[speed_metric(self.summary.case)]

    @property
    def blurred_by(self) -> tuple[str, ...]:
        return flag_names(self.summary.flags, "blurs")

    @property
    def one_worker(self) -> bool:
        """Whether all of its samples are of one process, which shows no spread of processes."""
        return any(flag.name == ONE_WORKER for flag in self.summary.flags)

    def interval(self, metric: str) -> tuple[float, float]:
        """Return the metric's interval, widened where a flag blurs it."""
        quantity = self.summary.quantities[metric]
        low = quantity.value if quantity.low is None else quantity.low
        high = quantity.value if quantity.high is None else quantity.high
        wider = BLUR if self.blurred_by and metric != "model_size" else 0.0
        return low * (1 - wider), high * (1 + wider)


def is_tie(summary: Summary, other: Summary, metric: str) -> bool:
    """Whether the numbers of two measured cases can't be told apart; ``False`` if a side has none.

    Wherever two cases are compared in one run, this decides.
    """
    if metric not in summary.quantities or metric not in other.quantities:
        return False
    return are_tied(Candidate(summary, ""), Candidate(other, ""), metric)


def are_tied(best: Candidate, other: Candidate, metric: str) -> bool:
    """Whether two numbers can't be told apart."""
    if _overlap(best.interval(metric), other.interval(metric)):
        return True
    if metric == "model_size" or not (best.one_worker or other.one_worker):
        return False
    small, large = sorted(side.summary.quantities[metric].value for side in (best, other))
    return large <= small * (1 + ONE_WORKER_GAP)


def are_even(best: Candidate, other: Candidate, metric: str) -> bool:
    """Whether two numbers are known to be alike: their ratio is near 1 at both ends.

    Numbers that can't be told apart need not be: where they are noisy, nothing is known of them.
    """
    quantities = [side.summary.quantities[metric] for side in (best, other)]
    if any(quantity.low is None or quantity.high is None for quantity in quantities):
        return metric == "model_size"
    low, high = best.interval(metric)
    other_low, other_high = other.interval(metric)
    return other_high <= EVEN_WITHIN * low and high <= EVEN_WITHIN * other_low


def _overlap(span: tuple[float, float], other: tuple[float, float]) -> bool:
    return span[0] <= other[1] and other[0] <= span[1]


def doubts(best: Candidate, others: Sequence[Candidate], metric: str) -> tuple[str, ...]:
    """Return the flag that leaves doubt about a win that is no tie: one process says too little.

    However far apart the numbers are: what processes of it differ by was not seen at all.
    """
    if metric == "model_size":
        return ()
    doubtful = any(
        (best.one_worker or other.one_worker) and not are_tied(best, other, metric)
        for other in others
    )
    return (ONE_WORKER,) if doubtful else ()
