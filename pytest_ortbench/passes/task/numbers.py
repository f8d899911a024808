"""Task accuracy: the mean score, what is kept of the reference's, and whether that is enough.

Both sides answer the same samples, so the interval is that of the mean of the paired differences
(Student's t on n − 1 degrees of freedom). Where no sample changed its score there is no scatter to
estimate from; the share of samples that may yet change is then bounded exactly (Clopper–Pearson: 0
of n, which is the rule of three), and a sample can lose no more than its whole score.

A mean average precision is no mean over pictures. Its interval is that of the jackknife: what it is
without each part of the pictures, on both sides without the same ones; and not narrower than the
exact one of so many pictures of which none changed.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import NormalDist

from pytest_ortbench.analysis.accuracy_figures import is_equal
from pytest_ortbench.analysis.collector import Collector
from pytest_ortbench.analysis.inaccuracy import evidence_of
from pytest_ortbench.analysis.order import TAIL, proportion_interval
from pytest_ortbench.analysis.proof import ROUNDING_DB
from pytest_ortbench.core.judgement import Judgement, bad, good, unjudged
from pytest_ortbench.core.outcome import CaseResult
from pytest_ortbench.core.units import counted
from pytest_ortbench.passes.task.declaration import PASS
from pytest_ortbench.passes.task.facts import BoxAccuracy, TaskAccuracy
from pytest_ortbench.worker.warm_up import student_two_sided

#: Metrics that only boxes have.
_OF_BOXES = ("task_map", "task_map50")

#: Share of the reference's metric that must be kept for certain, as MLPerf's closed division asks.
KEPT = 0.99


@dataclass(frozen=True, slots=True, kw_only=True)
class PairedDifference:
    """Mean score minus the reference's mean score, with its equal-tailed 95 % interval."""

    value: float
    low: float
    high: float


def mean_score(task: TaskAccuracy) -> tuple[float, float | None, float | None]:
    """Return the metric with its interval: exact (Clopper–Pearson) where scores are 0 or 1.

    Returns:
        Value, lower and upper end; no ends where a score is anything but 0 or 1. Boxes have ends
        from two pictures on.
    """
    value = task.score_sum / task.samples
    if task.boxes is not None:
        left_out = task.boxes.own.left_out
        if not left_out:
            return value, None, None
        # As of samples of which none was wrong, where no part makes a difference: some may yet.
        half = jackknife_half(left_out) or proportion_interval(0, task.samples)[1]
        return value, max(0.0, value - half), min(1.0, value + half)
    if not _is_counting(task):
        return value, None, None
    low, high = proportion_interval(round(task.score_sum), task.samples)
    return value, low, high


def _is_counting(task: TaskAccuracy) -> bool:
    """Whether the sum is one of zeros and ones, as far as sums can tell."""
    whole = task.score_sum == round(task.score_sum)
    return whole and task.largest in (0.0, 1.0) and 0 <= task.score_sum <= task.samples


def paired_difference(task: TaskAccuracy) -> PairedDifference | None:
    """Return how the case differs from its reference; ``None`` without one."""
    if task.boxes is not None:
        return _difference_of_boxes(task.boxes, task.samples)
    if task.reference_sum is None or task.difference_squares is None:
        return None
    count = task.samples
    if not task.better and not task.worse:
        changed = proportion_interval(0, count)[1]
        most = changed * task.largest
        return PairedDifference(value=0.0, low=-most, high=most)
    value = (task.score_sum - task.reference_sum) / count
    if count < 2:
        return PairedDifference(value=value, low=-2 * task.largest, high=2 * task.largest)
    variance = max(0.0, task.difference_squares - count * value**2) / (count - 1)
    half = student_t(count - 1) * math.sqrt(variance / count)
    if not half:
        # Every sample lost the same: as certain as a proportion of n of n.
        half = proportion_interval(0, count)[1] * task.largest
    return PairedDifference(value=value, low=value - half, high=value + half)


