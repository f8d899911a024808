"""Files of boxes as anybody may write them: one line says what is wrong of one."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from pytest_ortbench.core.errors import UsageError
from pytest_ortbench.planning.coco_file import picture_files, read_coco

_IMAGE = {"id": 1, "file_name": "a.png", "width": 4, "height": 4}
_BOX = {"id": 1, "image_id": 1, "category_id": 1, "bbox": [0, 0, 2, 2]}
_CATEGORY = {"id": 1, "name": "cat"}


def written(folder: Path, **changed: Any) -> Path:
    lists = {"images": [_IMAGE], "annotations": [_BOX], "categories": [_CATEGORY]}
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "labels.json").write_text(json.dumps({**lists, **changed}), encoding="utf-8")
    return folder / "labels.json"


@pytest.mark.parametrize(
    "changed",
    [
        {"images": [{**_IMAGE, "id": 2**70}]},
        {"images": [{**_IMAGE, "id": 1.5}]},
        {"images": [{**_IMAGE, "file_name": ""}]},
        {"images": [{**_IMAGE, "width": -4}]},
        {"images": [_IMAGE, _IMAGE]},
        {"annotations": [{**_BOX, "area": float("nan")}]},
        {"annotations": [{**_BOX, "area": -3}]},
        {"annotations": [{**_BOX, "bbox": [0, 0, 1e300, 1e300]}]},
        {"annotations": [{**_BOX, "bbox": [0, 0, float("inf"), 1]}]},
        {"annotations": [{**_BOX, "image_id": 2}]},
        {"annotations": [[1, 2]]},
        {"annotations": [{**_BOX, "bbox": 3}]},
        {"annotations": [{**_BOX, "area": "large"}]},
        {"categories": [_CATEGORY, {**_CATEGORY, "name": "dog"}]},
        {"categories": [{**_CATEGORY, "id": -(2**60)}]},
    ],
)
def test_what_makes_no_sense_is_refused(changed: dict[str, Any], tmp_path: Path) -> None:
    with pytest.raises(UsageError) as caught:
        read_coco(written(tmp_path, **changed))
    assert caught.value.place == "--ort-dataset"


@pytest.mark.parametrize("name", ["a" * 5000, "a\0b", ".", "\x1b[31ma", "\udc80"])
def test_a_name_that_no_file_has_is_missing(name: str, tmp_path: Path) -> None:
    coco = read_coco(written(tmp_path, images=[{**_IMAGE, "file_name": name}]))
    with pytest.raises(UsageError):
        picture_files(coco, None)


def test_a_name_that_several_pictures_have_is_not_said_to_be_missing(tmp_path: Path) -> None:
    folder = tmp_path / "photos"
    for part in ("one", "two"):
        (folder / part).mkdir(parents=True)
        (folder / part / "a.png").write_bytes(b"picture")
    with pytest.raises(UsageError) as caught:
        picture_files(read_coco(written(tmp_path)), folder)
    assert "one/a.png" in caught.value.message
    assert caught.value.hint.endswith("one/a.png")
    coco = read_coco(written(tmp_path, images=[{**_IMAGE, "file_name": "two/a.png"}]))
    assert picture_files(coco, folder) == [folder / "two" / "a.png"]


def test_beside_images_that_are_found_no_other_folder_is_proposed(tmp_path: Path) -> None:
    (tmp_path / "a.png").write_bytes(b"picture")
    coco = read_coco(written(tmp_path, images=[_IMAGE, {**_IMAGE, "id": 2, "file_name": "b.png"}]))
    for folder in (None, tmp_path):
        with pytest.raises(UsageError) as caught:
            picture_files(coco, folder)
        assert "b.png" in caught.value.message
        assert "--ort-inputs" not in caught.value.hint


def test_no_name_leads_out_of_the_folders_that_were_named(tmp_path: Path) -> None:
    outside = tmp_path / "secret.png"
    outside.write_bytes(b"picture")
    own = tmp_path / "data" / "set"
    for name in (str(outside), "../../secret.png"):
        coco = read_coco(written(own, images=[{**_IMAGE, "file_name": name}]))
        with pytest.raises(UsageError):
            picture_files(coco, None)
        with pytest.raises(UsageError):
            picture_files(coco, own)
    inside = own / "images" / "a.png"
    inside.parent.mkdir()
    inside.write_bytes(b"picture")
    for name in ("a.png", "images/a.png", "../set/images/a.png", str(inside)):
        coco = read_coco(written(own, images=[{**_IMAGE, "file_name": name}]))
        assert [path.samefile(inside) for path in picture_files(coco, None)] == [True]
