"""What is still needed before a variant may be preferred to another precision: inputs or labels.

Answers that were compared on drawn inputs alone say little of real ones. Real inputs without labels
say how far a variant is from the original, not whether it still does its task: a detector whose
boxes are right may find nothing any more. So a precision that loses much, int8 or int4, waits for
labels, above all where it was compared on the inputs that it was calibrated on.
"""

from __future__ import annotations

from enum import Enum

from pytest_ortbench.analysis.summary import Summary
from pytest_ortbench.core.judgement import DRAWN_INPUTS, LABELS_ADVICE, REAL_INPUTS_ADVICE
from pytest_ortbench.core.precision import (
    HOLDS,
    OWN_FILE,
    computed_precision,
    keeps_precision,
    precision_of,
)

#: Signal to noise ratio from which on outputs differ by rounding only, and are equally good.
ROUNDING_DB = 60.0
#: Precisions that lose so much that only labels tell whether the task is still done.
_LOSSY = ("int8", "int4")
#: A user's own file may be another network: farther off than one per cent it needs labels, too.
_NEAR_DB = 40.0


class Proof(Enum):
    """What is needed; the value is what readers see."""

    REAL_INPUTS = "real inputs needed"
    LABELS = "labels needed"


#: What is needed, within a sentence.
NOUNS = {Proof.REAL_INPUTS: "real inputs", Proof.LABELS: "labels"}


def needed_proof(summary: Summary) -> Proof | None:
    """Say what a variant needs before it may be preferred to another precision; else ``None``.

    Drawn inputs recommend no other precision than the original's, unless a user's own file holds
    the same one and differs by rounding only. Real inputs without labels recommend none that loses
    much, unless its outputs differ by rounding only.
    """
    case = summary.case
    if keeps_precision(case):
        return None
    is_rounding = is_as_given(summary)
    if summary.on_drawn_inputs:
        same = case.variant.recipe.get(HOLDS) == precision_of(case.model)
        return None if same and is_rounding else Proof.REAL_INPUTS
    if not summary.is_unlabelled or is_rounding:
        return None
    if computed_precision(case) in _LOSSY:
        return Proof.LABELS
    worst_db = summary.worst_db
    is_far = OWN_FILE in case.variant.recipe and (worst_db is None or worst_db < _NEAR_DB)
    return Proof.LABELS if is_far else None


def is_as_given(summary: Summary) -> bool:
    """Whether outputs are known to differ from the original's by rounding only."""
    worst_db = summary.worst_db
    return summary.exact if worst_db is None else worst_db >= ROUNDING_DB


def lack_words(proof: Proof, *, on_calibration: bool) -> str:
    """Say what the answers of a variant were judged on so far, and what to judge them on.

    Args:
        proof: What is needed.
        on_calibration: Whether it was compared on the inputs that it was calibrated on.
    """
    if proof is Proof.REAL_INPUTS:
        return f"judged on {DRAWN_INPUTS} alone; {REAL_INPUTS_ADVICE}"
    kind = "its calibration" if on_calibration else "unlabelled"
    return f"compared on {kind} inputs alone; {LABELS_ADVICE}"
