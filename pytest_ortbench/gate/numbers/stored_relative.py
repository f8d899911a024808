"""What stored runs say of a latency through the yardstick that took turns with the model in each.

One run gives one number, the ratio of the model to the yardstick, which often differs between runs
of the same code by less than the latency itself does. By how much says the machine's self-test, or
where it has none :data:`SPREAD`, which is what it is at best; and several stored runs of one case
say it of this case: both are pooled, as a prior of so many degrees of freedom and a sample. A
shared machine has states in which the ratio is another one for minutes. So what is said here
informs, and fails nothing, unless the self-test of the machine found it to be right
(:func:`pytest_ortbench.gate.numbers.stored_trials.spreads_of`).

``slower`` asks for a ratio that is beyond the margin, and for a one-sided error of
:data:`ALPHA`. ``same`` rules out a slowdown of the margin. Where no margin was asked for, it is
that of the stored gate, or what so many runs resolve, if that is more: ``same`` then says less, but
never less than :data:`MOST_TOLERATED`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist, fmean, median, stdev

from pytest_ortbench.analysis.relative_latency import (
    LOWS,
    RelativeLatency,
    memory_weight,
    weighed,
)
from pytest_ortbench.core.gate import ContrastVerdict

#: Smallest slowdown between two runs that matters where nothing else is said.
STORED_MARGIN = 0.05


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSpread:
    """By how much the ratios of runs of the same code differ.

    Attributes:
        deviation: Standard deviation of the logarithm of a run's ratio.
        degrees: Degrees of freedom that it is known with.
        largest: How far a run was above the middle of others at most, as a logarithm: as much is
            never called slower.
        decides: Whether verdicts on this machine were right so often that they decide.
    """

    deviation: float
    degrees: int
    largest: float = 0.0
    decides: bool = False


#: Standard deviation of the logarithm of one run's ratio of three launches, between runs of the
#: same code in a calm hour, by what the ratio is made of; ``docs/concepts/yardstick.md`` has more.
#: ``blocks`` and ``floors`` are of trials by older versions.
SPREAD = {LOWS: 0.028, "blocks": 0.010, "floors": 0.010}

#: What the spread above counts for beside the runs at hand, in degrees of freedom.
PRIOR = 10

#: Launches that it holds for; fewer of them give a wider one.
_LAUNCHES = 3

#: One-sided error of ``slower`` and of ``faster``: one false alarm in 200 comparisons.
ALPHA = 0.005

#: Deviations that a slowdown must be beyond its bound to be found in nine of ten cases.
_FOUND = NormalDist().inv_cdf(0.9)

#: In how many of a hundred comparisons of equal code the margin lets ``same`` be said.
_SAME_PERCENT = 85

#: What runs resolve widens the margin to this at most: ``same`` always rules out as much.
MOST_TOLERATED = 0.20

STATISTIC = "relative"


def relative_contrast(
    history: Sequence[RelativeLatency],
    now: RelativeLatency,
    margin: float,
    *,
    asked: bool,
    spread: RunSpread | None = None,
) -> ContrastVerdict:
    """Judge a ratio by those of stored runs.

    Args:
        history: Ratios of the stored runs, at least one, all of which compare with ``now``.
        now: The ratio of this run.
        margin: Smallest slowdown that matters.
        asked: Whether somebody asked for this margin. Then ``same`` rules out no other one.
        spread: By how much runs of the same code differ on this machine; ``None`` if that is not
            known.

    Returns:
        The verdict, with the margin that it holds for. ``detectable`` is the smallest slowdown
        that would be found in nine of ten cases.
    """
    weight = memory_weight(history)
    history, now = [weighed(ratio, weight) for ratio in history], weighed(now, weight)
    before = [math.log(ratio.value) for ratio in history]
    effect = math.log(now.value) - median(before)
    if spread is None:
        spread = RunSpread(deviation=SPREAD[now.estimator], degrees=PRIOR)
    degrees, deviation = _deviation(before, history, now, spread)
    error = deviation * math.sqrt(1 + 1 / len(before))
    reach = max(student(1 - ALPHA, degrees) * error, _seen(spread, len(before)))
    low, high = math.expm1(effect - reach), math.expm1(effect + reach)
    resolved = min(_resolved(spread, len(before)), MOST_TOLERATED)
    tolerated = margin if asked else max(margin, resolved)
    verdict, holds_for = "inconclusive", margin
    if low > 0 and math.expm1(effect) >= margin:
        verdict = "slower"
    elif high < tolerated:
        is_faster = high < 0 and effect <= -math.log1p(margin)
        verdict, holds_for = ("faster", margin) if is_faster else ("same", tolerated)
    return ContrastVerdict(
        statistic=STATISTIC,
        verdict=verdict,
        effect=math.expm1(effect),
        low=low,
        high=high,
        margin=holds_for,
        # No p-value: the error is that of one comparison, and not shared with other cases.
        p=1.0,
        launches=len(now.ratios),
        detectable=max(margin, math.expm1(reach + _FOUND * error)),
    )


def _resolved(spread: RunSpread, runs: int) -> float:
    """The margin that so many stored runs allow, whatever these runs scatter.

    A noisy run must not widen what it is held to.
    """
    error = spread.deviation * math.sqrt(1 + 1 / runs)
    reach = max(student(1 - ALPHA, spread.degrees) * error, _seen(spread, runs))
    return math.expm1(reach + NormalDist().inv_cdf(_SAME_PERCENT / 100) * error)


def _seen(spread: RunSpread, runs: int) -> float:
    """How far a run of the same code was above others, and their middle may be off besides."""
    return spread.largest and spread.largest + spread.deviation / math.sqrt(runs)


def student(share: float, degrees: float) -> float:
    """Return a quantile of Student's t.

    By the expansion around the normal quantile: M. Abramowitz and I. A. Stegun, *Handbook of
    Mathematical Functions*, 26.7.5, which is within 0.1 % for ten degrees of freedom and more.

    Args:
        share: Of the distribution that lies below.
        degrees: Degrees of freedom, 10 at least.
    """
    normal = NormalDist().inv_cdf(share)
    cubed, fifth = normal**3, normal**5
    first = (cubed + normal) / 4
    second = (5 * fifth + 16 * cubed + 3 * normal) / 96
    third = (3 * normal**7 + 19 * fifth + 17 * cubed - 15 * normal) / 384
    return normal + first / degrees + second / degrees**2 + third / degrees**3


def _deviation(
    before: Sequence[float],
    history: Sequence[RelativeLatency],
    now: RelativeLatency,
    spread: RunSpread,
) -> tuple[float, float]:
    """Degrees of freedom, and the deviation of a run's logarithm, never below that of launches."""
    launches = min(len(ratio.ratios) for ratio in (*history, now))
    known = spread.deviation * math.sqrt(max(1.0, _LAUNCHES / launches))
    squares = spread.degrees * known**2
    degrees = spread.degrees + len(before) - 1
    if len(before) > 1:
        mean = fmean(before)
        squares += sum((value - mean) ** 2 for value in before)
    return degrees, max(math.sqrt(squares / degrees), _of_launches(now))


def _of_launches(now: RelativeLatency) -> float:
    """How far off the middle of this run's launches may be, as they differ among themselves."""
    logarithms = [math.log(ratio) for ratio in now.ratios]
    if len(logarithms) < _LAUNCHES:
        return 0.0
    return stdev(logarithms) / math.sqrt(len(logarithms))
