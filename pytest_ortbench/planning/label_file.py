"""Labels of a user's own files: a CSV file of names and labels, and the list of classes."""

from __future__ import annotations

import ast
import csv
import io
import json
import shlex
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from pytest_ortbench.core.errors import UsageError, did_you_mean, nearest, why_unreadable
from pytest_ortbench.core.units import counted
from pytest_ortbench.models.metadata import configuration_of
from pytest_ortbench.schema.toml_text import utf8_text

PLACE = "--ort-labels"
_CLASS_FILES = ("classes.txt", "labels.txt")


def read_labels(path: Path, names: Sequence[str], folder: Path) -> dict[str, str]:
    """Read which label each file has.

    Args:
        path: The CSV file: name and label, with or without a heading; separated by commas,
            semicolons or tabs.
        names: Files of the folder, relative to it.
        folder: The folder.

    Returns:
        The label of each file that has one, in the order of ``names``.

    Raises:
        UsageError: for a name that is no file, one that stands twice, a line without a label, and
            for JSON.
    """
    if path.suffix == ".json":
        raise UsageError(
            f"{path.name} is a JSON file, but labels are read from a CSV file",
            place=PLACE,
            hint=f"Write --ort-dataset={shlex.quote(f'coco:{path}')} in place of {PLACE}"
            if _has_boxes(path)
            else "Write a file name and its label on each line of a CSV file, e.g. "
            f"{names[0] if names else 'cat.jpg'},3",
        )
    text = read_user_text(path, place=PLACE)
    first = text.partition("\n")[0]
    separator = next((sign for sign in "\t;," if sign in first), ",")
    stems: dict[str, list[str]] = {}
    for name in names:
        for alias in {name, Path(name).name, Path(name).stem}:
            stems.setdefault(alias, []).append(name)
    labels: dict[str, str] = {}
    heading: str | None = None
    found_in: dict[str, int] = {}
    lines = csv.reader(io.StringIO(text), delimiter=separator)
    for number, cells in enumerate(lines, 1):
        if not any(cell.strip() for cell in cells):
            continue
        where = f"{path.name}, line {number}"
        if len(cells) < 2 or not cells[1].strip():
            raise _without_label(separator.join(cells), where, separator, stems)
        written, label = cells[0].strip().replace("\\", "/"), cells[1].strip()
        meant = stems.get(written.removeprefix("./"), [])
        if not meant and number == 1:
            heading = written
            continue
        if len(meant) != 1:
            raise UsageError(
                f"{written!r} ({where}) is not a file in {str(folder)!r}"
                if not meant
                else f"{written!r} ({where}) matches {len(meant)} files",
                place=PLACE,
                hint=f"Write the path within the folder, e.g. {meant[0]}"
                if meant
                else did_you_mean(written, names)
                if nearest(written, names)
                else "Copy the file into this folder, or delete the line",
            )
        if meant[0] in labels:
            raise UsageError(
                f"{written!r} ({where}) already has a label in line {found_in[meant[0]]}",
                place=PLACE,
                hint="Delete one of the two lines",
            )
        labels[meant[0]] = label
        found_in[meant[0]] = number
    if not labels:
        raise UsageError(
            f"{path.name} is empty"
            if heading is None
            else f"{path.name} names none of the files in {str(folder)!r}, only {heading!r}",
            place=PLACE,
            hint=f"Write the name of a file and its label on each line, e.g. "
            f"{names[0] if names else 'cat.jpg'},3",
        )
    return {name: labels[name] for name in names if name in labels}


def _has_boxes(path: Path) -> bool:
    """Whether a JSON file is one of boxes, as COCO has them."""
    try:
        held = json.loads(read_user_text(path, place=PLACE))
    except (ValueError, RecursionError):
        return False
    return isinstance(held, dict) and "annotations" in held


def _without_label(
    line: str, where: str, separator: str, stems: Mapping[str, Sequence[str]]
) -> UsageError:
    """Return why a line has no label: it has none, or nothing separates it from the name."""
    written = line.strip()
    if separator not in line and " " in written and written not in stems:
        example = next(iter(stems.values()), ["cat.jpg"])[0]
        return UsageError(
            f"{line!r} ({where}) has no comma",
            place=PLACE,
            hint=f"Write a comma between file name and label, e.g. {example},3",
        )
    return UsageError(
        f"{line!r} ({where}) has no label",
        place=PLACE,
        hint="Write the label behind the name, e.g. "
        f"{written.rstrip(separator).strip()}{separator}3, or delete the line",
    )


