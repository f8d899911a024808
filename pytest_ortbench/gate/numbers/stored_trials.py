"""How often a stored run says the right thing of a latency: runs of one code, judged by each other.

Every run of a case is a trial. It is judged by others of its case, which measured the same code: so
each ``slower`` is a false alarm. The same ratio multiplied by 1.1 or 1.2 is a run that is slower by
so much. What is known of how far runs differ comes from all trials but the one that is judged, as
it does where a stored baseline is compared on this machine (:func:`run_spreads`).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from statistics import fmean, median

from pytest_ortbench.analysis.order import proportion_interval
from pytest_ortbench.analysis.relative_latency import (
    LOWS,
    NoRelativeLatency,
    RelativeLatency,
    blurs_ratios,
    memory_weight,
    mismatch,
    relative_latency,
    weighed,
)
from pytest_ortbench.core.outcome import CaseResult
from pytest_ortbench.gate.numbers.stored_relative import (
    SPREAD,
    STORED_MARGIN,
    RunSpread,
    relative_contrast,
)

#: By how much a run is made slower, by calculation.
SLOWDOWNS = (0.0, 0.10, 0.20)

#: Runs that one is judged by at most, as many as a baseline has.
MOST_RUNS = 10

#: Verdicts on runs that can be judged.
JUDGED = ("slower", "inconclusive", "same", "faster")

#: What verdicts on ratios of one estimator must have come to before they decide: of so many
#: comparisons of equal code at least, so large a share of false alarms at most; and so large a
#: slowdown found in so large a share, and never called the same.
LEAST_JUDGED, MOST_FALSE, LEAST_FOUND = 100, 1 / 200, 0.9
FOUND = {LOWS: 0.20, "blocks": 0.10, "floors": 0.10}

#: Fewer degrees of freedom say less than what is known of machines in general.
FEWEST_DEGREES = 10


class Way(Enum):
    """How the runs are chosen that one is judged by."""

    #: Those nearest in time, before and after it.
    NEAREST = "nearest"
    #: The latest before it, as a real baseline has them.
    EARLIER = "earlier"


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredTrial:
    """One run of one case.

    Attributes:
        model: Name of the model.
        threads: Intra-op threads asked for; 0: as many as the machine has cores.
        relative: Its latency against a yardstick; ``None`` where there is none.
        cause: Why there is none, as :class:`NoRelativeLatency` says it, or the status of the case;
            empty if there is one.
        flags: Names of its flags.
        load: Load average before it.
        wall_s: Seconds that it took.
        at: UTC, ISO 8601.
        version: Version of this package.
    """

    model: str
    threads: int
    relative: RelativeLatency | None = None
    cause: str = ""
    flags: tuple[str, ...] = ()
    load: float = 0.0
    wall_s: float = 0.0
    at: str = ""
    version: str = ""

    def __post_init__(self) -> None:
        """Refuse a ratio that can't be one: trials are read from files."""
        ratio = self.relative
        if ratio is None:
            return
        numbers = (ratio.value, ratio.low, ratio.high, *ratio.ratios)
        if not ratio.ratios:
            raise ValueError("'ratios' is empty")
        for number in numbers:
            if not 0 < number < math.inf:
                raise ValueError(f"the ratio {number:g} is not above 0 and finite")
        if ratio.estimator not in SPREAD:
            raise ValueError(f"'estimator' is {ratio.estimator!r}, none of {', '.join(SPREAD)}")

    @property
    def blurring(self) -> tuple[str, ...]:
        """Names of the flags for which a gate has no verdict on a ratio, and takes none by it."""
        return blurs_ratios(self.flags)

    @property
    def case(self) -> tuple[str, int]:
        """What its runs share: model and threads."""
        return self.model, self.threads


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredTally:
    """Verdicts on runs of one slowdown. Intervals are exact (Clopper–Pearson), 95 %.

    Attributes:
        way: How the runs were chosen that they were judged by.
        slowdown: By how much the runs were made slower.
        verdicts: How many of each; ``flagged`` are those whose flags leave them without a verdict,
            ``incomparable`` those without any run to be judged by.
        slower_low: Lower end of the interval of the share called slower, of those judged.
        slower_high: Upper end, likewise.
    """

    way: Way
    slowdown: float
    verdicts: Mapping[str, int]
    slower_low: float
    slower_high: float

    @property
    def judged(self) -> int:
        """How many could be judged."""
        return sum(self.verdicts.get(name, 0) for name in JUDGED)


