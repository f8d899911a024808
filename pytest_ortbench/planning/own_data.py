"""A user's own files as inputs, calibration and labels: photos, WAV files, lines of text.

They are read once for each model and size, and kept in the user's cache as arrays under a digest of
everything that decides them. What follows (feeding, calibrating, scoring) reads arrays only.
"""

from __future__ import annotations

import hashlib
import json
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from pytest_ortbench.core.case import InputSpec, PreparationStep
from pytest_ortbench.core.dataset import LABELLED, OWN_DATA, Dataset
from pytest_ortbench.core.errors import UsageError
from pytest_ortbench.core.file_digest import file_digest
from pytest_ortbench.core.model import Model
from pytest_ortbench.models.cache import cache_folder
from pytest_ortbench.planning import audio_data, image_data, text_data
from pytest_ortbench.planning.coco_file import PLACE as BOXES_PLACE
from pytest_ortbench.planning.coco_file import (
    CocoFile,
    category_of_class,
    picture_files,
    read_coco,
)
from pytest_ortbench.planning.data_archive import Archives
from pytest_ortbench.planning.example_reader import Example, ExampleReader
from pytest_ortbench.planning.input_steps import (
    conversion,
    in_a_row,
    is_lone,
    lone_file,
    suffixes_in,
)
from pytest_ortbench.planning.label_file import PLACE as LABELS_PLACE
from pytest_ortbench.planning.label_file import (
    class_names,
    class_numbers,
    read_column,
    read_labels,
    read_user_text,
)
from pytest_ortbench.planning.preparation import Settings, settings_of

PLACE = "--ort-inputs"
_KINDS = {
    "images": image_data.SUFFIXES,
    "audio": audio_data.SUFFIXES,
}
#: Suffixes of files that hold stored arrays.
_OF_ARRAYS = {".npz", ".npy", ".pb"}


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnData:
    """Files of the user's, and what they are.

    Attributes:
        path: The folder, or the text file.
        kind: ``images``, ``audio`` or ``text``.
        labels: File of their labels; ``None`` without.
        settings: What was set with ``--ort-preprocess``.
        boxes: What is on each picture; ``None`` without.
        pictures: The file of each picture with boxes, in their order.
        scored: The boxes as the user named them; ``None`` without.
        place: The option that names them, for messages.
    """

    path: Path
    kind: str
    labels: Path | None = None
    settings: dict[str, str] = field(default_factory=dict)
    boxes: CocoFile | None = None
    pictures: tuple[Path, ...] = ()
    scored: Dataset | None = None
    place: str = PLACE


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """What became of own data for one model at one set of sizes.

    Attributes:
        inputs: Archive of the first examples, as many as the batch.
        calibration: Folder of archives, one an input set.
        labelled: All labelled examples with their labels or boxes; ``None`` without.
        steps: How values came about.
        sets: Input sets in the first archive.
    """

    inputs: Path
    calibration: Path
    labelled: Dataset | None
    steps: tuple[PreparationStep, ...]
    sets: int = 1

    def told(self, specs: Sequence[InputSpec]) -> tuple[InputSpec, ...]:
        """Return inputs of which those from files say how their values came about."""
        return tuple(
            replace(spec, prepared=self.steps, sets=self.sets) if spec.path else spec
            for spec in specs
        )


def kind_of_data(path: Path) -> str:
    """Return what own data a path is: a key of kinds, empty for stored arrays and anything else."""
    if path.is_file():
        return "text" if path.suffix.lower() in text_data.SUFFIXES else ""
    if not path.is_dir():
        return ""
    suffixes = _suffixes(path)
    if suffixes & _OF_ARRAYS:
        return ""
    return next((kind for kind, known in _KINDS.items() if suffixes & set(known)), "")


def _suffixes(path: Path) -> set[str]:
    return {file.suffix.lower() for file in _files(path)}


