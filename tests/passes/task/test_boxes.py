"""Outputs of detectors as boxes: every form that is recognised, and what is refused."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

from pytest_ortbench.core.dataset import Boxes
from pytest_ortbench.core.errors import WorkerError
from pytest_ortbench.passes.task.run.boxes import _from_first
from pytest_ortbench.passes.task.worker.box_forms import kept_boxes
from pytest_ortbench.passes.task.worker.boxes import BoxReader, ImageTable, PictureBoxes

#: Two pictures that were fed as 100x200 (height, width), twice as large and as they are.
TABLE = ImageTable(
    placement=np.array([[2.0, 0.0, 2.0, 0.0, 400, 200], [1.0, -10.0, 1.0, 5.0, 180, 110]]),
    size=(100, 200),
    classes=3,
)
#: A box of the input, left, top, right and bottom.
BOX = (20.0, 30.0, 60.0, 50.0)
CENTRED = (40.0, 40.0, 40.0, 20.0)


def read(
    outputs: dict[str, Any], boxes: Boxes | None = None, rows: tuple[int, ...] = (0,)
) -> tuple[PictureBoxes, ...]:
    reader = BoxReader(boxes or Boxes(), TABLE)
    reader({name: np.asarray(value) for name, value in outputs.items()}, np.asarray(rows))
    return reader.found


def form_of(outputs: dict[str, Any], boxes: Boxes | None = None) -> str:
    reader = BoxReader(boxes or Boxes(), TABLE)
    reader({name: np.asarray(value) for name, value in outputs.items()}, np.asarray([0]))
    return reader.form


def grid(columns: int, *rows: tuple[float, ...], count: int = 50) -> np.ndarray[Any, Any]:
    """Candidates of a detector, all nothing but the first."""
    made = np.zeros((1, count, columns), np.float32)
    for number, row in enumerate(rows):
        made[0, number, : len(row)] = row
    return made


YOLOV8 = grid(7, (*CENTRED, 0.1, 0.8, 0.0)).transpose(0, 2, 1)
TORCHVISION = {
    "boxes": np.float32([BOX]),
    "labels": np.int64([2]),
    "scores": np.float32([0.8]),
}


class TestForms:
    @pytest.mark.parametrize(
        ("outputs", "form"),
        [
            (TORCHVISION, "torchvision"),
            ({name: value[None] for name, value in TORCHVISION.items()}, "torchvision"),
            ({"a": [[BOX]], "b": np.float32([[0.8]]), "c": np.int32([[2]])}, "torchvision"),
            ({"output0": YOLOV8}, "yolov8"),
            ({"output0": YOLOV8, "output1": np.zeros((1, 32, 160, 160))}, "yolov8"),
            ({"output": grid(8, (*CENTRED, 0.8, 0.1, 1.0, 0.0))}, "yolov5"),
            ({"output0": grid(6, (*BOX, 0.8, 2.0))}, "end-to-end"),
            (
                {
                    "num_detections": [1.0],
                    "detection_boxes": [[(0.3, 0.1, 0.5, 0.3)]],
                    "detection_scores": np.float32([[0.8]]),
                    "detection_classes": np.float32([[2.0]]),
                },
                "tensorflow",
            ),
        ],
    )
    def test_each_gives_the_same_box(self, outputs: dict[str, Any], form: str) -> None:
        assert form_of(outputs) == form
        (found,) = read(outputs)
        best = int(found.scores.argmax())
        assert found.row == 0
        # Twice as large, as the picture was.
        assert found.boxes[best] == pytest.approx([40, 60, 120, 100])
        assert found.scores[best] == pytest.approx(0.8)
        assert found.labels[best] == (1 if form.startswith("yolo") else 2)

    def test_boxes_from_0_to_1_are_those_of_the_input(self) -> None:
        outputs = {**TORCHVISION, "boxes": np.float32([[0.1, 0.3, 0.3, 0.5]])}
        assert read(outputs)[0].boxes[0] == pytest.approx([40, 60, 120, 100])

    def test_several_pictures_have_their_own_place_and_what_fills_is_not_read_twice(self) -> None:
        outputs = {name: np.stack([value] * 3) for name, value in TORCHVISION.items()}
        first, second = read(outputs, rows=(0, 1, 1))
        assert (first.row, second.row) == (0, 1)
        assert second.boxes[0] == pytest.approx([10, 35, 50, 55])

    def test_boxes_end_at_the_edge_of_the_picture(self) -> None:
        outputs = {**TORCHVISION, "boxes": np.float32([[-5, -5, 500, 500]])}
        assert read(outputs)[0].boxes[0] == pytest.approx([0, 0, 400, 200])

    def test_one_class_tells_end_to_end_and_yolov5_by_their_values(self) -> None:
        assert form_of({"output": grid(6, (*CENTRED, 0.8, 0.7))}) == "yolov5"
        assert form_of({"output": grid(6, (*BOX, 0.8, 0.0))}) == "end-to-end"

    def test_an_asked_form_holds(self) -> None:
        turned = {"output0": YOLOV8.transpose(0, 2, 1)}
        assert form_of(turned, Boxes(form="yolov8")) == "yolov8"
        assert read(turned, Boxes(form="yolov8"))[0].labels.tolist() == [1, 0]

    def test_nothing_found_is_no_error(self) -> None:
        nothing = {
            "boxes": np.zeros((0, 4), np.float32),
            "labels": np.zeros(0, np.int64),
            "scores": np.zeros(0, np.float32),
        }
        (found,) = read(nothing)
        assert found.boxes.shape == (0, 4)

    def test_boxes_with_nan_are_none(self) -> None:
        broken = {**TORCHVISION, "boxes": np.full((1, 4), np.nan, np.float32)}
        assert not len(read(broken)[0].boxes)

    @pytest.mark.parametrize(
        "outputs",
        [
            {"logits": np.zeros((1, 10), np.float32)},
            {"a": np.zeros((1, 7, 7), np.float32)},
            {"logits": np.zeros((1, 100, 92), np.float32), "pred_boxes": np.zeros((1, 100, 4))},
            # Logits: no sigmoid was applied.
            {"output0": np.full((1, 7, 50), -4.0, np.float32)},
        ],
    )
    def test_what_is_no_known_form_is_refused_with_what_there_is(
        self, outputs: dict[str, Any]
    ) -> None:
        with pytest.raises(WorkerError) as caught:
            read(outputs)
        assert str(list(next(iter(outputs.values())).shape)) in caught.value.failure.message
        assert "FUNCTION" in caught.value.failure.hint

    def test_more_pictures_than_were_fed_are_refused(self) -> None:
        with pytest.raises(WorkerError) as caught:
            read({name: value[None] for name, value in TORCHVISION.items()}, rows=(0, 1))
        assert "--ort-batch-sizes=1" in caught.value.failure.hint

    def test_a_smaller_batch_is_proposed_only_where_there_is_one(self) -> None:
        with pytest.raises(WorkerError) as caught:
            read({name: np.stack([value] * 2) for name, value in TORCHVISION.items()}, rows=(0,))
        assert "--ort-batch-sizes" not in caught.value.failure.hint

    @pytest.mark.parametrize(
        ("outputs", "step"),
        [
            ({"logits": np.zeros((1, 10), np.float32)}, "--ort-labels"),
            ({"raw": np.zeros((1, 3, 8, 8, 85), np.float32)}, ":FILE.py:FUNCTION"),
            ({"a": np.zeros((1, 7, 7), np.float32)}, ":yolov8"),
        ],
    )
    def test_the_step_is_for_the_outputs_that_there_are(
        self, outputs: dict[str, Any], step: str
    ) -> None:
        steps = ("--ort-labels", ":yolov8")
        with pytest.raises(WorkerError) as caught:
            read(outputs)
        hint = caught.value.failure.hint
        assert step in hint
        assert not any(other in hint for other in steps if other != step)

    def test_the_form_that_outputs_have_is_proposed_for_a_wrong_one(self) -> None:
        with pytest.raises(WorkerError) as caught:
            read(TORCHVISION, Boxes(form="yolov8"))
        hint = caught.value.failure.hint
        assert "torchvision" in hint
        assert "yolov5" not in hint
        with pytest.raises(WorkerError) as caught:
            read({"logits": np.zeros((1, 3, 4, 4), np.float32)}, Boxes(form="yolov8"))
        assert "FILE.py:FUNCTION in place" in caught.value.failure.hint


class TestAdapter:
    def test_a_function_reads_what_nothing_else_does(self, tmp_path: Any) -> None:
        (tmp_path / "own.py").write_text(
            "def mine(outputs):\n    return [(outputs['b'], outputs['s'], [1])]\n"
        )
        own = Boxes(adapter=str(tmp_path / "own.py"), function="mine")
        (found,) = read({"b": [BOX], "s": [0.5]}, own)
        assert found.boxes[0] == pytest.approx([40, 60, 120, 100])
        assert (found.scores.tolist(), found.labels.tolist()) == ([0.5], [1])

    @pytest.mark.parametrize(
        "body",
        [
            "return 3",
            "return []",
            "return [([[0, 0, 1]], [1], [1])]",
            "return [([[0, 0, 1, 1]], [1, 2], [1])]",
            "return [(1, 2)]",
            "return [None]",
            "return outputs['b'], outputs['b'], outputs['b']",
            "raise ValueError('no')",
            "return [([[0, 0, 1, 1]], ['a'], [1])]",
        ],
    )
    def test_what_it_gives_instead_is_said(self, tmp_path: Any, body: str) -> None:
        (tmp_path / "own.py").write_text(f"def mine(outputs):\n    {body}\n")
        with pytest.raises(WorkerError, match=r"mine"):
            read({"b": [BOX]}, Boxes(adapter=str(tmp_path / "own.py"), function="mine"))

    def test_one_triple_and_a_picture_without_boxes_have_steps_of_their_own(
        self, tmp_path: Any
    ) -> None:
        hints = []
        for name, body in (
            ("one", "return outputs['b'], outputs['s'], outputs['s']"),
            ("none", "return [None]"),
        ):
            (tmp_path / f"{name}.py").write_text(f"def mine(outputs):\n    {body}\n")
            own = Boxes(adapter=str(tmp_path / f"{name}.py"), function="mine")
            with pytest.raises(WorkerError) as caught:
                read({"b": np.zeros((3, 4)), "s": np.zeros(3)}, own)
            hints.append(caught.value.failure.hint)
        assert "[(boxes, " in hints[0]
        assert "empty" in hints[1]

    @pytest.mark.parametrize(
        ("code", "value"),
        [("mine = 3", "int"), ("", "'mine'"), ("def read(): ...", "e.g. own.py:read")],
    )
    def test_what_is_no_function_is_said(self, tmp_path: Any, code: str, value: str) -> None:
        (tmp_path / "own.py").write_text(code)
        with pytest.raises(WorkerError) as caught:
            BoxReader(Boxes(adapter=str(tmp_path / "own.py"), function="mine"), TABLE)
        assert value in f"{caught.value.failure.message}. {caught.value.failure.hint}"


class TestSuppression:
    def test_of_boxes_that_overlap_the_best_stays_within_its_class(self) -> None:
        boxes = np.array([[0, 0, 10, 10], [0, 0, 10, 9], [0, 0, 10, 10], [20, 20, 30, 30]], float)
        scores, labels = np.array([0.5, 0.9, 0.8, 0.1]), np.array([0, 0, 1, 0])
        assert kept_boxes(boxes, scores, labels).tolist() == [1, 2, 3]

    def test_it_agrees_with_every_pair_compared(self) -> None:
        draw = np.random.default_rng(3)
        corner = draw.uniform(0, 80, (400, 2))
        boxes = np.hstack([corner, corner + draw.uniform(5, 40, (400, 2))])
        scores, labels = draw.uniform(0.01, 1, 400), draw.integers(0, 3, 400)

        def overlap(one: Any, other: Any) -> float:
            low, high = np.maximum(one[:2], other[:2]), np.minimum(one[2:], other[2:])
            shared = np.prod(np.maximum(0, high - low))
            return float(
                shared / (np.prod(one[2:] - one[:2]) + np.prod(other[2:] - other[:2]) - shared)
            )

        kept: list[int] = []
        for number in np.argsort(-scores):
            rivals = [other for other in kept if labels[other] == labels[number]]
            if all(overlap(boxes[number], boxes[other]) <= 0.7 for other in rivals):
                kept.append(int(number))
        assert kept_boxes(boxes, scores, labels).tolist() == kept[:300]


@pytest.mark.parametrize(("categories", "named"), [([7], ["7"]), ([1, 3, 9], ["1", "3"])])
def test_classes_are_told_with_the_categories_that_the_first_of_them_are(
    categories: list[int], named: list[str]
) -> None:
    told = _from_first({"categories": categories})
    assert re.findall(r"category (\d+)", told) == named


def test_values_out_of_scale_are_read_where_the_form_is_known() -> None:
    """A quantised detector may lose all scores, and is scored as what it is."""
    broken = {"output0": 4 * YOLOV8}
    with pytest.raises(WorkerError):
        read(broken)
    assert read(broken, Boxes(form="yolov8"))[0].scores.max() == pytest.approx(3.2)
