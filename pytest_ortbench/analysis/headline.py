"""The answer for one model in at most fifteen words, and how sure it is."""

from __future__ import annotations

from enum import Enum

from pytest_ortbench.analysis.answers import ModelAnswer
from pytest_ortbench.analysis.ranked import Factor
from pytest_ortbench.analysis.sentences import factor_text, name_of, with_interval
from pytest_ortbench.analysis.told import Told
from pytest_ortbench.analysis.variant_bars import Rank
from pytest_ortbench.core.quantity import Quantity


class Certainty(Enum):
    """How sure a recommendation is; the value is what readers see."""

    CLEAR = "clear lead"
    TIE = "tie"
    DOUBTFUL = "not certain"
    UNPROVEN = "real inputs needed"
    ALONE = "no rival"
    NONE = "nothing ranked"


def certainty_of(answer: ModelAnswer) -> Certainty:
    """Return how sure the recommendation of an answer is.

    A faster variant that only random inputs judged comes before flags, and flags before ties.
    """
    advice = answer.advice
    if answer.ranked == 0:
        return Certainty.NONE
    if answer.withheld is not None or advice is None:
        return Certainty.UNPROVEN
    if advice.blurred_by:
        return Certainty.DOUBTFUL
    if advice.rivals == 1:
        return Certainty.ALONE
    return Certainty.TIE if advice.tied_at else Certainty.CLEAR


def headline(answer: ModelAnswer) -> Told:
    """Say which variant to use, how long it takes, and by how much it is ahead.

    Sizes and intervals count as words; there are at most fifteen of them behind the name.
    """
    return _headline(answer).said_of(f"{name_of(answer)}: ")


def _headline(answer: ModelAnswer) -> Told:
    advice, withheld = answer.advice, answer.withheld
    if answer.ranked == 0:
        return Told("no variant can be ranked; the reasons are below")
    if advice is None:
        faster = "" if withheld is None else withheld.variant
        return Told("none is recommended yet: ", faster, " needs real inputs first")
    time = _time(answer)
    if advice.rivals == 1:
        return Told("only ", advice.variant, f" can be ranked{time}")
    if withheld is not None:
        lead = "faster" if withheld.factor is None else f"{_times(withheld.factor)} faster"
        return Told("use ", advice.variant, f"{time}; {withheld.variant} is {lead}, unproven")
    if advice.ties:
        others = len(advice.ties) - 1
        more = f" and {others} more" if others else ""
        return Told("use ", advice.variant, f"{time}, as fast as {advice.ties[0]}{more}")
    factor = answer.runner_up
    ahead = f", {_times(factor)} faster than {factor.reference}" if factor else ""
    return Told("use ", advice.variant, f"{time}{ahead}")


def _time(answer: ModelAnswer) -> str:
    quantity = _recommended(answer)
    return "" if quantity is None else f": {with_interval(quantity)}"


def _recommended(answer: ModelAnswer) -> Quantity | None:
    """Return the time of the recommended variant at the smallest batch size where it leads."""
    return next(
        (
            bar.quantity
            for group in answer.bars
            for bar in group.bars
            if bar.rank is Rank.RECOMMENDED
            and answer.advice is not None
            and bar.label == answer.advice.variant
        ),
        None,
    )


def _times(factor: Factor) -> str:
    return factor_text(factor.value, factor.low, factor.high)
