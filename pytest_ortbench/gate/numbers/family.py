"""The gate of a whole suite: many cases, one error rate."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import Generic, TypeVar

from pytest_ortbench.gate.numbers.looks import SLOWER, LookPlan, LookVerdict
from pytest_ortbench.gate.numbers.signed_rank import smallest_p

#: Probability of one false regression or more in a suite without any. At 1 % a case, 24 cases
#: would raise a false alarm in every fifth run.
FAMILY_ALPHA = 0.01

Key = TypeVar("Key", bound=Hashable)


@dataclass(frozen=True, slots=True, kw_only=True)
class Corrected(Generic[Key]):
    """Flagged cases of a suite, sorted by what to do with them.

    Attributes:
        confirmed: Regressions that stand at the error rate of the family.
        go_on: Flagged cases that need more launches, and up to how many.
        unconfirmed: Flagged cases that had all launches and do not stand: inconclusive.
    """

    confirmed: frozenset[Key]
    go_on: dict[Key, int]
    unconfirmed: frozenset[Key]


def holm(p_values: Mapping[Key, float], alpha: float = FAMILY_ALPHA) -> frozenset[Key]:
    """Return the keys whose hypothesis is rejected at the family-wise error ``alpha``.

    S. Holm, Scandinavian Journal of Statistics 6 (1979) 65–70: the smallest p-value is
    compared with ``alpha / m``, the next with ``alpha / (m − 1)``, until one fails.
    """
    rejected: set[Key] = set()
    for index, (key, p) in enumerate(sorted(p_values.items(), key=lambda pair: pair[1])):
        if p > alpha / (len(p_values) - index):
            break
        rejected.add(key)
    return frozenset(rejected)


def adjusted_p(p: float, launches: int, plan: LookPlan) -> float:
    """Return a p-value that stays one although several looks may be taken.

    A look that may spend the share ``w`` of the error counts its p-value as ``p / w``; the
    smallest over all looks is then below ``x`` with a probability of at most ``x``.

    Raises:
        ValueError: if there is no look at so many launches.
    """
    for look in plan.looks:
        if look.launches == launches:
            return min(1.0, p * plan.alpha / look.alpha)
    raise ValueError(f"there is no look at {launches} launches")


def deciding_look(cases: int, plan: LookPlan) -> int | None:
    """Return the first look whose smallest p-value can pass Holm's first step among ``cases``.

    Returns:
        Its number of launches; ``None`` if not even the last one can.
    """
    for look in plan.looks:
        if adjusted_p(smallest_p(look.launches), look.launches, plan) <= FAMILY_ALPHA / cases:
            return look.launches
    return None


def correct_for_suite(judgements: Mapping[Key, LookVerdict], plan: LookPlan) -> Corrected[Key]:
    """Decide about the flagged cases of a suite.

    A case that its own look calls slower fails the suite only if Holm's procedure over all
    cases rejects it, too. If it does not but later looks are left, the case goes on to the next
    one at which it can (at 8 launches no p-value is below .0039, so among two cases or more none
    can be confirmed there); it is then judged again with ``not_before``.

    Args:
        judgements: One a case of the suite, flagged or not.
        plan: The looks that they were judged by.
    """
    flagged = {key: entry for key, entry in judgements.items() if entry.verdict == SLOWER}
    p_values = {
        key: adjusted_p(entry.p, entry.launches, plan) if key in flagged else 1.0
        for key, entry in judgements.items()
    }
    confirmed = holm(p_values)
    go_on: dict[Key, int] = {}
    for key, entry in flagged.items():
        ahead = _next_look(len(judgements), entry.launches, plan)
        if key not in confirmed and ahead is not None:
            go_on[key] = ahead
    return Corrected(
        confirmed=confirmed,
        go_on=go_on,
        unconfirmed=frozenset(flagged) - confirmed - frozenset(go_on),
    )


def _next_look(cases: int, launches: int, plan: LookPlan) -> int | None:
    """The next look at which Holm can decide; ``None`` after the last."""
    first = deciding_look(cases, plan)
    if first is None:
        return None
    for look in plan.looks:
        if look.launches >= first and look.launches > launches:
            return look.launches
    return None
