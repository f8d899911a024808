"""Boxes that were detected against those that people drew, by ``faster-coco-eval``."""

from __future__ import annotations

import json
import zipfile
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_ortbench.core.dataset import TRUTH, Dataset
from pytest_ortbench.core.errors import WorkerError
from pytest_ortbench.core.failures import case_error
from pytest_ortbench.passes.task.facts import BoxAccuracy, Precisions, TaskAccuracy

if TYPE_CHECKING:
    from numpy.typing import NDArray

METRIC = "mAP@[.5:.95]"
#: Parts of the pictures that are left out in turn.
_PARTS = 20
#: Forms whose classes may be ids of categories; a function of the user's has no form.
_FORMS_OF_IDS = ("torchvision", "tensorflow", "")


@dataclass(frozen=True, slots=True, kw_only=True)
class Detected:
    """What one side detected.

    Attributes:
        rows: Picture, left, top, width, height, score and class of each box, one row a box.
        form: Name of the form that its outputs have; empty for a function of the user's.
        shapes: Its outputs in words.
        label: What detected them, for people.
        digests: Digest of each batch that was fed.
        nonfinite: NaN and infinite values in all float outputs.
        nonfinite_inputs: Those in all float inputs.
    """

    rows: NDArray[Any]
    form: str
    shapes: str
    label: str
    digests: tuple[str, ...]
    nonfinite: int
    nonfinite_inputs: int


def read_detected(path: Path) -> Detected:
    """Read what a worker wrote."""
    import numpy as np

    with np.load(path, allow_pickle=False) as stored:
        boxes = stored["boxes"].reshape(-1, 4)
        sizes = boxes[:, 2:] - boxes[:, :2]
        columns = (stored["pictures"], boxes[:, :2].T, sizes.T, stored["box_scores"])
        return Detected(
            rows=np.vstack([*columns, stored["box_classes"]]).T.astype(np.float64),
            form=str(stored["form"]),
            shapes=str(stored["shapes"]),
            label=str(stored["label"]),
            digests=tuple(stored["digests"].tolist()),
            nonfinite=int(stored["nonfinite"][0]),
            nonfinite_inputs=int(stored["nonfinite"][1]),
        )


def score_boxes(dataset: Dataset, own: Path, reference: Path | None) -> TaskAccuracy:
    """Compare what a case detected with the drawn boxes, and with what its reference detected.

    Args:
        dataset: Pictures and boxes.
        own: File of what the case detected.
        reference: File of what its reference detected; ``None`` without one.

    Raises:
        WorkerError: if the reference was fed other pictures, or finds nothing.
    """
    with zipfile.ZipFile(dataset.path) as archive:
        truth = json.loads(archive.read(TRUTH))
    case = read_detected(own)
    other = None if reference is None else read_detected(reference)
    classes, told_by = _categories(truth, [side for side in (other, case) if side is not None])
    rows = _known(case.rows, classes, truth)
    accuracy = BoxAccuracy(
        form=_form_words(dataset, case),
        classes=told_by,
        drawn=len(truth["annotations"]),
        detected=len(rows),
        own=precisions(truth, rows),
    )
    count = len(truth["images"])
    scored = TaskAccuracy(
        dataset=dataset.label,
        metric=METRIC,
        samples=count,
        score_sum=accuracy.own.mean_ap * count,
        largest=1.0,
        nonfinite=case.nonfinite,
        nonfinite_inputs=case.nonfinite_inputs,
        boxes=accuracy,
    )
    if other is None:
        return scored
    if other.digests != case.digests:
        raise _unfit(
            f"the pictures of {dataset.label} are not the same for this case and its reference",
            "Run again, and leave the pictures unchanged meanwhile",
        )
    if not len(other.rows):
        raise _unfit(
            f"the reference ({other.label}) detects no box in any picture "
            f"({_form_words(dataset, other)})",
            "First check the scaling of the pictures (--ort-preprocess), then how the outputs are "
            f"read{_other_form(other)}",
        )
    before = precisions(truth, _known(other.rows, classes, truth))
    if not before.mean_ap_50:
        raise _unfit(
            "the reference detects boxes, but none overlaps a labelled box of its category "
            f"(read as {_form_words(dataset, other)}; {told_by})",
            "If the model has other classes, name a function that returns boxes with ids of "
            f"categories, e.g. --ort-dataset={dataset.label}:reader.py:boxes. If not, check the "
            "scaling of the pictures (--ort-preprocess)"
            if other.form
            else "First compare the class numbers that your function returns with the categories "
            f"in {dataset.label.removeprefix('coco:')}, then check the scaling of the pictures "
            "(--ort-preprocess)",
        )
    return replace(
        scored,
        reference=other.label,
        reference_sum=before.mean_ap * count,
        boxes=replace(accuracy, reference=before),
    )


