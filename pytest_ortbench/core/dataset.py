"""Labelled data as an input of cases: what was asked."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import PurePath

#: What the name of an array starts with that is fed beside every batch, before its input's name.
SHARED = "shared:"
#: Name of the array that says where each picture lies in the input.
PLACEMENT = "boxes:placement"
#: Member of an archive that says what is on each picture, and how classes are counted.
TRUTH = "boxes.json"
#: Folder of the cache with the arrays that were made of the user's files, a folder for each set.
OWN_DATA = "own-data"
#: Folder beside the arrays that are fed, with those that are scored.
LABELLED = "labelled"
#: Forms of a detector's outputs that are read without a function of the user's.
DETECTION_FORMS: dict[str, str] = {
    "torchvision": "boxes [n, 4], scores [n] and labels [n]",
    "tensorflow": "detection_boxes, detection_scores and detection_classes",
    "yolov8": "one output [batch, 4 + classes, n]",
    "yolov5": "one output [batch, n, 5 + classes]",
    "end-to-end": "one output [batch, n, 6]",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Boxes:
    """How the outputs of a detector become boxes.

    Attributes:
        form: One of :data:`DETECTION_FORMS`; empty for what their shapes and values say.
        adapter: Absolute path of a Python file that reads them; empty for none.
        function: Name of the function in it.
    """

    form: str = ""
    adapter: str = ""
    function: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Dataset:
    """Labelled data as it was asked for.

    Attributes:
        path: Absolute path of an ``.npz`` file, or of a Python file.
        function: Name of the function in the Python file; empty for an ``.npz`` file.
        boxes: How boxes are read, where the samples are images with boxes; ``None`` for others.
    """

    path: str
    function: str = ""
    boxes: Boxes | None = None

    @property
    def user_code(self) -> str:
        """Path of the user's Python file that runs in the worker; empty without one."""
        if self.boxes is not None:
            return self.boxes.adapter
        return self.path if self.function else ""

    @property
    def label(self) -> str:
        """For people: ``digits.npz``, ``digits.py:validation``, ``coco:labels.json``."""
        if self.boxes is not None:
            return f"coco:{PurePath(self.path).stem}.json"
        name = PurePath(self.path).name
        return f"{name}:{self.function}" if self.function else name
