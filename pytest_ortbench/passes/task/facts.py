"""Accuracy of a task on labelled data: the raw scores' sums that came out."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Precisions:
    """Mean average precision (mAP) of what one side detected.

    Attributes:
        mean_ap: Mean over categories and over ten overlaps from 0.5 to 0.95.
        mean_ap_50: Mean over categories at an overlap of 0.5.
        left_out: The first mean over the pictures without each part of them in turn, from which
            its interval is computed.
    """

    mean_ap: float
    mean_ap_50: float
    left_out: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class BoxAccuracy:
    """Boxes of a detector against those that people drew.

    Attributes:
        form: How outputs were read as boxes.
        classes: How classes of the model were read as categories.
        drawn: Boxes that people drew.
        detected: Boxes that the case detected, of known categories.
        own: What the case reaches.
        reference: What its reference reaches; ``None`` without one.
    """

    form: str
    classes: str
    drawn: int
    detected: int
    own: Precisions
    reference: Precisions | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskAccuracy:
    """Scores of one case and of its fp32 reference on the same labelled samples.

    A score says how well one sample was answered, more being better: 1 or 0 for right or wrong.
    The metric of the task is the mean score. Boxes have no scores by picture: there the metric is
    the mean average precision over all pictures, and the sums are that times their number.

    Attributes:
        dataset: Label of the data.
        metric: What the scores say: ``top-1 of 'logits'``, or the name of the user's function.
        samples: Labelled samples, each scored once.
        score_sum: Sum of the case's scores.
        largest: Largest absolute score of either side.
        reference: What the scores are compared with, for people; empty if with nothing.
        reference_sum: Sum of the reference's scores; ``None`` without a reference.
        difference_squares: Sum of the squares of score − reference's score; likewise ``None``, and
            with boxes.
        better: Samples that scored higher than in the reference.
        worse: Samples that scored lower.
        nonfinite: NaN and infinite values in all float outputs of the case, over all samples.
        nonfinite_inputs: Those in all float inputs that were fed.
        reason: Why there is no score; empty otherwise.
        reference_reason: Why there is nothing to compare with; empty otherwise.
        boxes: What became of boxes; ``None`` where labels are scored.
        interrupted: Whether it was stopped before it was over; a resumed run measures it.
    """

    dataset: str
    metric: str = ""
    samples: int = 0
    score_sum: float = 0.0
    largest: float = 0.0
    reference: str = ""
    reference_sum: float | None = None
    difference_squares: float | None = None
    better: int = 0
    worse: int = 0
    nonfinite: int = 0
    nonfinite_inputs: int = 0
    reason: str = ""
    reference_reason: str = ""
    boxes: BoxAccuracy | None = None
    interrupted: bool = False
