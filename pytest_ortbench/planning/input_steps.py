"""Next steps for files and arrays that are no inputs of a model as they are."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from pathlib import Path

from pytest_ortbench.core.errors import UsageError, nearest
from pytest_ortbench.core.model import Model
from pytest_ortbench.planning import audio_data, image_data

#: Files of ONNX test data.
PB_NAME = re.compile(r"input_(\d+)\.pb\Z")
#: Kinds of files that are read from a folder only.
_OF_FOLDERS = (*image_data.SUFFIXES, *audio_data.SUFFIXES, ".pb")
#: Kinds of images and sounds that are not read.
_OTHER_IMAGES = frozenset({".avif", ".bmp", ".gif", ".heic", ".tif", ".tiff", ".webp"})
_OTHER_SOUNDS = frozenset({".aac", ".flac", ".m4a", ".mp3", ".ogg", ".opus"})
#: Where a message names what a model or a file has: so many names.
_MOST_NAMED = 8


def is_lone(path: Path) -> bool:
    """Return whether a path is one file of a kind that is read from a folder only."""
    return path.suffix.lower() in _OF_FOLDERS and path.is_file()


def lone_file(path: Path, place: str) -> UsageError:
    """Return the error for a single file of a kind that is read from a folder only.

    Args:
        path: The file.
        place: The option that needs the folder.
    """
    return UsageError(
        f"{str(path)!r} is one file, but files of this kind are read from a folder",
        place=place,
        hint=f"Name its folder: {shlex.quote(str(path.parent))}",
    )


def suffixes_in(folder: Path) -> list[str]:
    """Return the endings of the files of a folder and of those in it."""
    files = (path for path in folder.rglob("*") if path.is_file())
    return sorted({path.suffix.lower() for path in files if path.suffix})


def conversion(suffixes: Sequence[str], what: str = "them") -> str:
    """Return what to convert files to; empty for those that are no images or sounds.

    Args:
        suffixes: Endings of the files of a folder.
        what: How the step names the files.
    """
    if _OTHER_IMAGES.intersection(suffixes):
        return f"Convert {what} to JPEG or PNG"
    return f"Convert {what} to WAV" if _OTHER_SOUNDS.intersection(suffixes) else ""


def in_a_row(names: Sequence[str]) -> str:
    """Return some names in a row; of many, the first ones."""
    more = len(names) - _MOST_NAMED
    return ", ".join(names[:_MOST_NAMED]) + (f" and {more} more" if more > 0 else "")


def file_stem(name: str) -> str:
    """Return an input's name as that of a file, where no slash or colon can stand."""
    return re.sub(r"[/\\:]", "_", name)


def as_written(path: Path, names: Sequence[str]) -> list[str]:
    """Return names of arrays as a message shows them: files of a folder, else names in quotes.

    Args:
        path: The folder, or the file that holds them.
        names: Their names.
    """
    return [f"{file_stem(name)}.npy" if path.is_dir() else repr(name) for name in names]


def renaming(
    path: Path, unknown: Sequence[str], missing: Sequence[str], outputs: Sequence[str]
) -> str:
    """Return what to do with arrays that are called as nothing of a model is.

    Args:
        path: The file or folder.
        unknown: Their names.
        missing: Inputs that have no array.
        outputs: Outputs that have none.
    """
    pairs = [(name, near) for name in unknown if (near := nearest(name, [*missing, *outputs]))]
    if len(unknown) == len(missing) == 1:
        pairs = [(unknown[0], missing[0])]
    if pairs and pairs[0][1] in missing:
        old, new = as_written(path, pairs[0])
        others = as_written(path, [name for name in unknown if name != pairs[0][0]])
        return f"Rename {old} to {new}" + (f", and remove {in_a_row(others)}" if others else "")
    if missing:
        return f"Give the inputs these names: {in_a_row(as_written(path, missing))}"
    step = f"Remove {in_a_row(as_written(path, unknown))}"
    if len(unknown) > 1 or not outputs:
        return step
    (output,) = as_written(path, [pairs[0][1] if pairs else outputs[0]])
    return f"{step}. If it is the expected output, rename it to {output}"


def additions(model: Model, path: Path, missing: Sequence[str]) -> str:
    """Return what to add to a file or folder, so that it has an array for each input.

    Args:
        model: The model.
        path: The file or folder.
        missing: Inputs that have no array.
    """
    if not path.is_dir():
        return "Add an array of this name" if len(missing) == 1 else "Add an array for each name"
    if any(PB_NAME.match(item.name) for item in path.iterdir()):
        order = [info.name for info in model.inputs]
        files = [f"input_{order.index(name)}.pb" for name in missing]
    else:
        files = as_written(path, missing)
    return f"Add {'the file' if len(files) == 1 else 'the files'} {in_a_row(files)} to the folder"
