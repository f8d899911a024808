"""Outputs of a detector as boxes on the original pictures.

A form says which output holds what. It is told by the shapes and values of the first outputs; a
name (:data:`~pytest_ortbench.core.dataset.DETECTION_FORMS`) or a function of the user's says it
instead.

::

    def boxes(outputs):                      # outputs of one batch by name
        return [(outputs["xyxy"][row], outputs["p"][row], outputs["kind"][row]) for row in …]

Boxes are left, top, right and bottom in pixels of the input, or all of them from 0 to 1.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_ortbench.core.dataset import DETECTION_FORMS, Boxes
from pytest_ortbench.core.errors import says
from pytest_ortbench.core.units import counted
from pytest_ortbench.passes.task.worker.box_forms import (
    Triple,
    possible,
    read_form,
    recognised,
)
from pytest_ortbench.passes.task.worker.complaint import array_words, bad_data
from pytest_ortbench.passes.task.worker.own_function import own_function
from pytest_ortbench.worker.user_code import call

if TYPE_CHECKING:
    from numpy.typing import NDArray

#: Boxes whose largest coordinate is below are shares of the input.
_LARGEST_SHARE = 2.0
_TRIPLES = (
    "Return a list with one (boxes, scores, labels) for each picture, of shapes [n, 4], [n] and [n]"
)
_NO_BOXES = (
    "Return a list with one (boxes, scores, labels) for each picture, with empty arrays for a "
    "picture without boxes"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ImageTable:
    """What is known of the pictures, in the order of their rows.

    Attributes:
        placement: For each picture scale and offset of x, scale and offset of y, width and height;
            x of the picture is ``scale * x of the input + offset``.
        size: Height and width of the input.
        classes: Classes of the model; 0 if nobody says how many.
    """

    placement: NDArray[Any]
    size: tuple[int, int]
    classes: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class PictureBoxes:
    """What was detected in one picture.

    Attributes:
        row: The picture.
        boxes: Left, top, right and bottom in pixels of the picture.
        scores: One a box.
        labels: Class of each box, as the model counts.
    """

    row: int
    boxes: NDArray[Any]
    scores: NDArray[Any]
    labels: NDArray[Any]


class BoxReader:
    """Reads the boxes of batches, as a metric that keeps what was detected.

    Args:
        asked: How they are to be read.
        table: The pictures.

    Attributes:
        form: The form that was read, known after the first batch; empty for a function.
        shapes: Outputs of the first batch in words.
        found: What was detected, one entry a picture.
    """

    name = "mAP@[.5:.95]"

    def __init__(self, asked: Boxes, table: ImageTable) -> None:
        self._asked = asked
        self._table = table
        self._function: Callable[..., Any] | None = None
        self._read: dict[int, Triple] = {}
        self.form = asked.form
        self.shapes = ""
        if asked.adapter:
            self._function = own_function(Path(asked.adapter), asked.function)

    @property
    def found(self) -> tuple[PictureBoxes, ...]:
        largest = max(
            (float(boxes.max()) for boxes, *_ in self._read.values() if boxes.size), default=0
        )
        shares = largest < _LARGEST_SHARE < max(self._table.size)
        height, width = self._table.size if shares else (1, 1)
        return tuple(
            self._placed(row, boxes * (width, height, width, height), scores, labels)
            for row, (boxes, scores, labels) in self._read.items()
        )

    def __call__(self, outputs: Mapping[str, object], labels: Any) -> NDArray[Any]:
        """Read one batch, whose labels are rows of the table; its scores are told later."""
        import numpy as np

        rows = [int(row) for row in labels]
        if not self.shapes:
            self.shapes = ", ".join(f"{name} {array_words(outputs[name])}" for name in outputs)
        pictures = self._pictures(outputs)
        if len(pictures) != len(rows):
            if self._function:
                raise bad_data(
                    f"{self._who} returned boxes for {counted(len(pictures), 'picture')}, but the "
                    f"batch has {len(rows)}",
                    _NO_BOXES,
                )
            raise bad_data(
                f"the outputs, read as {self.form}, have boxes for "
                f"{counted(len(pictures), 'picture')}, but the batch has {len(rows)}: "
                f"{self.shapes}",
                "Use --ort-batch-sizes=1" if len(pictures) == 1 else _as_sentence(self._own_reader),
            )
        for row, picture in zip(rows, pictures, strict=True):
            self._read[row] = _whole(*picture)
        return np.zeros(len(rows))

    @property
    def _who(self) -> str:
        """The function of the user's, for messages."""
        return f"the function {self._asked.function!r} in {Path(self._asked.adapter).name}"

    def _pictures(self, outputs: Mapping[str, object]) -> Sequence[Triple]:
        import numpy as np

        if self._function is not None:
            path = Path(self._asked.adapter)
            return _own(call(path, self._asked.function, self._function, dict(outputs)), self._who)
        arrays = {
            name: value
            for name, value in outputs.items()
            if isinstance(value, np.ndarray) and value.dtype.kind in "fiu"
        }
        if not self.form:
            self.form = recognised(arrays, self._table.classes)
            if not self.form:
                raise bad_data(
                    f"the outputs do not have a known form of boxes: {self.shapes}",
                    self._step(arrays),
                )
        triples = read_form(self.form, arrays, self._table.classes)
        if triples is None:
            raise bad_data(
                f"the outputs are {self.shapes}, but those of the form {self.form} are "
                f"{DETECTION_FORMS[self.form]}",
                self._step(arrays),
            )
        return triples

    def _step(self, arrays: Mapping[str, NDArray[Any]]) -> str:
        """The step for outputs that can't be read in the form that was named, or in any."""
        classes = self._table.classes
        fitting = recognised(arrays, classes)
        if fitting:
            return f"Write {fitting} in place of {self._asked.form} in --ort-dataset"
        if all(array.ndim <= 2 for array in arrays.values()):
            return (
                "For a classifier, write --ort-labels=FILE.csv with the class of each picture in "
                f"place of --ort-dataset. For a detector, {self._own_reader}"
            )
        forms = possible(arrays, classes)
        if not forms or self._asked.form:
            return _as_sentence(self._own_reader)
        return (
            f"If the form is one of {', '.join(forms)}, add it to --ort-dataset, e.g. :{forms[0]}. "
            f"If not, {self._own_reader}"
        )

    @property
    def _own_reader(self) -> str:
        """The step to a function of the user's that reads the outputs."""
        named = self._asked.form
        return (
            "write a Python function that returns (boxes, scores, labels) for each picture, and "
            + (
                f"write FILE.py:FUNCTION in place of {named} in"
                if named
                else "add :FILE.py:FUNCTION to"
            )
            + " --ort-dataset"
        )

    def _placed(
        self, row: int, boxes: NDArray[Any], scores: NDArray[Any], labels: NDArray[Any]
    ) -> PictureBoxes:
        """Boxes of the input on the picture, cut at its edges."""
        import numpy as np

        x_scale, x_offset, y_scale, y_offset, width, height = self._table.placement[row]
        scales = np.array([x_scale, y_scale, x_scale, y_scale])
        offsets = np.array([x_offset, y_offset, x_offset, y_offset])
        placed = np.clip(boxes * scales + offsets, 0, (width, height, width, height))
        return PictureBoxes(row=row, boxes=placed, scores=scores, labels=labels)


