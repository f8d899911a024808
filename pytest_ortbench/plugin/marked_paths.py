"""Paths that markers and hooks name: the same files wherever pytest was called.

A test is run from the root, from its folder, by an editor and by tox. What its marker names is the
same file each time: relative to pytest's root directory, or to the folder of the test's file.
"""

from __future__ import annotations

import glob
import os
from collections.abc import Iterable, Sequence
from pathlib import Path, PurePath
from typing import TYPE_CHECKING

from pytest_ortbench.core.errors import NoModelError
from pytest_ortbench.core.home_folder import in_home
from pytest_ortbench.core.model_spec import SCHEMES, function_file
from pytest_ortbench.core.option_text import exists

if TYPE_CHECKING:
    import pytest


def folders_of(item: pytest.Item) -> tuple[Path, ...]:
    """Return the folders that a relative path in the marker of a test starts at, the first wins."""
    return tuple(dict.fromkeys((item.config.rootpath, item.path.parent)))


def texts_of_specs(written: object) -> tuple[str, ...]:
    """Return specifications of models as texts: of a text, a path, or several of them.

    Raises:
        TypeError: for something else.
    """
    if isinstance(written, str | os.PathLike):
        return (os.fsdecode(written),)
    if not isinstance(written, Iterable):
        raise TypeError(f"{written!r} is not a string, a path, or a list of strings or paths")
    return tuple(os.fsdecode(spec) for spec in written)


def placed_specs(specs: Iterable[str], folders: Sequence[Path]) -> tuple[str, ...]:
    """Return specifications of models with paths that start at no working directory.

    Args:
        specs: As written.
        folders: Where relative paths may start.

    Returns:
        Each with the first folder in which it stands for something; one that stands for nothing has
        the first folder if it is a path, and is a name as it was written if it may be one.
    """
    return tuple(_placed(spec, folders) for spec in specs)


def _placed(spec: str, folders: Sequence[Path]) -> str:
    path = in_home(spec)
    if not spec.strip() or spec.startswith(SCHEMES) or path.is_absolute():
        return spec
    for folder in folders:
        file = function_file(spec) or path
        if exists(folder / file) or (glob.has_magic(spec) and _has_matches(folder / path)):
            return str(folder / path)
    is_name = len(path.parts) == 1 and not path.suffix and not glob.has_magic(spec)
    return spec if is_name else str(folders[0] / path)


def _has_matches(pattern: Path) -> bool:
    return next(glob.iglob(str(pattern), recursive=True), None) is not None  # noqa: PTH207


def with_folders(error: NoModelError, item: pytest.Item, written: object) -> NoModelError:
    """Return an error about a model that a test names, with the folders that were tried.

    Args:
        error: The error.
        item: The test.
        written: What it names.
    """
    if PurePath(error.spec).is_absolute() and error.spec in texts_of_specs(written):
        return error
    tried = " and ".join(map(str, folders_of(item)))
    hint = f"Relative paths were tried in {tried}. {error.hint}".rstrip()
    return NoModelError(error.message, spec=error.spec, place=error.place, hint=hint)
