"""The ratio of two things that were timed in the same rounds, so that slow minutes are in both."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median
from typing import Protocol

from pytest_ortbench.analysis.between_processes import OfProcess, over_processes
from pytest_ortbench.analysis.order import interval_ranks


def paired_ratio(above_ns: Sequence[int], below_ns: Sequence[int]) -> OfProcess:
    """Return the median of the ratios of the rounds, with its interval by order statistics.

    Args:
        above_ns: What is divided, one entry a round.
        below_ns: What it is divided by.
    """
    ratios = sorted(above / below for above, below in zip(above_ns, below_ns, strict=True))
    first, last = interval_ranks(50, len(ratios)) or (1, len(ratios))
    return OfProcess(ratios[first - 1], median(ratios), ratios[last - 1])


@dataclass(frozen=True, slots=True, kw_only=True)
class PairedRatio:
    """A ratio over several launches of fresh processes.

    Attributes:
        value: The median of the launches.
        low: Lower end of its 95 % interval over fresh processes.
        high: Upper end.
        above_s: Median of what is divided, in seconds.
        below_s: Median of what it is divided by, in the same rounds.
        rounds: Rounds of all launches.
    """

    value: float
    low: float
    high: float
    above_s: float
    below_s: float
    rounds: int


class TimedLaunch(Protocol):
    """Rounds of fresh processes."""

    @property
    def pair(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """What is divided in a ratio, and what it is divided by."""


class TimedInTurns(Protocol):
    """What was timed in turns, or why it was not."""

    @property
    def reason(self) -> str:
        """Why there are no launches; empty if there are."""

    @property
    def launches(self) -> Sequence[TimedLaunch]:
        """Each time that fresh processes were started."""


def ratio_in_turns(facts: TimedInTurns) -> PairedRatio | str:
    """Return the ratio over launches, or why there is none."""
    if facts.reason:
        return facts.reason
    pairs = [launch.pair for launch in facts.launches]
    own = [paired_ratio(above, below) for above, below in pairs]
    low, high = over_processes(own)
    return PairedRatio(
        value=median(launch.value for launch in own),
        low=low,
        high=high,
        above_s=median(ns for above, _ in pairs for ns in above) * 1e-9,
        below_s=median(ns for _, below in pairs for ns in below) * 1e-9,
        rounds=sum(len(above) for above, _ in pairs),
    )