def _as_sentence(step: str) -> str:
    return step[0].upper() + step[1:]


def _whole(boxes: NDArray[Any], scores: NDArray[Any], labels: NDArray[Any]) -> Triple:
    """Boxes with an area and a score: detectors fill up their outputs with nothing."""
    import numpy as np

    boxes = boxes.astype(np.float64)
    whole = np.isfinite(boxes).all(axis=1) & np.isfinite(scores) & np.isfinite(labels)
    whole &= (boxes[:, 2:] > boxes[:, :2]).all(axis=1)
    return boxes[whole], scores[whole].astype(np.float64), labels[whole].astype(np.int64)


def _own(given: Any, who: str) -> Sequence[Triple]:
    """What a function of the user's gave, checked."""

    if not isinstance(given, list | tuple):
        raise bad_data(
            f"{who} returned a value of type {type(given).__name__}, not a list", _TRIPLES
        )
    if len(given) == 3 and all(hasattr(part, "shape") for part in given):
        raise bad_data(
            f"{who} returned one (boxes, scores, labels), not a list with one for each picture",
            "For a single picture, return [(boxes, scores, labels)]",
        )
    triples: list[Triple] = []
    for number, item in enumerate(given):
        picture = f"for picture {number} of the batch"
        if not isinstance(item, list | tuple) or len(item) != 3:
            many = isinstance(item, list | tuple)
            kind = f"a {type(item).__name__} of {len(item)}" if many else _kind(item)
            raise bad_data(
                f"{who} returned {kind} {picture}, not (boxes, scores, labels)",
                _TRIPLES if item is not None else _NO_BOXES,
            )
        boxes, scores, labels = (
            _numbers(part, name, f"{who} returned {name} {picture}")
            for name, part in zip(("boxes", "scores", "labels"), item, strict=True)
        )
        boxes = boxes.reshape(-1, 4) if not boxes.size else boxes
        scores, labels = scores.reshape(-1), labels.reshape(-1)
        if boxes.ndim != 2 or boxes.shape[1] != 4:
            raise bad_data(
                f"{who} returned boxes of shape {list(boxes.shape)} {picture}, but [n, 4] is "
                "needed",
                _TRIPLES,
            )
        if not len(boxes) == len(scores) == len(labels):
            raise bad_data(
                f"{who} returned {counted(len(boxes), 'box', 'es')}, "
                f"{counted(len(scores), 'score')} and {counted(len(labels), 'label')} {picture}, "
                "but each box needs one score and one label",
                "Return as many scores and labels as boxes",
            )
        triples.append((boxes, scores, labels))
    return triples


def _kind(value: object) -> str:
    return "None" if value is None else f"a value of type {type(value).__name__}"


def _numbers(part: Any, name: str, returned: str) -> NDArray[Any]:
    import numpy as np

    try:
        return np.asarray(part, np.float64)
    except (TypeError, ValueError) as error:
        raise bad_data(
            f"{returned} that are no array of numbers ({says('numpy', str(error))})",
            f"Return {name} as an array of numbers",
        ) from error
