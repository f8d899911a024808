"""Forms of a detector's outputs: which one they have, and the boxes of each picture in it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from numpy.typing import NDArray

#: Boxes, scores and labels of one picture.
Triple: TypeAlias = "tuple[NDArray[Any], NDArray[Any], NDArray[Any]]"

#: Rounding may lift a score of 1 by that much.
_LARGEST_SCORE = 1.01
_TENSORFLOW = ("detection_boxes", "detection_scores", "detection_classes")
#: Scores below are no candidate. The first three are what Ultralytics validates with.
_LEAST_SCORE = 0.001
#: Share of intersection over union from which on two boxes are one.
_OVERLAP = 0.7
#: Boxes that a picture keeps.
_MOST_KEPT = 300
#: Candidates of a picture that are compared.
_MOST_CANDIDATES = 30_000


def read_form(
    form: str, arrays: Mapping[str, NDArray[Any]], classes: int
) -> Sequence[Triple] | None:
    """Return what each picture holds; ``None`` if outputs have another form.

    Args:
        form: One of :data:`~pytest_ortbench.core.dataset.DETECTION_FORMS`.
        arrays: Outputs of numbers by name.
        classes: Classes of the model; 0 if nobody says how many.
    """
    return _READERS[form](arrays, classes)


def recognised(arrays: Mapping[str, NDArray[Any]], classes: int) -> str:
    """The form that shapes and values fit; empty for none."""
    if _triple_names(arrays) is not None:
        return "tensorflow" if _tensorflow_names(arrays) else "torchvision"
    if any(array.ndim == 3 and array.shape[-1] == 4 for array in arrays.values()):
        return ""  # boxes beside something else, as of DETR
    name = _candidates(arrays)
    if not name:
        return ""
    rows, columns = arrays[name].shape[1:]
    if columns == 6 and _ends(arrays[name]):
        return "end-to-end"
    if classes and 5 + classes in (rows, columns) and 4 + classes not in (rows, columns):
        form = "yolov5"
    elif rows == columns:
        return ""
    else:
        form = "yolov8" if rows < columns else "yolov5"
    _, scores = _scored(form, arrays[name], classes)
    return form if scores[0].shape[-1] and all(map(_in_scale, scores)) else ""


def possible(arrays: Mapping[str, NDArray[Any]], classes: int) -> list[str]:
    """Forms that outputs may have by their shapes, where somebody knows it.

    Boxes beside something else have none.
    """
    if any(array.ndim == 3 and array.shape[-1] == 4 for array in arrays.values()):
        return []
    return [form for form in _READERS if read_form(form, arrays, classes) is not None]


def _candidates(arrays: Mapping[str, NDArray[Any]]) -> str:
    """The first float output ``[n, …, …]`` with room for a box and a score; empty for none."""
    fitting = (
        name
        for name, array in arrays.items()
        if array.ndim == 3 and array.dtype.kind == "f" and min(array.shape[1:]) >= 5
    )
    return next(fitting, "")


def _ends(array: NDArray[Any]) -> bool:
    """Whether rows of six are a box, a score from 0 to 1, and the number of a class."""
    import numpy as np

    scores, labels = array[..., 4], array[..., 5]
    return bool(
        np.all(np.isfinite(labels))
        and np.all(labels == np.round(labels))
        and np.all((scores >= 0) & (scores <= _LARGEST_SCORE))
    )


def _tensorflow_names(arrays: Mapping[str, NDArray[Any]]) -> list[str]:
    names = [next((name for name in arrays if name.startswith(start)), "") for start in _TENSORFLOW]
    return names if all(names) else []


def _triple_names(arrays: Mapping[str, NDArray[Any]]) -> list[str] | None:
    """Names of boxes, scores and labels; ``None`` where that can't be told."""
    names = _tensorflow_names(arrays)
    if names:
        return names
    boxes = [n for n, a in arrays.items() if a.ndim in (2, 3) and a.shape[-1] == 4]
    if len(boxes) != 1:
        return None
    shape = arrays[boxes[0]].shape[:-1]
    others = [n for n, a in arrays.items() if a.shape == shape and n != boxes[0]]
    named = [n for n in others if "label" in n.lower() or "class" in n.lower()]
    labels = named or [n for n in others if arrays[n].dtype.kind in "iu"]
    scores = [n for n in others if n not in labels and arrays[n].dtype.kind == "f"]
    if len(labels) != 1 or len(scores) != 1:
        return None
    return [boxes[0], scores[0], labels[0]]


def _triples(arrays: Mapping[str, NDArray[Any]], _classes: int) -> Sequence[Triple] | None:
    names = _triple_names(arrays)
    if names is None:
        return None
    boxes, scores, labels = (arrays[name] for name in names)
    if boxes.ndim == 2:
        return [(boxes, scores, labels)]
    return list(zip(boxes, scores, labels, strict=True))


