"""Why a bill takes one way to serve a workload on a machine, and not one that looks faster.

A machine offers the way whose cost is the least by the estimates, bounds aside; of equal costs the
one with the higher throughput. A reader who knows the run expects the variant with the lowest
latency, or the number of processes with the highest throughput; where that is another one, the
figures that decided are told.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

from pytest_ortbench.fleet.procurement.economics import Economics
from pytest_ortbench.fleet.procurement.ranking import Tender, figure_of


class Lead(Enum):
    """What a way that was passed over is better in."""

    THROUGHPUT = "more throughput"
    LATENCY = "lower latency"


@dataclass(frozen=True, slots=True, kw_only=True)
class PassedOver:
    """A way to serve a workload that is better in something, and still not offered.

    Attributes:
        taken: The way that is offered.
        other: The way that was passed over.
        lead: What that one is better in.
        is_certain: Whether the bounds of their costs don't meet.
    """

    taken: Economics
    other: Economics
    lead: Lead
    is_certain: bool


def passed_over(tender: Tender) -> list[PassedOver]:
    """Return the ways that a reader would have expected in place of those that are offered."""
    made = []
    for offer in tender.offers:
        taken = offer.economics
        others = [
            variant
            for variant in tender.variants
            if variant.machine == taken.machine
            and variant is not taken
            and figure_of(variant, tender.deciding) is not None
            and (variant.case.needs is None or taken.case.needs is not None)
        ]
        if offer.reason or not others or taken.queues.is_open:
            continue
        fastest = max(others, key=lambda variant: variant.rate.value)
        quickest = min(others, key=_median)
        if fastest.rate.value > taken.rate.value:
            made.append(_passed(taken, fastest, Lead.THROUGHPUT, tender))
        elif _median(quickest) < _median(taken) and _method(quickest) != _method(taken):
            made.append(_passed(taken, quickest, Lead.LATENCY, tender))
    return made


def _passed(taken: Economics, other: Economics, lead: Lead, tender: Tender) -> PassedOver:
    mine, theirs = (figure_of(variant, tender.deciding) for variant in (taken, other))
    is_apart = mine is not None and theirs is not None and mine.high < theirs.low
    return PassedOver(taken=taken, other=other, lead=lead, is_certain=is_apart)


def _median(variant: Economics) -> float:
    quantity = variant.case.quantities.get("latency_p50")
    return float("inf") if quantity is None else quantity.value


def _method(variant: Economics) -> Sequence[str]:
    """How a way does its work, whatever runs at a time."""
    case = variant.case
    return (case.precision, case.provider, case.runtime)
