"""The sequential rule: at 8, 12 and 20 launches, and never in between, may the gate decide.

Looking after every launch with a 95 % interval gave 11–18 % false alarms on equal sides (seen).
Three looks with the error split among them keep it below 1 %.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from pytest_ortbench.analysis.order import MAD_SCALE
from pytest_ortbench.gate.numbers.signed_rank import (
    hodges_lehmann,
    lower_bound,
    p_value,
    upper_bound,
)

#: What the launches so far may come to.
SLOWER, NOT_SLOWER, INCONCLUSIVE, GO_ON = "slower", "not slower", "inconclusive", "go on"

#: Normal deviates of a one-sided error of 1 % and of a power of 90 %.
_Z_ERROR, _Z_POWER = 2.326348, 1.281552

#: Asymptotic relative efficiency makes the signed-rank test need this much more than a mean.
_RANK_LOSS = 1.05

#: A median absolute deviation of few launches is no scale for a margin.
_FEWEST_FOR_SCALE = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """One point at which the gate may decide: so many launches, so much one-sided error."""

    launches: int
    alpha: float


@dataclass(frozen=True, slots=True, kw_only=True)
class LookPlan:
    """When to look, and what counts as a regression.

    Attributes:
        margin: Smallest slowdown that matters, as a share: 0.03.
        looks: In order of launches.
        pass_alpha: One-sided error of the upper bound that a pass stands on.
    """

    margin: float
    looks: tuple[Look, ...] = (
        Look(launches=8, alpha=0.004),
        Look(launches=12, alpha=0.003),
        Look(launches=20, alpha=0.003),
    )
    pass_alpha: float = 0.05

    @property
    def last(self) -> Look:
        """The look at which it ends."""
        return self.looks[-1]

    @property
    def alpha(self) -> float:
        """One-sided error over all looks."""
        return sum(look.alpha for look in self.looks)


#: Margins where the machine is shared with others, and where it is not.
SHARED_FLOOR = LookPlan(margin=0.03)
SHARED_TYPICAL = LookPlan(margin=0.05)
DEDICATED = LookPlan(margin=0.02)


@dataclass(frozen=True, slots=True, kw_only=True)
class LookVerdict:
    """What one statistic of one case comes to.

    All effects are shares: 0.05 means that the contender takes 5 % longer.

    Attributes:
        verdict: :data:`SLOWER`, :data:`NOT_SLOWER`, :data:`INCONCLUSIVE`, or :data:`GO_ON` up to
            :attr:`next_look`.
        estimate: Hodges–Lehmann estimate.
        low: Lower bound at the look's error; ``None`` with too few launches for one.
        high: Upper bound at 5 %, likewise.
        p: One-sided p-value of "not slower".
        launches: Launches that the look saw.
        improved: Whether the contender is faster: the upper bound is below no change, and the
            estimate beyond the margin. For information only.
        detectable: Smallest effect that so many launches would find in nine of ten cases;
            ``None`` with too few launches to tell.
        next_look: Launches at which it goes on; ``None`` once decided.
    """

    verdict: str
    estimate: float
    low: float | None
    high: float | None
    p: float
    launches: int
    improved: bool = False
    detectable: float | None = None
    next_look: int | None = None


def take_looks(contrasts: Sequence[float], plan: LookPlan, *, not_before: int = 0) -> LookVerdict:
    """Judge the launches made so far.

    Looks are taken in their order on the launches that each would have seen, and the first that
    decides counts; so what is said does not depend on how often one asks.

    Args:
        contrasts: One logarithm of contender ÷ baseline a launch, in order.
        plan: When to look.
        not_before: Launches before which no look decides: a case that its suite sent on (see
            :func:`pytest_ortbench.gate.numbers.family.correct_for_suite`) is judged at a later one.

    Raises:
        ValueError: if no launch was made, or no look is left to decide.
    """
    if not contrasts:
        raise ValueError("no launch was made")
    looks = [look for look in plan.looks if look.launches >= not_before]
    if not looks:
        raise ValueError(f"no look is left at {not_before} launches or more")
    judgement: LookVerdict | None = None
    for look in looks:
        if look.launches > len(contrasts):
            # Between looks only the estimate is told, and it decides nothing.
            return judgement or _describe(
                contrasts, look, plan, verdict=GO_ON, next_look=look.launches
            )
        judgement = _at_look(contrasts[: look.launches], look, plan)
        if judgement.verdict != GO_ON:
            return judgement
    raise AssertionError("unreachable: the last look always decides")


def _at_look(contrasts: Sequence[float], look: Look, plan: LookPlan) -> LookVerdict:
    margin = math.log1p(plan.margin)
    estimate = hodges_lehmann(contrasts)
    if lower_bound(contrasts, look.alpha) > 0 and estimate >= margin:
        return _describe(contrasts, look, plan, verdict=SLOWER)
    if upper_bound(contrasts, plan.pass_alpha) < margin:
        return _describe(contrasts, look, plan, verdict=NOT_SLOWER)
    if look == plan.last:
        return _describe(contrasts, look, plan, verdict=INCONCLUSIVE)
    following = plan.looks[plan.looks.index(look) + 1]
    return _describe(contrasts, look, plan, verdict=GO_ON, next_look=following.launches)


def _describe(
    contrasts: Sequence[float],
    look: Look,
    plan: LookPlan,
    *,
    verdict: str,
    next_look: int | None = None,
) -> LookVerdict:
    estimate = hodges_lehmann(contrasts)
    # By the bound that is shown: nothing depends on it but the word, and an interval wholly below
    # 1 beside "same" would contradict itself.
    improved = upper_bound(contrasts, plan.pass_alpha) < 0 and estimate <= -math.log1p(plan.margin)
    return LookVerdict(
        verdict=verdict,
        estimate=math.expm1(estimate),
        low=_share(lower_bound(contrasts, look.alpha)),
        high=_share(upper_bound(contrasts, plan.pass_alpha)),
        p=p_value(contrasts),
        launches=len(contrasts),
        improved=improved and verdict != GO_ON,
        detectable=detectable_effect(contrasts),
        next_look=next_look,
    )


def _share(bound: float) -> float | None:
    return math.expm1(bound) if math.isfinite(bound) else None


def launch_deviation(contrasts: Sequence[float]) -> float | None:
    """Return the robust standard deviation of launches: 1.4826 median absolute deviations."""
    if len(contrasts) < _FEWEST_FOR_SCALE:
        return None
    middle = median(contrasts)
    return MAD_SCALE * median(abs(contrast - middle) for contrast in contrasts)


def detectable_effect(contrasts: Sequence[float]) -> float | None:
    """Smallest slowdown found in 90 % of gates with this scatter and number of launches."""
    deviation = launch_deviation(contrasts)
    if deviation is None:
        return None
    shift = (_Z_ERROR + _Z_POWER) * _RANK_LOSS * deviation / math.sqrt(len(contrasts))
    return math.expm1(shift)


def deviation_of(detectable: float, launches: int) -> float:
    """Return the standard deviation of launches behind a :func:`detectable_effect` of so many."""
    return math.log1p(detectable) * math.sqrt(launches) / ((_Z_ERROR + _Z_POWER) * _RANK_LOSS)


def smallest_margin(deviation: float, launches: int) -> float:
    """The smallest margin that a machine can resolve: twice the standard error of equal sides.

    Args:
        deviation: Standard deviation of the launches of two equal sides, as a logarithm.
        launches: Launches of a gate.
    """
    return math.expm1(2 * deviation / math.sqrt(launches))