def _tensorflow(arrays: Mapping[str, NDArray[Any]], classes: int) -> Sequence[Triple] | None:
    """Boxes as top, left, bottom and right."""
    triples = _triples(arrays, classes)
    if triples is None:
        return None
    return [(boxes[:, [1, 0, 3, 2]], scores, labels) for boxes, scores, labels in triples]


def _end_to_end(arrays: Mapping[str, NDArray[Any]], _classes: int) -> Sequence[Triple] | None:
    name = _candidates(arrays)
    if not name or arrays[name].shape[-1] < 6:
        return None
    return [(rows[:, :4], rows[:, 4], rows[:, 5]) for rows in arrays[name]]


def _yolov8(arrays: Mapping[str, NDArray[Any]], classes: int) -> Sequence[Triple] | None:
    return _suppressed("yolov8", arrays, classes)


def _yolov5(arrays: Mapping[str, NDArray[Any]], classes: int) -> Sequence[Triple] | None:
    return _suppressed("yolov5", arrays, classes)


def _scored(
    form: str, array: NDArray[Any], classes: int
) -> tuple[NDArray[Any], tuple[NDArray[Any], ...]]:
    """Candidates ``[n, candidates, columns]``, and their scores.

    yolov8 has ``[n, 4 + classes, candidates]``, or the last two axes turned, and scores of classes.
    yolov5 has ``[n, candidates, 5 + classes]``: the fifth column scores that there is any object.
    """
    if form == "yolov8":
        array = array.transpose(0, 2, 1) if array.shape[1] < array.shape[2] else array
        return array, (array[..., 4 : 4 + classes if classes else None],)
    return array, (array[..., 5 : 5 + classes if classes else None], array[..., 4:5])


def _in_scale(scores: NDArray[Any]) -> bool:
    """Whether scores lie between 0 and 1, as far as they are numbers."""
    import numpy as np

    known = scores[np.isfinite(scores)]
    return bool(known.size == 0 or (known.min() >= -0.01 and known.max() <= _LARGEST_SCORE))


def _suppressed(
    form: str, arrays: Mapping[str, NDArray[Any]], classes: int
) -> Sequence[Triple] | None:
    """The best of candidates, given as centre, width and height; a box may have several classes."""
    import numpy as np

    name = _candidates(arrays)
    if not name:
        return None
    array, parts = _scored(form, arrays[name], classes)
    if not parts[0].shape[-1]:
        return None
    scores = math.prod(parts[1:], start=parts[0])
    half = array[..., 2:4] / 2
    corners = np.concatenate([array[..., :2] - half, array[..., :2] + half], axis=-1)
    triples: list[Triple] = []
    for boxes, values in zip(corners.astype(np.float64), scores, strict=True):
        candidates, labels = np.nonzero(values > _LEAST_SCORE)
        known = np.isfinite(boxes[candidates]).all(axis=1)
        candidates, labels = candidates[known], labels[known]
        chosen = values[candidates, labels].astype(np.float64)
        if len(chosen) > _MOST_CANDIDATES:
            best = np.argpartition(-chosen, _MOST_CANDIDATES)[:_MOST_CANDIDATES]
            candidates, labels, chosen = candidates[best], labels[best], chosen[best]
        kept = kept_boxes(boxes[candidates], chosen, labels)
        triples.append((boxes[candidates[kept]], chosen[kept], labels[kept]))
    return triples


#: How each form is read: arrays by name and the number of classes, to what each picture holds.
_READERS = {
    "torchvision": _triples,
    "tensorflow": _tensorflow,
    "yolov8": _yolov8,
    "yolov5": _yolov5,
    "end-to-end": _end_to_end,
}


def kept_boxes(boxes: NDArray[Any], scores: NDArray[Any], labels: NDArray[Any]) -> NDArray[Any]:
    """Return which boxes stay, the best first.

    Args:
        boxes: Left, top, right and bottom, one row a candidate.
        scores: One a candidate.
        labels: Class of each: only boxes of one class are compared.
    """
    import numpy as np

    order = np.argsort(-scores, kind="stable")[:_MOST_CANDIDATES]
    # A class has a place of its own in the plane, so that classes never overlap.
    apart = boxes[order] + (labels[order] * (np.ptp(boxes) + 1 if boxes.size else 1))[:, None]
    left, top, right, bottom = apart.T
    areas = np.maximum(0, right - left) * np.maximum(0, bottom - top)
    kept: list[int] = []
    rest = np.arange(len(order))
    while rest.size and len(kept) < _MOST_KEPT:
        best, rest = rest[0], rest[1:]
        kept.append(int(best))
        width = np.minimum(right[best], right[rest]) - np.maximum(left[best], left[rest])
        height = np.minimum(bottom[best], bottom[rest]) - np.maximum(top[best], top[rest])
        shared = np.maximum(0, width) * np.maximum(0, height)
        union = areas[best] + areas[rest] - shared
        rest = rest[shared <= _OVERLAP * union]
    chosen: NDArray[Any] = order[kept]
    return chosen
