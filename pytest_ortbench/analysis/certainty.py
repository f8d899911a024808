"""How sure the recommendation of an answer is: one rule for terminal, page and summary."""

from __future__ import annotations

from enum import Enum

from pytest_ortbench.analysis.answers import ModelAnswer
from pytest_ortbench.analysis.proof import Proof
from pytest_ortbench.analysis.recommendation import Tie


class Certainty(Enum):
    """How sure a recommendation is; the value is what readers see."""

    CLEAR = "clear lead"
    TIE = "tie"
    NOISY = "too noisy"
    ONE_WORKER = "more workers needed"
    DOUBTFUL = "not certain"
    UNPROVEN = Proof.REAL_INPUTS.value
    UNLABELLED = Proof.LABELS.value
    ALONE = "no comparison"
    SINGLE = "one row"
    NONE = "nothing ranked"


_NEEDS = {Proof.REAL_INPUTS: Certainty.UNPROVEN, Proof.LABELS: Certainty.UNLABELLED}


def certainty_of(answer: ModelAnswer) -> Certainty:
    """Return how sure the recommendation of an answer is.

    A variant that nothing but its speed recommends yet comes before one that a single process
    measured, that before noise, noise before other doubts, and these before ties.
    """
    advice, withheld = answer.advice, answer.withheld
    if answer.ranked == 0:
        return Certainty.NONE
    if withheld is not None:
        return _NEEDS[withheld.needs]
    assert advice is not None  # of ranked cases one is recommended or withheld
    if advice.rivals == 1:
        return Certainty.SINGLE if answer.asked == 1 else Certainty.ALONE
    if advice.needs is not None:
        return _NEEDS[advice.needs]
    if advice.one_worker:
        return Certainty.ONE_WORKER
    if advice.tie is Tie.UNKNOWN:
        return Certainty.NOISY
    if doubts_of(answer):
        return Certainty.DOUBTFUL
    return Certainty.TIE if advice.tied_at else Certainty.CLEAR


def doubts_of(answer: ModelAnswer) -> tuple[str, ...]:
    """Say what leaves doubt about the recommended variant: flags of its number, of the next one's,
    or in words that the gap between them is no steady one; nothing where there is no doubt."""
    advice, gap = answer.advice, answer.runner_up
    if advice is None:
        return ()
    names = advice.blurred_by
    if gap is None or advice.tie is not Tie.NONE or gap.is_clear:
        return names
    names = tuple(dict.fromkeys((*names, *gap.blurred_by)))
    return names or ("noise" if gap.low is not None else "few samples",)
