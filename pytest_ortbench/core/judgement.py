"""A judgement: whether what was measured is good, is bad, or could not be judged.

Evidence that is missing, cut short or not a number gives :attr:`Outcome.UNJUDGED`, never
:attr:`Outcome.GOOD`. Whoever ranks, gates or counts asks for the outcome and reads no sentence.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum

#: What stands beside every verdict on answers that nothing but random inputs speaks for or against.
DRAWN_INPUTS = "random inputs"
#: What settles such a verdict.
REAL_INPUTS_ADVICE = "use real inputs (--ort-inputs) or labels (--ort-labels, --ort-dataset)"
#: What settles one on real inputs that nobody labelled.
LABELS_ADVICE = "use labels (--ort-labels, --ort-dataset)"


class Outcome(Enum):
    """What a judgement comes to."""

    GOOD = "good"
    BAD = "bad"
    UNJUDGED = "not judged"


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """What was judged, what it came to, and why.

    Attributes:
        of: What was judged: ``accuracy``, ``placement``, ``warm-up``, ``limit``, ``gate``, or what
            a pass judges.
        outcome: Good, bad, or not judged.
        reason: One sentence for people: what is bad, or which evidence is missing. Empty only where
            the outcome is good.
        drawn_inputs: Whether it rests on random inputs alone: on neither real ones nor labels.
        unlabelled: Whether it rests on no labels, whatever the inputs were.
    """

    of: str
    outcome: Outcome
    reason: str = ""
    drawn_inputs: bool = False
    unlabelled: bool = False

    def __post_init__(self) -> None:
        if self.outcome is not Outcome.GOOD and not self.reason:
            raise ValueError(f"a judgement of {self.of} that is not good needs a reason")

    @property
    def is_good(self) -> bool:
        """Whether the evidence is there and says that all is well."""
        return self.outcome is Outcome.GOOD

    @property
    def is_bad(self) -> bool:
        """Whether the evidence is there and says that something is wrong."""
        return self.outcome is Outcome.BAD

    @property
    def is_unjudged(self) -> bool:
        """Whether the evidence is missing, cut short or not a number."""
        return self.outcome is Outcome.UNJUDGED

    def on_drawn_inputs(self) -> Judgement:
        """Return the same judgement, known to rest on random inputs alone."""
        return replace(self, drawn_inputs=True, unlabelled=True)

    def without_labels(self) -> Judgement:
        """Return the same judgement, known to rest on no labels."""
        return replace(self, unlabelled=True)


def good(of: str, reason: str = "") -> Judgement:
    """Return a judgement whose evidence is complete and says that all is well."""
    return Judgement(of=of, outcome=Outcome.GOOD, reason=reason)


def bad(of: str, reason: str) -> Judgement:
    """Return a judgement whose evidence says that something is wrong, with the reason."""
    return Judgement(of=of, outcome=Outcome.BAD, reason=reason)


def unjudged(of: str, reason: str) -> Judgement:
    """Return a judgement that lacks its evidence, with the reason."""
    return Judgement(of=of, outcome=Outcome.UNJUDGED, reason=reason)
