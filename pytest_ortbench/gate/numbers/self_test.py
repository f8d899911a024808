"""How often a gate is right: counts of its verdicts on sides whose difference is known."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from pytest_ortbench.analysis.order import proportion_interval
from pytest_ortbench.gate.numbers.looks import (
    SHARED_FLOOR,
    deviation_of,
    smallest_margin,
)

EQUAL = "equal"

#: Fewer gates on equal sides than this say nothing of what a model can be known to.
_FEWEST_FOR_RESOLUTION = 5

#: Inferences up to so long are told apart where it is said what a gate takes.
_LENGTHS_S = (0.010, 0.060, math.inf)


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """One gate on sides whose difference is known.

    Attributes:
        kind: ``equal``, ``+3 %``, …, ``wider``.
        slowdown: By how much the contender is slower, as a share; 0 for equal sides.
        model: Name of the model.
        verdict: What the gate said.
        effect: What it estimated; ``None`` where it could not.
        detectable: Smallest slowdown that it could have seen; likewise.
        launches: Launches made, those of a confirmation among them.
        latency_s: Fastest inference of the baseline.
        wall_s: Seconds that it took.
        flags: Names of its flags.
        load: Load average before it.
        at: UTC, ISO 8601.
        version: Version of this package.
        threads: Intra-op threads asked for; 0: as many as the machine has cores, or not known.
        decided_by: ``floor`` or ``typical``; empty if not known.
        other_effect: What the statistic that did not decide estimated; ``None`` if not known.
        reason: Why there is no verdict; empty if there is one.
    """

    kind: str
    slowdown: float
    model: str
    verdict: str
    effect: float | None = None
    detectable: float | None = None
    launches: int = 0
    latency_s: float = 0.0
    wall_s: float = 0.0
    flags: tuple[str, ...] = ()
    load: float = 0.0
    at: str = ""
    version: str = ""
    threads: int = 0
    decided_by: str = ""
    other_effect: float | None = None
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tally:
    """Verdicts on one kind of trials. Intervals are exact (Clopper–Pearson), 95 %.

    Attributes:
        kind: What was compared.
        trials: How many.
        slower: How many were called slower.
        inconclusive: How many ended without a verdict.
        slower_low: Lower end of the interval of the share called slower.
        slower_high: Upper end, likewise.
        effect: Median of the estimates, as a share; ``None`` without any.
        detectable: Median of the smallest slowdowns that could have been seen; likewise.
        wall_s: Median seconds a gate.
        latency_s: Median over the trials of the fastest inference.
    """

    kind: str
    trials: int
    slower: int
    inconclusive: int
    slower_low: float
    slower_high: float
    effect: float | None
    detectable: float | None
    wall_s: float
    latency_s: float = 0.0


def tally(trials: Sequence[Trial], kind: str, model: str = "") -> Tally:
    """Count the verdicts on one kind of trials.

    Args:
        trials: All of them.
        kind: Which ones count.
        model: Those on which model; empty: on any.

    Raises:
        ValueError: if there is none.
    """
    chosen = [
        trial for trial in trials if trial.kind == kind and (not model or trial.model == model)
    ]
    if not chosen:
        raise ValueError(f"there is no trial of kind {kind!r}")
    slower = sum(trial.verdict == "slower" for trial in chosen)
    low, high = proportion_interval(slower, len(chosen))
    effects = [trial.effect for trial in chosen if trial.effect is not None]
    seen = [trial.detectable for trial in chosen if trial.detectable is not None]
    return Tally(
        kind=kind,
        trials=len(chosen),
        slower=slower,
        inconclusive=sum(trial.verdict == "inconclusive" for trial in chosen),
        slower_low=low,
        slower_high=high,
        effect=median(effects) if effects else None,
        detectable=median(seen) if seen else None,
        wall_s=median(trial.wall_s for trial in chosen),
        latency_s=median(trial.latency_s for trial in chosen),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """How long gates of inferences of a length take.

    Attributes:
        up_to_s: Longest inference, in seconds; infinite for the last.
        gates: How many gates of any kind.
        wall_s: Median seconds of them.
    """

    up_to_s: float
    gates: int
    wall_s: float


def paces(trials: Sequence[Trial]) -> list[Pace]:
    """Seconds a gate, by the length of its inferences; lengths without a gate are left out."""
    by_length: list[Pace] = []
    above_s = 0.0
    for up_to_s in _LENGTHS_S:
        walls = [trial.wall_s for trial in trials if above_s < trial.latency_s <= up_to_s]
        if walls:
            by_length.append(Pace(up_to_s=up_to_s, gates=len(walls), wall_s=median(walls)))
        above_s = up_to_s
    return by_length


def resolution(trials: Sequence[Trial]) -> float | None:
    """Return the smallest margin that the machine resolves for any model it was tested with.

    Twice the standard error of a gate on equal sides with all its launches: by the scatter of the
    launches, the median over the gates of a model on so many threads, and the least of all.

    Returns:
        A share; ``None`` if no model had enough gates on equal sides.
    """
    deviations: dict[tuple[str, int], list[float]] = {}
    for trial in trials:
        if trial.kind == EQUAL and trial.detectable is not None and trial.launches:
            deviation = deviation_of(trial.detectable, trial.launches)
            deviations.setdefault((trial.model, trial.threads), []).append(deviation)
    enough = [median(of) for of in deviations.values() if len(of) >= _FEWEST_FOR_RESOLUTION]
    return smallest_margin(min(enough), SHARED_FLOOR.last.launches) if enough else None


def kinds_of(trials: Sequence[Trial]) -> list[str]:
    """Return the kinds of trials, by slowdown."""
    slowdowns = {trial.kind: trial.slowdown for trial in trials}
    return sorted(slowdowns, key=lambda kind: (slowdowns[kind], kind))
