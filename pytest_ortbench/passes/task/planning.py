"""Labelled data as typed: which file, which function, and what can be seen without running it."""

from __future__ import annotations

import ast
import re
import zipfile
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from pytest_ortbench.core.dataset import DETECTION_FORMS, Boxes, Dataset
from pytest_ortbench.core.errors import (
    UsageError,
    did_you_mean,
    nearest,
    why_no_python,
    why_unreadable,
)
from pytest_ortbench.core.home_folder import in_home
from pytest_ortbench.core.option_text import OptionText, read_plain_text
from pytest_ortbench.planning.python_names import bound_names

_LABELS = "labels"
_STORE = f"store the inputs and an array {_LABELS!r} in an .npz file with numpy.savez"
#: Names of a file that a message lists.
_MOST_NAMED = 8
#: A file of boxes, and how outputs become boxes.
_COCO = re.compile(r"coco:(?P<file>.*?\.json)(?::(?P<how>.+))?", re.IGNORECASE | re.DOTALL)


def read_dataset(written: OptionText) -> Dataset:
    """Read which labelled data is meant."""
    return parse_dataset(read_plain_text(written), written.base, place=written.place)


def parse_dataset(text: str, base: Path, *, place: str) -> Dataset:
    """Read ``data.npz``, ``data.py:function``, or ``coco:labels.json`` with how boxes are read.

    Whether the arrays fit a model is seen where it runs; a file that is missing, is none of these
    or has no labels costs no measuring.

    Args:
        text: As typed.
        base: Folder that a relative path starts from.
        place: Where it was typed, for messages.

    Raises:
        UsageError: for what is neither, is not there, or has no labels or no such function.
    """
    boxed = _COCO.fullmatch(text)
    if boxed is not None:
        return _boxed(boxed["file"], boxed["how"] or "", base, place)
    file, function = _split(text)
    path = base / in_home(file)
    suffix = path.suffix.lower()
    if path.is_dir() or (suffix == ".txt" and path.is_file()):
        return Dataset(path=str(path.absolute()))
    if suffix.partition(":")[0] == ".json":
        raise UsageError(
            f"{text!r} does not begin with coco:, as a file of boxes must",
            place=place,
            hint=f"If the file has boxes on photos, write coco:{text}. If not, {_STORE}",
        )
    if not suffix and not path.exists():
        raise UsageError(
            f"the folder {str(path)!r} does not exist",
            place=place,
            hint="If it is a folder of photos, correct the path. If not, name a file: data.npz, "
            "data.py:FUNCTION or coco:labels.json",
        )
    if suffix.partition(":")[0] == ".npz" and suffix != ".npz":
        end = text.lower().rindex(".npz") + len(".npz")
        raise UsageError(
            f"{text!r} has {text[end:]!r} behind the .npz file, where nothing can stand",
            place=place,
            hint=f"Write {text[:end]}. If the labels are for the output "
            f"{text[end:].lstrip(':')!r}, rename the array {_LABELS!r} in the file to "
            f"'{_LABELS}:{text[end:].lstrip(':')}'",
        )
    if suffix not in (".npz", ".py", ".txt"):
        raise UsageError(
            f"{text!r} ends in {suffix}, but labelled data is read from .npz, .py and .json files"
            if suffix
            else f"{text!r} is neither a folder nor an .npz, .py or .json file",
            place=place,
            hint=f"If it labels photos, write --ort-dataset=PHOTOS --ort-labels={file}, where "
            f"PHOTOS is their folder. If not, {_STORE}"
            if suffix == ".csv"
            else f"{_STORE[0].upper()}{_STORE[1:]}",
        )
    if not path.is_file():
        raise UsageError(
            f"the file {str(path)!r} does not exist", place=place, hint="Correct the path"
        )
    if suffix == ".npz":
        _check_npz(path, place)
    elif not function:
        names = _names(path, place)
        known = names.functions
        raise UsageError(
            f"{text!r} does not say which function of the file gives the data"
            f"{'' if names.maybe else ', and the file has none'}",
            place=place,
            hint=f"Write the file and the function, e.g. {file}:{known[0]}. The file has "
            f"{', '.join(known[:_MOST_NAMED])}"
            if known
            else f"Write the function behind the file: {file}:FUNCTION"
            if names.maybe
            else "Define a function data() that returns two things: a list of batches "
            "(inputs, labels), and a function metric(outputs, labels) that returns one score a "
            f"sample. Then write {file}:data",
        )
    else:
        _check_function(path, function, place)
    return Dataset(path=str(path.absolute()), function=function)