def trial_of(result: CaseResult, *, load: float, at: str, version: str) -> StoredTrial:
    """Return what a trial keeps of a run.

    Args:
        result: What was measured.
        load: Load average before it.
        at: When, UTC, ISO 8601.
        version: Of this package.
    """
    trial = StoredTrial(
        model=result.case.model.name,
        threads=result.case.session.intra_op_num_threads or 0,
        flags=tuple(flag.name for flag in result.flags),
        load=load,
        wall_s=round(result.wall_s, 2),
        at=at,
        version=version,
    )
    if result.status != "measured":
        return replace(trial, cause=result.status)
    relative = relative_latency(result)
    if isinstance(relative, NoRelativeLatency):
        return replace(trial, cause=relative.cause)
    return replace(trial, relative=relative)


def run_spreads(trials: Iterable[StoredTrial]) -> dict[str, RunSpread]:
    """Return by how much runs of the same code differ here, by what their ratio is made of.

    All cases are pooled, but for runs whose flags leave a gate without a verdict. What too few runs
    have is left out.
    """
    runs: dict[tuple[str, str, int, str], list[RelativeLatency]] = {}
    for trial in trials:
        ratio = trial.relative
        if ratio is not None and not trial.blurring:
            group = (ratio.estimator, *trial.case, ratio.yardstick.identity)
            runs.setdefault(group, []).append(ratio)
    squares: dict[str, float] = {}
    degrees: Counter[str] = Counter()
    largest: dict[str, float] = {}
    for (name, *_), of_case in runs.items():
        apart = _apart(of_case)
        if len(apart) > 1:
            variance = fmean(way.square for way in apart)
            squares[name] = squares.get(name, 0.0) + (len(apart) - 1) * variance
            degrees[name] += len(apart) - 1
            largest[name] = max([largest.get(name, 0.0), *(way.above for way in apart)])
    return {
        name: RunSpread(
            deviation=math.sqrt(squares[name] / degrees[name]),
            degrees=degrees[name],
            largest=largest[name],
        )
        for name in squares
        if degrees[name] >= FEWEST_DEGREES
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class _Apart:
    """How far one run is from others of its case.

    Attributes:
        square: Of its distance to their mean, as the variance of one run that it stands for.
        above: How far it is above their middle.
    """

    square: float
    above: float


def _apart(runs: Sequence[RelativeLatency]) -> list[_Apart]:
    """Return how far each run is from those that compare with it, on a scale of logarithms."""
    weight = memory_weight(runs)
    scaled = [(run, math.log(weighed(run, weight).value)) for run in runs]
    ways = []
    for index, (run, value) in enumerate(scaled):
        others = [
            other_value
            for number, (other, other_value) in enumerate(scaled)
            if number != index and mismatch(other, run) is None
        ]
        if others:
            distance = value - fmean(others)
            square = distance**2 / (1 + 1 / len(others))
            ways.append(_Apart(square=square, above=value - median(others)))
    return ways


def spreads_of(trials: Sequence[StoredTrial]) -> dict[str, RunSpread]:
    """Return by how much runs differ here, and whether verdicts that rest on it decide.

    Args:
        trials: All of them, in the order of time.
    """
    return {
        name: replace(spread, decides=_are_right(trials, name))
        for name, spread in run_spreads(trials).items()
    }


def _are_right(trials: Sequence[StoredTrial], estimator: str) -> bool:
    """Whether verdicts on each run by those before it were right often enough."""
    judged = [
        (index, run_spreads([*trials[:index], *trials[index + 1 :]]))
        for index, trial in enumerate(trials)
        if trial.relative is not None and trial.relative.estimator == estimator
    ]
    slowdown = FOUND[estimator]
    equal, slower = (
        Counter(
            verdict_on(index, trials, spreads, slowdown=by, way=Way.EARLIER)
            for index, spreads in judged
        )
        for by in (0.0, slowdown)
    )
    comparisons = sum(equal[name] for name in JUDGED)
    return (
        comparisons >= LEAST_JUDGED
        and equal["slower"] <= MOST_FALSE * comparisons
        and slower["slower"] >= LEAST_FOUND * comparisons
        and not slower["same"]
    )


def tallies(
    trials: Sequence[StoredTrial], case: tuple[str, int] | None = None
) -> list[StoredTally]:
    """Return the verdicts on trials, for each way and slowdown.

    Args:
        trials: All of them, in the order of time.
        case: Which of them are judged; ``None`` for all.
    """
    judged = [
        (index, run_spreads([*trials[:index], *trials[index + 1 :]]))
        for index, trial in enumerate(trials)
        if case in (None, trial.case)
    ]
    return [
        _tally(
            way,
            slowdown,
            Counter(
                verdict_on(index, trials, spreads, slowdown=slowdown, way=way)
                for index, spreads in judged
            ),
        )
        for way in Way
        for slowdown in SLOWDOWNS
    ]


def _tally(way: Way, slowdown: float, verdicts: Counter[str]) -> StoredTally:
    judged = sum(verdicts[name] for name in JUDGED)
    low, high = proportion_interval(verdicts["slower"], judged) if judged else (0.0, 1.0)
    return StoredTally(
        way=way,
        slowdown=slowdown,
        verdicts={verdict: count for verdict, count in verdicts.items() if count},
        slower_low=low,
        slower_high=high,
    )


def verdict_on(
    index: int,
    trials: Sequence[StoredTrial],
    spreads: Mapping[str, RunSpread],
    *,
    slowdown: float,
    way: Way,
) -> str:
    """Return what the stored runs say of one trial that is made slower by so much.

    Args:
        index: Which one it is.
        trials: All of them, in the order of time.
        spreads: By how much runs differ, by estimator.
        slowdown: By how much it is made slower.
        way: How the runs are chosen that it is judged by.
    """
    now = trials[index].relative
    if now is None:
        return "incomparable"
    if trials[index].blurring:
        return "flagged"
    others = sorted(
        (number for number in range(len(trials)) if number != index),
        key=lambda number: abs(number - index),
    )
    if way is Way.EARLIER:
        others = [number for number in others if number < index]
    nearest = [
        (number, ratio)
        for number in others
        for ratio in [trials[number].relative]
        if trials[number].case == trials[index].case
        and ratio is not None
        and not trials[number].blurring
        and mismatch(ratio, now) is None
    ][:MOST_RUNS]
    if not nearest:
        return "incomparable"
    history = [ratio for _, ratio in sorted(nearest, key=lambda entry: entry[0])]
    spread = spreads.get(now.estimator)
    slower = made_slower(now, slowdown)
    return relative_contrast(history, slower, STORED_MARGIN, asked=False, spread=spread).verdict


def made_slower(ratio: RelativeLatency, slowdown: float) -> RelativeLatency:
    """Return a ratio as that of a model which takes so much longer."""
    factor = 1 + slowdown
    return replace(
        ratio,
        ratios=tuple(factor * of_launch for of_launch in ratio.ratios),
        value=factor * ratio.value,
        low=factor * ratio.low,
        high=factor * ratio.high,
        by_weight=tuple(
            tuple(factor * of_launch for of_launch in of_weight) for of_weight in ratio.by_weight
        ),
    )
