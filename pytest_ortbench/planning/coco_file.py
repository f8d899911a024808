"""Boxes as COCO writes them: which pictures, what is on them, which class of a model each is."""

from __future__ import annotations

import json
import math
import os
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pytest_ortbench.core.errors import UsageError, first_line, says, why_unreadable

PLACE = "--ort-dataset"
#: Folders beside the file, or beside its folder, that the pictures may lie in.
_FOLDERS = ("", "images")
#: A longer name of a picture is cut in a message.
_LONGEST_NAME = 100
#: Numbers of entries are at most so large: any JSON reader keeps them whole.
_LARGEST = 2**53


class _WrongValueError(ValueError):
    """A value of an entry breaks a rule, which its text says."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CocoImage:
    """One picture.

    Attributes:
        image_id: As the file numbers it.
        name: Its file, as the boxes' file names it.
        size: Width and height that the file says; ``None`` where it says none.
    """

    image_id: int
    name: str
    size: tuple[int, int] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class CocoFile:
    """What a file says of boxes.

    Attributes:
        path: The file.
        images: Its pictures.
        annotations: Its boxes as they are compared, numbered from 1.
        categories: Name of each category by its number, in the order of numbers.
    """

    path: Path
    images: tuple[CocoImage, ...]
    annotations: tuple[dict[str, Any], ...]
    categories: dict[int, str]


def read_coco(path: Path) -> CocoFile:
    """Read a file of boxes.

    Raises:
        UsageError: if it is none, with the entry that is wrong.
    """
    try:
        read = json.loads(path.read_text("utf-8-sig"))
    except OSError as error:
        what, hint = why_unreadable(error)
        raise UsageError(f"{str(path)!r} {what}", place=PLACE, hint=hint) from None
    except (ValueError, RecursionError) as error:
        raise _bad(path, f"is not JSON ({says('Python', first_line(error))})") from None
    lists = read if isinstance(read, dict) else {}
    for key in ("images", "annotations", "categories"):
        if not isinstance(lists.get(key), list):
            raise _bad(path, f"has no list {key!r}")
    images = _each(path, lists, "images", _image)
    if not images:
        raise _bad(path, "names no image")
    if len({image.image_id for image in images}) < len(images):
        raise _bad(path, "has two images with the same id")
    pairs = sorted(_each(path, lists, "categories", _category))
    categories = dict(pairs)
    if len(categories) < len(pairs):
        raise _bad(path, "has two categories with the same id")
    known = {image.image_id for image in images}
    annotations = _each(path, lists, "annotations", lambda entry: _annotation(entry))
    for index, annotation in enumerate(annotations):
        if annotation["image_id"] not in known or annotation["category_id"] not in categories:
            raise _bad(
                path,
                f"annotations[{index}] refers to an image or a category that the "
                "file does not contain",
            )
    if not annotations:
        raise _bad(path, "contains no box")
    return CocoFile(
        path=path,
        images=tuple(images),
        annotations=tuple(
            {**annotation, "id": number} for number, annotation in enumerate(annotations, 1)
        ),
        categories=categories,
    )


def _bad(path: Path, what: str) -> UsageError:
    return UsageError(
        f"{str(path)!r} {what}",
        place=PLACE,
        hint="Correct the file, or name another one in the format of COCO: JSON with the lists "
        "images, annotations and categories",
    )


def _each(
    path: Path, lists: Mapping[str, Any], key: str, read: Callable[[Mapping[str, Any]], Any]
) -> list[Any]:
    entries = []
    for index, entry in enumerate(lists[key]):
        if not isinstance(entry, Mapping):
            raise _bad(path, f"{key}[{index}] is {entry!r:.40}, not an object")
        try:
            entries.append(read(entry))
        except KeyError as error:
            raise _bad(path, f"{key}[{index}] has no key {error}") from None
        except _WrongValueError as error:
            raise _bad(path, f"{key}[{index}] is wrong ({error})") from None
        except (TypeError, ValueError, OverflowError) as error:
            said = says("Python", first_line(error))
            raise _bad(path, f"{key}[{index}] has a value of a wrong type ({said})") from None
    return entries


def _image(entry: Mapping[str, Any]) -> CocoImage:
    size = None
    if entry.get("width") and entry.get("height"):
        size = int(entry["width"]), int(entry["height"])
        if min(size) < 1:
            raise _WrongValueError(f"width {size[0]} and height {size[1]} are not a valid size")
    name = str(entry["file_name"])
    if not name.strip():
        raise _WrongValueError(f"file_name is {name!r}, not the name of a file")
    return CocoImage(image_id=_number(entry["id"]), name=name, size=size)


def _category(entry: Mapping[str, Any]) -> tuple[int, str]:
    return _number(entry["id"]), str(entry.get("name", entry["id"]))


def _number(written: Any) -> int:
    """A number that tells entries apart, as every program that counts boxes can hold it."""
    number = int(written)
    if isinstance(written, float) and written != number:
        raise _WrongValueError(f"{written} is not a whole number")
    if abs(number) > _LARGEST:
        raise _WrongValueError(f"{number} is too large for an id")
    return number


def _annotation(entry: Mapping[str, Any]) -> dict[str, Any]:
    box = [float(number) for number in entry["bbox"]]
    if len(box) != 4 or not all(map(math.isfinite, box)) or min(box[2:]) < 0:
        raise _WrongValueError(
            f"bbox {entry['bbox']} is not four numbers: left, top, width and height"
        )
    area = float(entry.get("area") or box[2] * box[3])
    if not 0 <= area < math.inf:
        raise _WrongValueError(f"area {area} is not a size")
    return {
        "image_id": _number(entry["image_id"]),
        "category_id": _number(entry["category_id"]),
        "bbox": box,
        "area": area,
        "iscrowd": int(bool(entry.get("iscrowd"))),
    }


def picture_files(coco: CocoFile, folder: Path | None) -> list[Path]:
    """Return the file of every picture, in order.

    Args:
        coco: The boxes.
        folder: Where the user says that they lie; ``None`` for beside the boxes.

    Raises:
        UsageError: for pictures that are missing or not unique, with their number.
    """
    beside = coco.path.absolute().parent
    folders = (
        [folder]
        if folder is not None
        else [base / name for base in (beside, beside.parent) for name in _FOLDERS]
    )
    around = folder if folder is not None else beside.parent
    by_name: dict[str, list[Path]] = {}
    if folder is not None:
        for file in sorted(folder.rglob("*")):
            by_name.setdefault(file.name, []).append(file)
    found: list[Path] = []
    missing: list[str] = []
    for image in coco.images:
        places = [base / image.name for base in folders]
        alike = by_name.get(Path(image.name).name, [])
        path = next(
            (place for place in places if _is_picture_of(place, around)),
            alike[0] if len(alike) == 1 else None,
        )
        if path is None and len(alike) > 1:
            raise _several(coco, image.name, alike, around)
        if path is None:
            missing.append(image.name)
        else:
            found.append(path)
    if missing:
        lacks = (
            f"{len(missing)} of the {len(coco.images)} images that {coco.path.name} names are not"
            if len(missing) > 1
            else f"1 image that {coco.path.name} names is not"
        )
        raise UsageError(
            f"{lacks} {'beside this file' if folder is None else f'in {str(folder)!r}'}"
            f"{', e.g.' if len(missing) > 1 else ':'} {missing[0][:_LONGEST_NAME]!r}",
            place=PLACE,
            hint=f"Put what is missing beside the other images, or correct file_name in "
            f"{coco.path.name}"
            if found
            else "Name the folder of the images, e.g. --ort-inputs=photos/"
            if folder is None
            else "If the images lie elsewhere, name that folder with --ort-inputs. If not, "
            f"correct file_name in {coco.path.name}",
        )
    return found


def _several(coco: CocoFile, name: str, files: Sequence[Path], folder: Path) -> UsageError:
    """Return the error of a name that several pictures have."""
    first, second = (file.relative_to(folder).as_posix() for file in files[:2])
    inner = next(file.parent for file in reversed(files) if file.parent != folder)
    return UsageError(
        f"the image {name[:_LONGEST_NAME]!r} in {coco.path.name} fits {len(files)} files: "
        + f"{first} and {second}"
        + (f", and {len(files) - 2} more" if len(files) > 2 else ""),
        place=PLACE,
        hint=f"Name only one folder, e.g. --ort-inputs={shlex.quote(str(inner))}. If you need "
        f"several, set file_name in {coco.path.name} to e.g. {first}",
    )


def _is_picture_of(place: Path, folder: Path) -> bool:
    """Whether a file is there, and its name leads nowhere outside of a folder."""
    try:
        inside = Path(os.path.normpath(place.absolute()))  # links stay as they are
        return inside.is_relative_to(Path(os.path.normpath(folder.absolute()))) and place.is_file()
    except (OSError, ValueError):  # a name that no file can have
        return False


def category_of_class(
    coco: CocoFile, names: Sequence[str], where: str
) -> tuple[tuple[int, ...], str]:
    """Return which category each class of a model is, by their names.

    Args:
        coco: The boxes.
        names: Names of the model's classes; empty if nobody says them.
        where: Where these come from.

    Returns:
        The category's number by class, -1 for a class that is none; and how that was told. Empty
        where names say nothing.
    """
    by_name = {name.strip().lower(): number for number, name in coco.categories.items()}
    numbers = tuple(by_name.get(name.strip().lower(), -1) for name in names)
    same = sum(number >= 0 for number in numbers)
    if not same:
        return (), ""
    return numbers, f"{same} of {len(numbers)} classes by {where}"