def _unfit(message: str, hint: str = "") -> WorkerError:
    return case_error(message, hint, kind="error", phase="task")


def _other_form(side: Detected) -> str:
    """Return how to name another form of the outputs; empty where a function reads them."""
    if not side.form:
        return ""
    example = "yolov5" if side.form == "yolov8" else "yolov8"
    return f". To read another form, write e.g. --ort-dataset=coco:FILE.json:{example}"


def _form_words(dataset: Dataset, side: Detected) -> str:
    """How outputs were read: ``yolov8: output0 float32 [1, 84, 8400]``."""
    how = side.form or (dataset.boxes.function if dataset.boxes is not None else "")
    return f"{how}: {side.shapes}"


def _categories(truth: dict[str, Any], sides: list[Detected]) -> tuple[dict[int, int], str]:
    """The category of each class that was detected, and how that was told.

    The first of the sides decides what form they have, and both which classes there are.
    """
    if truth["classes"]:
        known = enumerate(truth["classes"])
        return {number: category for number, category in known if category >= 0}, truth[
            "classes_by"
        ]
    categories: list[int] = truth["categories"]
    seen = {int(number) for side in sides for number in side.rows[:, 6]}
    if sides[0].form in _FORMS_OF_IDS and seen <= set(categories):
        return {number: number for number in categories}, "class numbers are category ids"
    return dict(enumerate(categories)), _from_first(truth)


def _from_first(truth: dict[str, Any]) -> str:
    """How classes are counted where nothing tells it: with the first two categories."""
    named = [f"{at} as category {number}" for at, number in enumerate(truth["categories"][:2])]
    return f"class {' and class '.join(named)}"


def _known(rows: NDArray[Any], classes: dict[int, int], truth: dict[str, Any]) -> NDArray[Any]:
    """Boxes of known categories, with the ids of pictures and categories for rows and classes."""
    import numpy as np

    kept: NDArray[Any] = rows[np.isin(rows[:, 6], list(classes))].copy()
    images = np.asarray(truth["images"], dtype=np.float64)
    kept[:, 0] = images[kept[:, 0].astype(int)]
    kept[:, 6] = [classes[int(number)] for number in kept[:, 6]]
    return kept


def precisions(truth: dict[str, Any], rows: NDArray[Any]) -> Precisions:
    """Compute the mean average precision over all pictures, and without each part of them.

    Args:
        truth: Images, annotations and categories, by their ids.
        rows: Detections: id of the picture, left, top, width, height, score, id of the category.
    """
    from faster_coco_eval import COCO

    images: list[int] = truth["images"]
    drawn = COCO(
        {
            "images": [{"id": number} for number in images],
            "annotations": [dict(annotation) for annotation in truth["annotations"]],
            "categories": [{"id": number} for number in truth["categories"]],
        }
    )
    detected = drawn.loadRes(rows)
    mean_ap, mean_ap_50 = _means(drawn, detected, images)
    parts = min(_PARTS, len(images))
    rests = [
        [image for index, image in enumerate(images) if index % parts != part]
        for part in range(parts if parts > 1 else 0)
    ]
    left_out = tuple(_means(drawn, detected, rest)[0] for rest in rests)
    return Precisions(mean_ap=mean_ap, mean_ap_50=mean_ap_50, left_out=left_out)


def _means(drawn: Any, detected: Any, images: list[int]) -> tuple[float, float]:
    """The two means over some pictures; 0 where nothing was drawn on them."""
    from faster_coco_eval import COCOeval_faster

    evaluation = COCOeval_faster(drawn, detected, iouType="bbox", print_function=_silent)
    evaluation.params.imgIds = images
    evaluation.evaluate()
    evaluation.accumulate()
    evaluation.summarize()
    return max(0.0, float(evaluation.stats[0])), max(0.0, float(evaluation.stats[1]))


def _silent(*_words: object) -> None:
    """Print nothing."""
