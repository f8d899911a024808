"""What a comparison of offers comes to: a clear cheapest, a probable one, none, or no rival."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import Enum
from statistics import NormalDist

from pytest_ortbench.fleet.numbers.sentences import UNIT_SPREAD
from pytest_ortbench.fleet.procurement.figure import Figure
from pytest_ortbench.fleet.procurement.ranking import Offer, Tender, figure_of

#: Probability from which the first of offers whose bounds meet is called the probable one.
PROBABLE = 0.8
#: Half of the width of a 95 % interval, in standard deviations.
_HALF_WIDTH = 1.96
#: Standard deviation of the difference between two units of one hardware model, whose mean size was
#: published: of a normal distribution it is √(π ÷ 2) times that.
_OF_UNITS = UNIT_SPREAD[0] * math.sqrt(math.pi / 2)


class Sureness(Enum):
    """How sure it is which machine to take."""

    CLEAR = "clear"
    PROBABLE = "probable"
    TIE = "tie"
    OPEN = "open"
    ALONE = "alone"
    NONE = "none"


@dataclass(frozen=True, slots=True, kw_only=True)
class Award:
    """What the offers for a workload come to.

    Attributes:
        kind: How sure it is which machine to take.
        priced: Offers with a figure, the best first.
        level: Those among them that may be the best, the first included.
        probability: That the first is the best, at least, where others may be; ``None`` where none
            may be, and where it can't be told.
    """

    kind: Sureness
    priced: tuple[Offer, ...] = ()
    level: tuple[Offer, ...] = ()
    probability: float | None = None

    @property
    def best(self) -> Offer | None:
        """The offer to take, where that is clear or probable; ``None`` otherwise."""
        return self.priced[0] if self.kind in (Sureness.CLEAR, Sureness.PROBABLE) else None


def award_of(tender: Tender) -> Award:
    """Return what the offers for a workload come to."""
    priced = tuple(offer for offer in tender.offers if not offer.reason)
    if len(priced) < 2:
        kind = Sureness.ALONE if priced else Sureness.NONE
        return Award(kind=kind, priced=priced, level=priced)
    if any(offer.mark == "open" for offer in priced):
        level = tuple(offer for offer in priced if offer.mark == "open")
        return Award(kind=Sureness.OPEN, priced=priced, level=level)
    level = (priced[0], *(offer for offer in priced[1:] if offer.mark == "tie"))
    if len(level) == 1:
        return Award(kind=Sureness.CLEAR, priced=priced, level=level)
    probability = _probability(level, tender.deciding)
    if probability is not None and probability >= PROBABLE:
        return Award(kind=Sureness.PROBABLE, priced=priced, level=level, probability=probability)
    return Award(kind=Sureness.TIE, priced=priced, level=level, probability=probability)


def _probability(level: tuple[Offer, ...], deciding: str) -> float | None:
    """How probable it is at least that the first is better than each of the others.

    The chances of the others to be better are added up, as if never two of them were (Boole's
    inequality), so the result is a lower bound.
    """
    figures = [figure_of(offer.economics, deciding) for offer in level]
    first, *others = figures
    chances = [
        None if first is None or other is None else probably_below(first, other) for other in others
    ]
    if deciding == "rate":
        chances = [None if chance is None else 1 - chance for chance in chances]
    known = [chance for chance in chances if chance is not None]
    if len(known) != len(others):
        return None
    return max(0.0, 1 - math.fsum(1 - chance for chance in known))


def probably_below(figure: Figure, other: Figure) -> float | None:
    """Return how probable it is that a figure is below another one.

    The logarithm of each is taken as normal, with the bounds that face the other figure as the end
    of a 95 % interval. They are wider than that, since they take all measured numbers at their ends
    at once; so a probability above one half is rather too low. Since each machine was measured on
    one unit, what units of one hardware model differ by is added.

    Returns:
        ``None`` where a bound is no number above 0, or only bounds are known.
    """
    if figure.is_open or other.is_open:
        return None
    is_first = figure.value <= other.value
    ends = (figure.high, other.low) if is_first else (figure.low, other.high)
    values = (figure.value, other.value)
    if not all(0 < number < math.inf for number in (*ends, *values)):
        return None
    spreads = [
        abs(math.log(end / value)) / _HALF_WIDTH for end, value in zip(ends, values, strict=True)
    ]
    distance = math.log(other.value / figure.value)
    return NormalDist().cdf(distance / math.hypot(*spreads, _OF_UNITS))
