"""``--ort-dataset=coco:labels.json``: detectors of a drawn set, from command line to mAP."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper, save

from .conftest import QUICK as FAST

pytest.importorskip("PIL")
coco_eval = pytest.importorskip("faster_coco_eval")

QUICK = (*FAST, "--ort-no-results", "--ort-json=run.json", "-k", "test_accuracy")
SIDE = 16
FLOAT, INT = TensorProto.FLOAT, TensorProto.INT64


@dataclass
class Drawn:
    """Pictures of one grey each, whose boxes are known.

    Attributes:
        labels: The file of boxes.
        boxes: Boxes of each picture, left, top, right and bottom as shares of it.
        categories: Category of each.
        truth: What the file says.
    """

    labels: Path
    boxes: np.ndarray[Any, Any]
    categories: np.ndarray[Any, Any]
    truth: dict[str, Any]


def draw(folder: Path, count: int = 12, each: int = 3, ids: tuple[int, ...] = (1, 2, 3)) -> Drawn:
    """Write pictures in ``photos`` and their boxes in ``labels.json``."""
    from PIL import Image

    random = np.random.default_rng(5)
    corner = random.uniform(0, 0.5, (count, each, 2))
    boxes = np.concatenate([corner, corner + random.uniform(0.2, 0.5, corner.shape)], axis=2)
    categories = random.permuted(np.tile(ids, (count, 1)), axis=1)[:, :each]
    images, annotations = [], []
    (folder / "photos").mkdir()
    for row in range(count):
        width, height = int(random.integers(20, 90)), int(random.integers(20, 90))
        Image.new("RGB", (width, height), (row * 10 + 5,) * 3).save(folder / f"photos/p{row}.png")
        name = {"id": 100 - row, "file_name": f"p{row}.png", "width": width, "height": height}
        images.append(name)
        for box, category in zip(boxes[row], categories[row], strict=True):
            left, top, right, bottom = (float(v) for v in box * (width, height, width, height))
            annotations.append(
                {
                    "id": len(annotations),
                    "image_id": 100 - row,
                    "category_id": int(category),
                    "bbox": [left, top, right - left, bottom - top],
                    "area": (right - left) * (bottom - top),
                    "iscrowd": 0,
                }
            )
    truth = {
        "images": images,
        "annotations": annotations,
        "categories": [{"id": number, "name": f"kind {number}"} for number in ids],
    }
    (folder / "labels.json").write_text(json.dumps(truth))
    return Drawn(folder / "labels.json", boxes, categories, truth)


def detector(path: Path, tables: dict[str, np.ndarray[Any, Any]], batch: int | str = 1) -> Path:
    """A model that knows a picture by its grey, and looks up each output in a table."""
    nodes = [
        helper.make_node("ReduceMean", ["image"], ["grey"], axes=[1, 2, 3], keepdims=0),
        helper.make_node("Mul", ["grey", "tenth"], ["tens"]),
        helper.make_node("Floor", ["tens"], ["whole"]),
        helper.make_node("Cast", ["whole"], ["row"], to=INT),
    ]
    constants = [numpy_helper.from_array(np.float32(25.5), "tenth")]
    outputs = []
    for name, table in tables.items():
        constants.append(numpy_helper.from_array(table, f"table {name}"))
        nodes.append(helper.make_node("Gather", [f"table {name}", "row"], [name]))
        kind = helper.np_dtype_to_tensor_dtype(table.dtype)
        outputs.append(helper.make_tensor_value_info(name, kind, [batch, *table.shape[1:]]))
    image = helper.make_tensor_value_info("image", FLOAT, [batch, 3, SIDE, SIDE])
    graph = helper.make_graph(nodes, "g", [image], outputs, constants)
    opset = [helper.make_opsetid("", 13)]
    save(helper.make_model(graph, ir_version=8, opset_imports=opset), str(path))
    return path


def torchvision(drawn: Drawn, shift: int = 0) -> dict[str, np.ndarray[Any, Any]]:
    """Outputs that are perfect, or those of the picture before."""
    tables = {
        "boxes": (drawn.boxes * SIDE).astype(np.float32),
        "scores": np.linspace(0.9, 0.5, drawn.categories.size).reshape(drawn.categories.shape),
        "labels": drawn.categories.astype(np.int64),
    }
    tables["scores"] = tables["scores"].astype(np.float32)
    return {name: np.roll(table, shift, axis=0) for name, table in tables.items()}


def task_of(folder: Path) -> dict[str, Any]:
    (case,) = json.loads((folder / "run.json").read_text())["cases"]
    task: dict[str, Any] = case["task"]
    return task


def by_hand(drawn: Drawn, detections: list[dict[str, Any]]) -> tuple[float, float]:
    """The two means as the library gives them to whoever calls it."""
    truth = json.loads(json.dumps(drawn.truth))
    for number, annotation in enumerate(truth["annotations"], 1):
        annotation["id"] = number
    known = coco_eval.COCO(truth)
    evaluation = coco_eval.COCOeval_faster(known, known.loadRes(detections), iouType="bbox")
    evaluation.evaluate()
    evaluation.accumulate()
    evaluation.summarize()
    return float(evaluation.stats[0]), float(evaluation.stats[1])


def test_a_perfect_detector_has_1_in_document_limits_and_line(pytester: pytest.Pytester) -> None:
    drawn = draw(pytester.path)
    detector(pytester.path / "net.onnx", torchvision(drawn))
    pytester.makepyfile(
        """
        import pytest

        @pytest.mark.ortbench(models=["net.onnx"], limits=["task_map >= 0.99", "task_map50 >= 1"])
        def test_accuracy_of_boxes(ortbench):
            assert float(ortbench.task().map) == pytest.approx(1)
            assert float(ortbench.task().map50) == pytest.approx(1)
            assert ortbench.task().kept > 0.7
        """
    )
    result = pytester.runpytest(*QUICK, "--ort-dataset=coco:labels.json", "--ort-inputs=photos")
    result.assert_outcomes(passed=1)
    task = task_of(pytester.path)
    assert task["samples"] == 12
    assert task["score_sum"] == pytest.approx(12)
    assert task["boxes"]["form"].startswith("torchvision: boxes float32 [1, 3, 4]")
    assert (task["boxes"]["drawn"], task["boxes"]["detected"]) == (36, 36)
    assert len(task["boxes"]["own"]["left_out"]) == 12
    result.stdout.fnmatch_lines(["*mAP@?.5:.95? 1.00, mAP50 1.00 on 12 images*"])


def test_boxes_of_the_picture_before_are_told_as_wrong(pytester: pytest.Pytester) -> None:
    drawn = draw(pytester.path)
    # Far apart, so that no box lies over that of another picture.
    drawn.boxes[:] = 0.01 + np.arange(12)[:, None, None] * 0.001
    detector(pytester.path / "net.onnx", torchvision(drawn, shift=1))
    result = pytester.runpytest(
        "net.onnx", *QUICK, "--ort-dataset=coco:labels.json", "--ort-inputs=photos"
    )
    result.assert_outcomes(failed=1)
    assert "(torchvision: boxes float32 [1, 3, 4]" in task_of(pytester.path)["reason"]


def test_the_value_is_that_of_the_library_called_by_hand(pytester: pytest.Pytester) -> None:
    drawn = draw(pytester.path, ids=(3, 7, 40))
    random = np.random.default_rng(1)
    off = drawn.boxes + random.normal(0, 0.03, drawn.boxes.shape)
    centre, size = (off[..., :2] + off[..., 2:]) / 2, off[..., 2:] - off[..., :2]
    scores = np.zeros((12, 50, 3))
    boxes = np.zeros((12, 50, 4))
    boxes[:, :3] = np.concatenate([centre, size], axis=2) * SIDE
    kinds = np.searchsorted([3, 7, 40], drawn.categories)
    kinds[0] = (kinds[0] + 1) % 3  # of one picture every category is wrong
    confidence = random.uniform(0.3, 0.9, kinds.shape)
    np.put_along_axis(scores[:, :3], kinds[..., None], confidence[..., None], axis=2)
    table = np.concatenate([boxes, scores], axis=2).transpose(0, 2, 1).astype(np.float32)
    detector(pytester.path / "net.onnx", {"output0": table}, batch="N")
    result = pytester.runpytest(
        *("net.onnx", *QUICK, "--ort-dataset=coco:labels.json", "--ort-inputs=photos"),
        "--ort-batch-sizes=5",
    )
    assert result.ret == 0
    detections = []
    for row, image in enumerate(drawn.truth["images"]):
        scale = np.tile([image["width"], image["height"]], 2)
        limits = np.tile([image["width"], image["height"]], 2)
        for box, kind, score in zip(off[row], kinds[row], confidence[row], strict=True):
            left, top, right, bottom = np.clip(box * scale, 0, limits)
            detections.append(
                {
                    "image_id": image["id"],
                    "category_id": (3, 7, 40)[kind],
                    "bbox": [left, top, right - left, bottom - top],
                    "score": score,
                }
            )
    wanted = by_hand(drawn, detections)
    task = task_of(pytester.path)
    assert 0.2 < wanted[0] < 0.9
    assert task["boxes"]["form"].startswith("yolov8: output0 float32 [5, 7, 50]")
    assert task["score_sum"] / 12 == pytest.approx(wanted[0], abs=1e-6)
    assert task["boxes"]["own"]["mean_ap_50"] == pytest.approx(wanted[1], abs=1e-6)
    assert task["reference_sum"] == pytest.approx(task["score_sum"])
