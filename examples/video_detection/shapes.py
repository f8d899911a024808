"""Frames of moving shapes whose boxes are known; numpy alone draws them."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np

HEIGHT, WIDTH = 240, 320
#: Width and height of each class, in pixels.
SIZES = {"square": (24, 24), "disc": (36, 36), "triangle": (40, 34)}
CLASSES = tuple(SIZES)
LANES = 4
#: A detection with less is no shape.
LEAST_SCORE = 0.25


@dataclass(frozen=True)
class Box:
    """A shape of a frame: its class, and its box in pixels."""

    kind: int
    left: float
    top: float
    width: float
    height: float


def mask_of(kind: int, x: np.ndarray, y: np.ndarray, width: float, height: float) -> np.ndarray:
    """Return which of the points are inside a shape whose centre is at 0, 0."""
    inside = (abs(x) <= width / 2) & (abs(y) <= height / 2)
    if CLASSES[kind] == "disc":
        return (x / width) ** 2 + (y / height) ** 2 <= 0.25
    if CLASSES[kind] == "triangle":  # its tip is at the top
        return inside & (abs(x) <= width / 2 * (y / height + 0.5))
    return inside


class Clip:
    """A clip that is the same for the same seed: one shape in each of four lanes."""

    def __init__(self, seed: int = 0) -> None:
        draw = np.random.default_rng(seed)
        self._kinds = draw.permuted([0, 1, 2, draw.integers(3)])
        self._start, self._speed = draw.uniform(0, 500, LANES), draw.uniform(1.0, 4.0, LANES)
        self._colours = draw.uniform(130, 255, (LANES, 3))
        self._phase = draw.uniform(0, 2 * np.pi, LANES)
        self._seed = seed

    def boxes(self, number: int) -> list[Box]:
        """Return the shapes of a frame; they grow and shrink by a tenth."""
        boxes = []
        room = WIDTH - 50
        for lane in range(LANES):
            kind = int(self._kinds[lane])
            scale = 1 + 0.1 * np.sin(self._phase[lane] + number / 20)
            width, height = (scale * size for size in SIZES[CLASSES[kind]])
            # There and back again.
            way = (self._start[lane] + self._speed[lane] * number) % (2 * room)
            x = 25 + min(way, 2 * room - way)
            y = HEIGHT / LANES * (lane + 0.5) + 5 * np.sin(self._phase[lane] + number / 9)
            boxes.append(Box(kind, x - width / 2, y - height / 2, width, height))
        return boxes

    def frame(self, number: int) -> np.ndarray:
        """Return a frame: rows, columns, and three colours of a byte each."""
        draw = np.random.default_rng((self._seed, number))
        y, x = np.mgrid[0.5:HEIGHT, 0.5:WIDTH]
        image = np.empty((HEIGHT, WIDTH, 3))
        image[:] = (20 + 40 * x / WIDTH)[..., None]
        for box, colour in zip(self.boxes(number), self._colours, strict=True):
            centre = x - box.left - box.width / 2, y - box.top - box.height / 2
            image[mask_of(box.kind, *centre, box.width, box.height)] = colour
        image += draw.normal(0, 8, image.shape)
        return image.clip(0, 255).round().astype(np.uint8)


def write_labels(path: Path, pictures: dict[str, list[Box]]) -> None:
    """Write the boxes of pictures as COCO does."""
    images = [
        {"id": number, "file_name": name, "width": WIDTH, "height": HEIGHT}
        for number, name in enumerate(pictures)
    ]
    annotations = [
        {
            "image_id": number,
            "category_id": box.kind + 1,
            "bbox": [box.left, box.top, box.width, box.height],
            "area": box.width * box.height,
            "iscrowd": 0,
        }
        for number, boxes in enumerate(pictures.values())
        for box in boxes
    ]
    for number, annotation in enumerate(annotations):
        annotation["id"] = number + 1
    categories = [{"id": kind + 1, "name": name} for kind, name in enumerate(CLASSES)]
    truth = {"images": images, "annotations": annotations, "categories": categories}
    path.write_text(json.dumps(truth))