def _has_arrays(path: Path) -> bool:
    return bool(_suffixes(path) & _OF_ARRAYS)


def own_data(
    path: Path | None,
    labels: Path | None,
    settings: Mapping[str, str],
    *,
    with_inputs: bool = True,
) -> OwnData | None:
    """Return the user's own files that a path stands for; ``None`` where it holds stored arrays.

    Args:
        path: Where they lie.
        labels: The file of their labels.
        settings: What was set with ``--ort-preprocess``.
        with_inputs: Whether ``--ort-inputs`` names the path; otherwise ``--ort-dataset`` does.

    Raises:
        UsageError: for labels and settings without files that they are about.
    """
    kind = "" if path is None else kind_of_data(path)
    if path is not None and kind:
        place = PLACE if with_inputs else BOXES_PLACE
        return OwnData(path=path, kind=kind, labels=labels, settings=dict(settings), place=place)
    if labels is not None and path is not None and path.is_dir() and not _has_arrays(path):
        others = suffixes_in(path)
        files = f"its {in_a_row(others)} files"
        raise UsageError(
            f"{str(labels)!r} gives labels to files, but {str(path)!r} contains no JPEG, PNG or "
            "WAV file",
            place=LABELS_PLACE,
            hint=conversion(others, files) or f"Convert {files} to one of these kinds"
            if others
            else f"Put the labelled files into {str(path)!r}",
        )
    is_one = path is not None and is_lone(path) and path.suffix.lower() not in _OF_ARRAYS
    if path is not None and is_one and (labels is not None or settings):
        raise lone_file(path, PLACE if with_inputs else BOXES_PLACE)
    if labels is not None:
        raise UsageError(
            f"{str(labels)!r} gives labels to files, but "
            + (
                "no files are named"
                if path is None
                else f"{str(path)!r} has only arrays"
                if path.is_dir() or path.suffix.lower() in _OF_ARRAYS
                else f"{str(path)!r} is neither a folder nor a text file"
            ),
            place=LABELS_PLACE,
            hint="Name the folder of the files with --ort-inputs. To label arrays, store them and "
            "an array 'labels' in one .npz file, and write --ort-dataset=FILE.npz",
        )
    if settings:
        holds_arrays = path is not None and (
            _has_arrays(path) if path.is_dir() else path.suffix.lower() in _OF_ARRAYS
        )
        what = "arrays, which are fed as they are" if holds_arrays else "none of them"
        raise UsageError(
            "the option prepares photos, sounds or texts for the model, but "
            + ("none are named" if path is None else f"{str(path)!r} contains {what}"),
            place="--ort-preprocess",
            hint="Store them as the model takes them, and leave --ort-preprocess out"
            if holds_arrays
            else "Name a folder of photos or WAV files, or a text file, e.g. --ort-inputs=photos/",
        )
    return None


def refuse_unlabelled(folder: Path, path: Path | None, labels: Path | None) -> None:
    """Refuse files that are to be scored and have no labels, or are not those that are fed.

    Args:
        folder: What ``--ort-dataset`` names: a folder, or a file of texts.
        path: Where the inputs lie.
        labels: The file of labels.

    Raises:
        UsageError: if they can't be scored.
    """
    is_text = folder.is_file()
    if labels is None:
        raise UsageError(
            f"the {'lines of the file' if is_text else 'files of the folder'} {str(folder)!r} have "
            "no labels",
            place=BOXES_PLACE,
            hint=(
                "Write one label per line, in the order of the texts, into a file labels.txt, and "
                "add --ort-labels=labels.txt"
                if is_text
                else "Write a file name and its label on each line of a file labels.csv, and add "
                "--ort-labels=labels.csv"
            )
            + f". To measure without labels, write --ort-inputs={shlex.quote(str(folder))} in "
            f"place of {BOXES_PLACE}",
        )
    if path != folder:
        raise UsageError(
            f"the labels are for the examples in {str(folder)!r}, but --ort-inputs names "
            f"{str(path)!r}",
            place=BOXES_PLACE,
            hint="Leave --ort-inputs out. What --ort-dataset names is fed as inputs, too",
        )