def _boxed(file: str, how: str, base: Path, place: str) -> Dataset:
    path = base / in_home(file)
    if not path.is_file():
        raise UsageError(
            f"the file {str(path)!r} does not exist", place=place, hint="Correct the path"
        )
    if find_spec("faster_coco_eval") is None:
        raise UsageError(
            "the package faster-coco-eval, which compares boxes, is not installed",
            place=place,
            hint="Run: pip install 'pytest-ortbench[boxes]'",
        )
    adapter, function = _split(how)
    if not function and how.lower().endswith(".py"):
        code = base / in_home(how)
        known = (*(_names(code, place).functions if code.is_file() else ()), "boxes")
        raise UsageError(
            f"{how!r} does not say which function of the file reads the boxes",
            place=place,
            hint=f"Write its name behind a colon, e.g. coco:{file}:{how}:{known[0]}",
        )
    boxes = Boxes(form=how)
    if function:
        code = base / in_home(adapter)
        if not code.is_file():
            raise UsageError(
                f"the file {str(code)!r} does not exist", place=place, hint="Correct the path"
            )
        _check_function(code, function, place)
        boxes = Boxes(adapter=str(code.absolute()), function=function)
    elif how and how not in DETECTION_FORMS:
        raise UsageError(
            f"{how!r} is not a known way to read boxes from outputs",
            place=place,
            hint=f"Did you mean {near!r}?"
            if (near := nearest(how, DETECTION_FORMS, cutoff=0.85))
            else f"Write coco:{file}: the form is told by the shapes of the outputs. To name it, "
            f"choose one of: {', '.join(DETECTION_FORMS)}",
        )
    return Dataset(path=str(path.absolute()), boxes=boxes)


def _split(text: str) -> tuple[str, str]:
    """File and function; a colon of a drive letter splits nothing."""
    file, colon, function = text.rpartition(":")
    return (file, function) if colon and file.lower().endswith(".py") else (text, "")


def _check_npz(path: Path, place: str) -> None:
    try:
        with zipfile.ZipFile(path) as archive:
            names = [name.removesuffix(".npy") for name in archive.namelist()]
    except OSError as error:
        what, hint = why_unreadable(error)
        raise UsageError(f"{str(path)!r} {what}", place=place, hint=hint) from None
    except zipfile.BadZipFile:
        raise UsageError(
            f"the name of {str(path)!r} ends in .npz, but the file is not in that format",
            place=place,
            hint="If a script made the file, write it with numpy.savez. If it was fetched or "
            "copied, do so again",
        ) from None
    if not any(name == _LABELS or name.startswith(f"{_LABELS}:") for name in names):
        held = f", only {', '.join(names[:_MOST_NAMED])}" if names else ""
        raise UsageError(
            f"{str(path)!r} has no array named {_LABELS!r}{held}",
            place=place,
            hint=f"Store the labels as an array named {_LABELS!r}. For labels of one of several "
            f"outputs, name the array '{_LABELS}:OUTPUT' with the name of the output",
        )


def _check_function(path: Path, function: str, place: str) -> None:
    names = _names(path, place)
    if names.others is None or not names.maybe or function in (*names.functions, *names.others):
        return
    raise UsageError(
        f"{path.name} has no function {function!r}",
        place=place,
        hint=did_you_mean(function, names.functions or names.others),
    )


@dataclass(frozen=True, slots=True)
class _Names:
    """Names at the top level of a file.

    Attributes:
        functions: Those that it defines.
        others: Those that it assigns or imports; ``None`` where only running it tells them.
    """

    functions: tuple[str, ...]
    others: tuple[str, ...] | None

    @property
    def maybe(self) -> bool:
        """Whether any may be a function."""
        return bool(self.functions or self.others is None or self.others)


def _names(path: Path, place: str) -> _Names:
    """Names that a file defines or imports, read without running it."""
    try:
        tree = ast.parse(path.read_bytes(), filename=str(path))
    except (SyntaxError, ValueError, OSError) as error:
        why, step = why_no_python(error)
        raise UsageError(f"{str(path)!r} {why}", place=place, hint=step) from None
    bound = list(bound_names(tree))
    # What a star brings is known only by running the file.
    is_open = any(name == "*" for name, _ in bound)
    others = tuple(name for name, is_defined in bound if not is_defined)
    return _Names(
        tuple(name for name, is_defined in bound if is_defined), None if is_open else others
    )
