"""What scores may be, and must agree on."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from pytest_ortbench.passes.task.facts import Precisions, TaskAccuracy
from pytest_ortbench.schema.bound_kinds import SHARE, Bound, Numbers

#: Sums of scores, whose squares are computed.
_SCORES = Numbers(-1e150, 1e150)

BOUNDS: dict[tuple[type, str], Bound] = {
    (TaskAccuracy, "largest"): Numbers(0, 1e150),
    (TaskAccuracy, "score_sum"): _SCORES,
    (TaskAccuracy, "reference_sum"): _SCORES,
    (TaskAccuracy, "difference_squares"): Numbers(0, 1e300),
    (Precisions, "mean_ap"): SHARE,
    (Precisions, "mean_ap_50"): SHARE,
    (Precisions, "left_out"): SHARE,
}


def _task(task: TaskAccuracy) -> Iterator[tuple[str, str]]:
    if task.better + task.worse > task.samples:
        yield "samples", "must not be below better and worse together"
    if task.boxes is not None:
        boxes = task.boxes
        if (task.reference_sum is None) != (boxes.reference is None):
            yield "reference_sum", "must be there exactly if boxes have a reference"
        elif boxes.reference is not None and len(boxes.reference.left_out) != len(
            boxes.own.left_out
        ):
            yield "boxes", "must have as many parts left out on both sides"
    elif (task.reference_sum is None) != (task.difference_squares is None):
        yield "difference_squares", "must be there exactly if reference_sum is"


#: What must agree within each type: the field that does not, and the rule that it breaks.
RELATIONS: dict[type, Callable[[Any], Iterator[tuple[str, str]]]] = {TaskAccuracy: _task}