def read_user_text(path: Path, *, place: str) -> str:
    """Return the text of a file of the user's.

    Args:
        path: The file.
        place: The option that names it.

    Raises:
        UsageError: if it can't be read, or is not text in UTF-8.
    """
    try:
        content = path.read_bytes()
    except OSError as error:
        what, hint = why_unreadable(error)
        raise UsageError(f"{str(path)!r} {what}", place=place, hint=hint) from error
    return utf8_text(content, place=f"{place}, {path.name}")


def read_column(path: Path, count: int) -> list[str]:
    """Read one label a line, for the lines of a text file in their order.

    Raises:
        UsageError: if there are not as many as lines.
    """
    lines = read_user_text(path, place=PLACE).splitlines()
    labels = [line.strip() for line in lines if line.strip()]
    if len(labels) == count + 1:
        labels = labels[1:]
    if len(labels) != count:
        raise UsageError(
            f"{path.name} has {counted(len(labels), 'label')}, but the file of the inputs has "
            f"{counted(count, 'example')} (lines with text)",
            place=PLACE,
            hint="Write one label per line, in the order of the examples",
        )
    return labels


def class_numbers(
    labels: Mapping[str, str],
    *,
    source: Path,
    called: Callable[[str], str],
    model: Path,
    beside: Sequence[Path],
    metadata: Mapping[str, str],
) -> dict[str, int]:
    """Return labels as numbers of classes: as written, or by the place in the list of classes.

    Args:
        labels: As written, by what has them.
        source: The file that they are written in.
        called: Says in words what has a label.
        model: Path of the model.
        beside: Folders of the labels and the data.
        metadata: What the model file says.

    Raises:
        UsageError: for words without a list of classes, and for a word that is not in it.
    """
    try:
        return {name: int(label) for name, label in labels.items()}
    except ValueError:
        pass
    classes, where = class_names(model, beside, metadata, labels=source)
    if not classes:
        name, word = next(item for item in labels.items() if not item[1].lstrip("-").isdigit())
        free = next(each for each in _CLASS_FILES if each != source.name)
        raise UsageError(
            f"{source.name} gives {called(name)} the label {word!r}, but no file says which class "
            "this word is",
            place=PLACE,
            hint="Write the names of all classes, one per line in their order, into "
            f"{source.with_name(free)}",
        )
    numbers = {name: number for number, name in enumerate(classes)}
    for name, label in labels.items():
        if label not in numbers:
            raise UsageError(
                f"{source.name} gives {called(name)} the label {label!r}, which is not in {where}",
                place=PLACE,
                hint=did_you_mean(
                    label,
                    classes,
                    ""
                    if nearest(label, classes)
                    else f"If none of them fits, remove {called(name)} and its label",
                ),
            )
    return {name: numbers[label] for name, label in labels.items()}


def class_names(
    model: Path,
    beside: Sequence[Path],
    metadata: Mapping[str, str],
    *,
    labels: Path | None = None,
) -> tuple[list[str], str]:
    """Return the names of a model's classes in order, and who says them; empty if nobody does.

    Args:
        model: Path of the model.
        beside: Folders of the labels and the data.
        metadata: What the model file says.
        labels: The file of labels, which may have a name of such a list and is none.
    """
    for folder in (*beside, model.parent):
        for name in _CLASS_FILES:
            file = folder / name
            if file.is_file() and (labels is None or not file.samefile(labels)):
                lines = file.read_text("utf-8-sig").splitlines()
                return [line.strip() for line in lines if line.strip()], str(file)
    try:
        named = ast.literal_eval(metadata.get("names", ""))
    except (ValueError, SyntaxError):
        named = configuration_of(model, "config.json").get("id2label")
    if isinstance(named, dict):
        return [str(named[key]) for key in sorted(named, key=int)], "the model's names of classes"
    return [], ""