def boxed_data(
    path: Path | None, labels: Path | None, settings: Mapping[str, str], scored: Dataset
) -> OwnData:
    """Return the pictures that a file of boxes names.

    Args:
        path: Where the user says that they lie; ``None`` for beside the boxes.
        labels: Labels that were named beside the boxes.
        settings: What was set with ``--ort-preprocess``.
        scored: The file of boxes, and how outputs become boxes.

    Raises:
        UsageError: if the boxes can't be read, or pictures are missing.
    """
    if labels is not None:
        raise UsageError(
            f"the boxes of {Path(scored.path).name} already label each picture, so "
            f"{str(labels)!r} has no effect",
            place=LABELS_PLACE,
            hint="Leave --ort-labels out",
        )
    if path is not None and not path.is_dir():
        raise UsageError(
            f"{str(path)!r} is not a folder, but --ort-dataset scores the pictures of "
            f"{Path(scored.path).name}",
            place=PLACE,
            hint="Name the folder of the pictures. If they lie beside "
            f"{Path(scored.path).name}, leave --ort-inputs out",
        )
    boxes = read_coco(Path(scored.path))
    files = picture_files(boxes, path)
    return OwnData(
        path=path or files[0].parent,
        kind="images",
        settings=dict(settings),
        boxes=boxes,
        pictures=tuple(files),
        scored=scored,
        place=PLACE if path is not None else BOXES_PLACE,
    )


def prepare(data: OwnData, model: Model, specs: Sequence[InputSpec], batch: int) -> Prepared:
    """Read own data as a model takes it, or find what was read before.

    Args:
        data: The files.
        model: The model.
        specs: Its inputs as they would be drawn.
        batch: Examples of one inference.

    Raises:
        UsageError: for what can't be read or does not fit, with one clear message.
    """
    try:
        return _prepared(data, model, specs, batch)
    except UsageError as error:
        if error.place != PLACE or data.place == PLACE:
            raise
        # Readers of files don't know which option named them.
        raise UsageError(error.message, place=data.place, hint=error.hint) from error


def _prepared(data: OwnData, model: Model, specs: Sequence[InputSpec], batch: int) -> Prepared:
    settings = settings_of(model.path, data.settings)
    examples = _examples(data)
    reader = ExampleReader(data.kind, model, specs, settings, examples, _sizes(data, examples))
    names = [name for name, _ in examples]
    labels = _labels(data, names, model, settings)
    truth = _truth(data, model, settings, reader)
    steps = (
        PreparationStep(name=data.kind, value=f"{len(examples)} in {data.path.name}", origin=PLACE),
        *settings.steps.values(),
        *_labelling_steps(data, labels, truth),
    )
    decides = {
        "files": [(name, _digest(content)) for name, content in examples],
        "steps": [asdict(step) for step in steps],
        "inputs": [(spec.name, spec.type, spec.shape) for spec in specs],
        "labels": labels,
        "truth": truth,
        "batch": batch,
        "form": "sets in one archive",
    }
    key = hashlib.sha256(json.dumps(decides, sort_keys=True).encode()).hexdigest()[:24]
    folder = cache_folder() / OWN_DATA / key
    name = f"{data.path.stem or 'data'}.npz"
    labelled_name = f"{data.boxes.path.stem}.npz" if data.boxes is not None else name
    archives = Archives(
        reader=reader, examples=examples, labels=labels, truth=truth, steps=steps, batch=batch
    )
    if not folder.is_dir():
        archives.write(folder, name, labelled_name)
    labelled = None
    if labels is not None or data.scored is not None:
        how = data.scored.boxes if data.scored is not None else None
        labelled = Dataset(path=str(folder / LABELLED / labelled_name), boxes=how)
    return Prepared(
        inputs=folder / name,
        calibration=folder / "calibration",
        labelled=labelled,
        steps=steps,
        sets=archives.sets,
    )


