"""The next step where a model that is named does not exist."""

from __future__ import annotations

import glob
import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from pytest_ortbench.core.errors import nearest
from pytest_ortbench.core.model_spec import (
    ONNX,
    PYTHON,
    function_file,
    is_model_file,
    is_onnx_file,
)
from pytest_ortbench.core.units import counted
from pytest_ortbench.models.builders.registry import BUILDERS
from pytest_ortbench.models.catalogue import CatalogueEntry, shipped_catalogue

#: Models that a message names.
_MOST_NAMED = 8


def advice_on(spec: str, path: Path, project: Mapping[str, CatalogueEntry]) -> str:
    """Return the next step for a model that does not exist: the nearest name, or some beside it.

    Args:
        spec: What was written.
        path: The file that it would be.
        project: Entries of the project's catalogue.
    """
    if function_file(spec):
        return _advice_on_function(spec, path)
    shipped = _shipped()
    if spec in shipped:
        return f"Did you mean {shipped[spec]!r}?"
    try:
        beside = sorted(item.name for item in path.parent.iterdir() if is_onnx_file(item))
    except OSError:
        beside = []
    names = {name: name for name in project}
    folder = os.path.dirname(spec)  # noqa: PTH120  # as it was typed
    names.update({name: os.path.join(folder, name) for name in beside})  # noqa: PTH118
    neighbour = nearest(path.name, names)
    if neighbour:
        return f"Did you mean {names[neighbour]!r}?"
    is_path = bool(folder) or is_model_file(path)
    similar = "" if is_path else nearest(spec, shipped)
    if similar:
        return f"Did you mean {shipped[similar]!r}?"
    if names:
        listed = list(names.values())
        more = f" and {len(listed) - _MOST_NAMED} more" if len(listed) > _MOST_NAMED else ""
        return f"Correct the name. Models here: {', '.join(listed[:_MOST_NAMED])}{more}"
    if not is_path:
        return (
            "Name a model file, a folder or a pattern of files, or a model that 'ortbench models' "
            "lists"
        )
    if not path.parent.exists():
        return f"There is no folder {path.parent}. Correct the path"
    return f"The folder {path.parent} has no .onnx file. Correct the path"


def advice_on_pattern(spec: str, path: Path, matches: Sequence[str]) -> tuple[str, str]:
    """Return what a pattern without a model file matches, behind that, and the next step.

    Args:
        spec: What was written.
        path: The same from the folder of the run.
        matches: What it matches.
    """
    folders = sum(map(os.path.isdir, matches))
    if folders:
        found = counted(folders, "folder")
        return f", but {found}", f"Name the files in it, e.g. '{spec.rstrip('/')}/*{ONNX}'"
    if matches:
        found = counted(len(matches), "other file")
        return f", but {found}", f"Write a pattern of model files, e.g. 'models/*{ONNX}'"
    above = path
    while glob.has_magic(str(above)):
        above = above.parent
    gone = "" if above.is_dir() else f": there is no folder {above}"
    return gone, "Correct the pattern" if gone else f"Correct the pattern. Its folder is {above}"


def advice_on_shipped(kind: str, name: str) -> str:
    """Return the next step for a model that does not come with the package.

    Args:
        kind: ``zoo`` or ``builtin``.
        name: What was written behind it.
    """
    shipped = _shipped()
    own = [known for known, spec in shipped.items() if spec == f"{kind}:{known}"]
    near = nearest(name, [*own, "all"])
    if near:
        return f"Did you mean '{kind}:{near}'?"
    similar = nearest(name, shipped)
    if similar:
        return f"Did you mean {shipped[similar]!r}?"
    return f"Choose a model that 'ortbench models' lists, e.g. {kind}:{min(own)}"


def _shipped() -> dict[str, str]:
    """Models that come with the package, as they are written, by their names."""
    return {
        **{name: f"zoo:{name}" for name in shipped_catalogue()},
        **{name: f"builtin:{name}" for name in BUILDERS},
    }


def _advice_on_function(spec: str, path: Path) -> str:
    """Return the next step for a function whose file is not there."""
    file = Path(function_file(spec))
    try:
        beside = [item.name for item in path.parent.iterdir() if item.suffix == PYTHON]
    except OSError:
        beside = []
    neighbour = nearest(file.name, beside)
    guess = f" Did you mean {str(file.with_name(neighbour))!r}?" if neighbour else ""
    return f"There is no file {file}.{guess or ' Correct the path'}"
