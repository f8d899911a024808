"""External data of a model: where it lies, whether it may be read, and how large it is."""

from __future__ import annotations

import errno
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_ortbench.core.errors import ModelError, why_unreadable
from pytest_ortbench.core.lfs_pointer import PULL, is_pointer
from pytest_ortbench.models.claims import MAKE_AGAIN, claimed_bytes
from pytest_ortbench.models.inspection import all_nodes, all_tensors, is_compiled, text_of

if TYPE_CHECKING:
    import onnx

_DRIVE = re.compile(r"^[A-Za-z]:")

#: So many digits are beyond any file, and still a number that can be printed.
_MOST_DIGITS = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class ExternalFile:
    """One file that holds weights.

    Attributes:
        location: As the model names it, relative to the model's folder, with forward slashes.
        path: Where it lies.
        size_bytes: Its size.
    """

    location: str
    path: Path
    size_bytes: int


def external_files(proto: onnx.ModelProto, model_path: Path) -> tuple[ExternalFile, ...]:
    """Check every reference to external data.

    Args:
        proto: The model, weights not loaded.
        model_path: Its file; locations are relative to its folder.

    Returns:
        One entry a file, in order of the location.

    Raises:
        ModelError: for a location outside the model's folder (a model file must not make us read
            ``/etc/passwd``), a missing file, and one that is shorter than the weights in it.
    """
    needed: dict[str, int] = {}
    for tensor in _external_tensors(proto):
        entries = {entry.key: entry.value for entry in tensor.external_data}
        location = _checked_location(
            entries.get("location", ""), f"weight {tensor.name!r}", model_path
        )
        length = max(_number(entries.get("length", "0")), claimed_bytes(tensor))
        end = offset_of(tensor) + length
        needed[location] = max(needed.get(location, 0), end)
    for node, location in _context_files(proto):
        plain = _checked_location(location, f"node {node!r}", model_path)
        needed[plain] = max(needed.get(plain, 0), 1)
    return tuple(_file(model_path, location, end) for location, end in sorted(needed.items()))


def _file(model_path: Path, location: str, end: int) -> ExternalFile:
    path = model_path.parent / location
    try:
        what = "" if path.is_file() else _no_file(path)
        size = 0 if what else path.stat().st_size
        moving = "Move the folder away. Then copy" if path.is_dir() else "Copy"
        hint = f"{moving} the file with the data to {path}, or export the model again"
    except OSError as error:  # a name that is too long, a folder that may not be entered
        what, hint = why_unreadable(error)
        if error.errno == errno.ENAMETOOLONG:
            hint = "Export the model again, with a shorter name for the file of its data"
    if what:
        raise ModelError(f"the external data {location!r} {what}", place=str(model_path), hint=hint)
    if _is_elsewhere(path, model_path):
        raise _refused(
            f"{location!r} is a link to a file outside the model's folder",
            model_path,
            "Replace the link by the file",
        )
    if size < end and is_pointer(path):
        raise ModelError(
            f"the external data {location!r} is a Git LFS pointer: the file itself was not fetched",
            place=str(model_path),
            hint=PULL,
        )
    if size < end:
        raise ModelError(
            f"the external data {location!r} is truncated: it has {size:,} bytes, but the model "
            f"needs {end:,}",
            place=str(model_path),
            hint=MAKE_AGAIN,
        )
    return ExternalFile(location=location, path=path, size_bytes=size)


def _no_file(path: Path) -> str:
    """What a path is where it is no file with data."""
    if path.is_dir():
        return "is a folder"
    return "is not a regular file" if path.exists() else "does not exist"


def _context_files(proto: onnx.ModelProto) -> Iterator[tuple[str, str]]:
    """Nodes whose compiled part lies in a file beside the model, and what they call the file."""
    for node in all_nodes(proto):
        if not is_compiled(node):
            continue
        embedded = next((each.i for each in node.attribute if each.name == "embed_mode"), 1)
        # A node that shares the part of another one may name no file.
        location = "" if embedded else text_of(node, "ep_cache_context")
        if location:
            yield node.name, location


def _checked_location(location: str, owner: str, model_path: Path) -> str:
    rule = ""
    plain = location.replace("\\", "/")
    if not location:
        rule = "is empty, not a file name"
    elif plain.startswith("/") or _DRIVE.match(location):
        rule = "is an absolute path"
    elif ".." in plain.split("/"):
        rule = "is outside the model's folder"
    elif "\0" in location:
        rule = "is not a file name"
    if rule:
        raise _refused(
            f"{location!r} of {owner} {rule}",
            model_path,
            "Export the model again, with its data in the folder of the model",
        )
    return plain


def _is_elsewhere(path: Path, model_path: Path) -> bool:
    """Whether a file lies outside of the model's folder once links are followed.

    Where the model is a link itself, as in the cache of a hub, its data may lie where it leads to.
    """
    homes = (model_path.parent.resolve(), model_path.resolve().parent)
    return not any(path.resolve().is_relative_to(home) for home in homes)


def _refused(what: str, model_path: Path, hint: str) -> ModelError:
    return ModelError(f"refused: the external data {what}", place=str(model_path), hint=hint)


def _external_tensors(proto: onnx.ModelProto) -> Iterator[onnx.TensorProto]:
    from onnx import TensorProto

    for tensor in all_tensors(proto):
        if tensor.data_location == TensorProto.EXTERNAL:
            yield tensor


def offset_of(tensor: onnx.TensorProto) -> int:
    """Return where the data of a tensor begins in its external file; 0 where that is no number."""
    entries = {entry.key: entry.value for entry in tensor.external_data}
    return _number(entries.get("offset", "0"))


def _number(text: str) -> int:
    if not (text.isascii() and text.isdigit()):
        return 0
    return int(text.lstrip("0")[:_MOST_DIGITS] or "0")