def _difference_of_boxes(boxes: BoxAccuracy, count: int) -> PairedDifference | None:
    own, reference = boxes.own, boxes.reference
    if reference is None:
        return None
    value = own.mean_ap - reference.mean_ap
    parts = zip(own.left_out, reference.left_out, strict=True)
    # Not less than of pictures of which none changed, since others may yet: what these few scatter
    # by says nothing of a kind that is not among them.
    least = proportion_interval(0, count)[1]
    half = max(jackknife_half([mine - other for mine, other in parts]), least)
    # No more can be lost than there is.
    low = max(value - half, -reference.mean_ap)
    return PairedDifference(value=value, low=low, high=value + half)


def jackknife_half(left_out: Sequence[float]) -> float:
    """Return half of the 95 % interval of a value, by what it is without each part of the data."""
    parts = len(left_out)
    if parts < 2:
        return 0.0
    middle = math.fsum(left_out) / parts
    squares = math.fsum((value - middle) ** 2 for value in left_out)
    return student_t(parts - 1) * math.sqrt((parts - 1) / parts * squares)


def kept_ratio(task: TaskAccuracy) -> tuple[float, float, float] | None:
    """Return metric ÷ reference's metric with its interval; ``None`` without one above 0."""
    difference = paired_difference(task)
    if difference is None or not task.reference_sum or task.reference_sum <= 0:
        return None
    base = task.reference_sum / task.samples
    return 1 + difference.value / base, 1 + difference.low / base, 1 + difference.high / base


def judge(result: CaseResult) -> Judgement | None:
    """Judge the scores of a case, ``None`` where none are due."""
    if result.task is None and (result.case.dataset is None or not result.measurements):
        return None
    judged = judge_task(result.task)
    if judged.is_unjudged and _answers_as_its_reference(result):
        return good(
            PASS.judgement,
            "every sample scores as in the reference, and outputs differ by rounding only",
        )
    return judged


def _answers_as_its_reference(result: CaseResult) -> bool:
    """Whether no score changed, and all compared outputs are the reference's but for rounding.

    Labels that are too few to prove a share then take nothing away from what the outputs prove.
    """
    task, accuracy = result.task, result.accuracy
    if task is None or accuracy is None or _why_not(task) or kept_ratio(task) is None:
        return False
    if task.better or task.worse or task.score_sum != task.reference_sum:
        return False
    if task.boxes is not None and task.boxes.own != task.boxes.reference:
        return False
    evidence = evidence_of(result)
    if evidence.nonfinite or evidence.wrong or evidence.missing:
        return False
    return all(
        is_equal(output)
        or (
            output.sqnr_db is not None
            and min(output.sqnr_db, output.slices.sqnr_db if output.slices else output.sqnr_db)
            >= ROUNDING_DB
        )
        for output in accuracy.outputs
    )


def judge_task(task: TaskAccuracy | None) -> Judgement:
    """Judge whether a case keeps the metric of its reference.

    Good if the lower bound keeps 99 %. Bad if even the upper one does not, or if the metric fell
    and so many samples could have shown that 99 % are kept. Not judged where nothing was scored,
    where there is nothing to compare with, or where the data can't tell: too few samples, or a
    metric that did not fall while so many samples changed both ways that it might have.
    """
    missing = _why_not(task)
    kept = None if task is None or missing else kept_ratio(task)
    if task is None or kept is None:
        return unjudged(
            PASS.judgement,
            missing or "the reference scores 0 or less, so no share of it can be computed",
        )
    value, low, high = kept
    if low >= KEPT:
        return good(PASS.judgement)
    enough = _could_show(task)
    if high >= KEPT and not (value < 1 and enough):
        needed = "" if enough else f"; with equal scores, {_samples_needed(task)} samples would do"
        return unjudged(
            PASS.judgement,
            f"{counted(task.samples, 'sample')} can't show that {100 * KEPT:g} % of the "
            f"reference's score is kept: it may be {100 * low:.4g} % to {100 * high:.4g} %{needed}",
        )
    assert task.reference_sum is not None
    return bad(
        PASS.judgement,
        f"{task.metric} {task.score_sum / task.samples:.4g} (reference "
        f"{task.reference_sum / task.samples:.4g}): {100 * value:.4g} % of the reference's "
        f"score, at least {100 * low:.4g} % (95 % interval, {task.samples} samples); the "
        f"minimum is {100 * KEPT:g} %",
    )


