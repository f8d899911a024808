"""The example that detects shapes in a clip, as far as it needs no OpenCV."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from pytest_ortbench.planning.coco_file import read_coco

FOLDER = Path(__file__).parents[1] / "examples" / "video_detection"


@pytest.fixture
def shapes(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    monkeypatch.syspath_prepend(FOLDER)
    yield importlib.import_module("shapes")
    for name in ("shapes", "detector"):
        sys.modules.pop(name, None)


def overlap(box: Any, row: np.ndarray) -> float:
    """Intersection over union of a shape and of what was detected."""
    left, top, right, bottom = row[:4]
    wide = min(right, box.left + box.width) - max(left, box.left)
    high = min(bottom, box.top + box.height) - max(top, box.top)
    both = max(0.0, wide) * max(0.0, high)
    return both / (box.width * box.height + (right - left) * (bottom - top) - both)


@pytest.mark.live
def test_every_shape_is_found_and_nothing_else(shapes: ModuleType) -> None:
    import onnxruntime

    model = importlib.import_module("detector").build().SerializeToString()
    session = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])
    for seed in (1, 2):
        clip = shapes.Clip(seed)
        numbers = range(0, 200, 50)
        frames = np.stack([clip.frame(number) for number in numbers])
        (found,) = session.run(None, {"frame": frames})
        for number, rows in zip(numbers, found, strict=True):
            rows = rows[rows[:, 4] >= shapes.LEAST_SCORE]
            boxes = clip.boxes(number)
            assert len(rows) == len(boxes)
            for box in boxes:
                (near,) = (row for row in rows if overlap(box, row) > 0.5)
                assert near[5] == box.kind


def test_its_labels_are_read_as_boxes_of_its_classes(shapes: ModuleType, tmp_path: Path) -> None:
    path, boxes = tmp_path / "labels.json", shapes.Clip().boxes(0)
    shapes.write_labels(path, {"a.png": boxes, "b.png": boxes[:1]})
    coco = read_coco(path)
    assert coco.categories == dict(enumerate(shapes.CLASSES, 1))
    assert [image.name for image in coco.images] == ["a.png", "b.png"]
    assert len(coco.annotations) == 5
    assert coco.annotations[0]["bbox"][2] == pytest.approx(boxes[0].width)