def _truth(
    data: OwnData, model: Model, settings: Settings, reader: ExampleReader
) -> dict[str, Any] | None:
    """What is on the pictures, and what the classes of the model are; ``None`` without boxes."""
    if data.boxes is None:
        return None
    beside = (data.boxes.path.parent, data.path)
    names, where = class_names(Path(model.path), beside, settings.metadata)
    classes, told_by = category_of_class(data.boxes, names, where)
    return {
        "images": [image.image_id for image in data.boxes.images],
        "annotations": data.boxes.annotations,
        "categories": list(data.boxes.categories),
        "classes": classes,
        "classes_by": told_by,
        "class_count": len(names),
        "file": data.boxes.path.name,
        "size": reader.size,
    }


def _labelling_steps(
    data: OwnData, labels: Mapping[str, int | str] | None, truth: Mapping[str, Any] | None
) -> Iterator[PreparationStep]:
    if data.labels is not None and labels is not None:
        value = f"{len(labels)} in {data.labels.name}"
        yield PreparationStep(name="labels", value=value, origin=LABELS_PLACE)
    if data.boxes is not None and truth is not None:
        count, kinds = len(data.boxes.annotations), len(data.boxes.categories)
        of_kinds = f"{kinds} categor{'ies' if kinds > 1 else 'y'}"
        value = f"{count} of {of_kinds} in {data.boxes.path.name}"
        yield PreparationStep(name="boxes", value=value, origin=BOXES_PLACE)


def _files(folder: Path) -> list[Path]:
    found = (path for path in folder.rglob("*") if path.is_file())
    return sorted(path for path in found if not path.name.startswith("."))


def _sizes(data: OwnData, examples: Sequence[Example]) -> dict[Path, tuple[int, int]]:
    """Width and height of the pictures whose boxes say them."""
    images = data.boxes.images if data.boxes is not None else ()
    return {
        content: image.size
        for image, (_, content) in zip(images, examples, strict=False)
        if isinstance(content, Path) and image.size is not None
    }


def _examples(data: OwnData) -> list[Example]:
    """Name and content of every example, in the order of their names, lines or boxes."""
    if data.boxes is not None:
        return list(zip([image.name for image in data.boxes.images], data.pictures, strict=True))
    if data.kind == "text":
        lines = read_user_text(data.path, place=PLACE).splitlines()
        found: list[Example] = [
            (str(number), line) for number, line in enumerate(lines, 1) if line.strip()
        ]
        if not found:
            raise UsageError(
                f"{str(data.path)!r} has no text",
                place=data.place,
                hint="Write one example per line",
            )
        return found
    return [
        (path.relative_to(data.path).as_posix(), path)
        for path in _files(data.path)
        if path.suffix.lower() in _KINDS[data.kind]
    ]


def _digest(content: Path | str) -> str:
    if isinstance(content, Path):
        return file_digest(content)
    return hashlib.sha256(content.encode()).hexdigest()


def _labels(
    data: OwnData, names: Sequence[str], model: Model, settings: Settings
) -> dict[str, int | str] | None:
    """The label of each labelled example, as the model's output has it."""
    if data.labels is None:
        return None
    called: Callable[[str], str] = repr
    if data.kind == "text":
        called = f"line {{}} of {data.path.name}".format
        written = dict(zip(names, read_column(data.labels, len(names)), strict=True))
    else:
        written = read_labels(data.labels, names, data.path)
    if any("string" in info.type for info in model.outputs):
        return dict(written)
    beside = (data.labels.parent, data.path if data.path.is_dir() else data.path.parent)
    numbers = class_numbers(
        written,
        source=data.labels,
        called=called,
        model=Path(model.path),
        beside=beside,
        metadata=settings.metadata,
    )
    return dict(numbers)