def nonfinite(result: CaseResult) -> tuple[str, int]:
    """Return how many answers to labelled samples are NaN or infinite, and how many were fed."""
    task = result.task
    if task is None or not task.nonfinite:
        return "", 0
    values, samples = counted(task.nonfinite, "value"), counted(task.samples, "labelled sample")
    return f"{values} on the {samples}", task.nonfinite_inputs


def _why_not(task: TaskAccuracy | None) -> str:
    """Why there are no two scores to compare; empty if there are."""
    if task is None:
        return "no labelled data was given (--ort-dataset)"
    if task.reason:
        return task.reason
    if task.samples < 1:
        return "no labelled sample was scored"
    squares = 0.0 if task.boxes is not None else task.difference_squares
    if task.reference_sum is None or squares is None:
        return task.reference_reason or "the reference was not scored"
    sums = (task.score_sum, task.largest, task.reference_sum, squares)
    if not all(map(math.isfinite, sums)):
        return "the scores hold NaN or infinity"
    return ""


def _samples_needed(task: TaskAccuracy) -> int:
    """How many samples show for certain that 99 % are kept if none of them changes."""
    assert task.reference_sum is not None
    lost = (1 - KEPT) * task.reference_sum / task.samples / (task.largest or 1.0)
    return math.ceil(math.log(TAIL) / math.log1p(-min(max(lost, 1e-9), 0.5)))


def _could_show(task: TaskAccuracy) -> bool:
    """Whether there are so many samples that a result without a change would pass."""
    boxes = task.boxes
    if boxes is not None and boxes.reference is not None:
        boxes = replace(boxes, own=boxes.reference)
    same = replace(task, score_sum=task.reference_sum or 0.0, better=0, worse=0, boxes=boxes)
    unchanged = kept_ratio(same)
    return unchanged is not None and unchanged[1] >= KEPT


#: From here on the normal deviate is right to four digits.
_NORMAL_FROM = 10_000


def student_t(freedom: int) -> float:
    """Return the deviate of Student's t with :data:`TAIL` above it, by halving."""
    if freedom >= _NORMAL_FROM:
        return NormalDist().inv_cdf(1 - TAIL)
    low, high = 0.0, 1.0
    while student_two_sided(high, freedom) > 2 * TAIL:
        high *= 2
    for _ in range(60):
        middle = (low + high) / 2
        if student_two_sided(middle, freedom) > 2 * TAIL:
            low = middle
        else:
            high = middle
    return high


def add_task(collector: Collector, result: CaseResult) -> None:
    """Add the mean score, and what is kept of the reference's."""
    names = PASS.metric_names
    task = result.task
    if task is None or not task.samples:
        why = "no labelled data was given (--ort-dataset)" if task is None else task.reason
        collector.reject(names, why)
        return
    value, low, high = mean_score(task)
    collector.add("task_metric", value, low=low, high=high, samples=task.samples)
    if task.boxes is None:
        collector.reject(_OF_BOXES, "no boxes were given (--ort-dataset=coco:labels.json)")
    else:
        collector.add("task_map", value, low=low, high=high, samples=task.samples)
        collector.add("task_map50", task.boxes.own.mean_ap_50, samples=task.samples)
    kept = kept_ratio(task)
    if kept is None:
        nothing = "the reference scores 0 or less, so no share of it can be computed"
        collector.reject(("task_ratio", "task_kept"), task.reference_reason or nothing)
        return
    value, low, high = kept
    collector.add("task_ratio", value, low=low, high=high, samples=task.samples)
    collector.add("task_kept", low, samples=task.samples)


def cells(result: CaseResult) -> dict[str, int]:
    """Return what a flat row says of labelled data beside its numbers."""
    task = result.task
    return {"task_samples": task.samples} if task is not None and task.samples else {}
