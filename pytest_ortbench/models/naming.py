"""What a model file is called: by its path, never by what else is measured."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePath

from pytest_ortbench.core.model_spec import ONNX, SUFFIXES


@dataclass(frozen=True, slots=True, kw_only=True)
class Naming:
    """Gives names to model files.

    Attributes:
        root: Folder that names start at.
        taken: Names that do not come from a path: of models that ship, and of the project's
            configuration. A file of such a name is called with its suffix.
        originals: Files that copies stand for, by the path of the copy: a file as it was at a
            revision is called as it is in the working tree.
    """

    root: Path
    taken: Collection[str] = ()
    originals: Mapping[str, Path] = field(default_factory=dict)

    def place_of(self, path: Path) -> str:
        """Return where a file lies, relative to the root, with slashes.

        A file outside begins with ``../``; one that no relative path leads to, on another drive,
        has its whole path.
        """
        path = self.originals.get(str(path), path)
        relative = _below(path, self.root)
        if relative is None:
            # Links on the way to it, or to the root, may hide that it lies below.
            real = path.parent.resolve() / path.name
            relative = _below(real, self.root.resolve())
        if relative is not None:
            return relative.as_posix()
        try:
            return PurePath(os.path.relpath(path, self.root)).as_posix()
        except ValueError:
            return path.absolute().as_posix()

    def name_of(self, path: Path) -> str:
        """Return the name of a model file: where it lies, without the suffix ``.onnx``.

        The suffix stays where another path would have the same name without it; a file without a
        suffix is called as a folder, which can't lie there as well.
        """
        place = self.place_of(path)
        if not place.lower().endswith(SUFFIXES):
            return f"{place}/"
        name = place.removesuffix(ONNX)
        inner = name.lower().endswith(SUFFIXES) or name.endswith("/") or not name
        return place if inner or name in self.taken else name

    def name_of_source(self, path: Path, function: str) -> str:
        """Return the name of a source: as it is written, from the root on.

        Args:
            path: The Python file, or the file or folder of a framework.
            function: The function in the Python file; empty for others.
        """
        return f"{self.place_of(path)}:{function}" if function else self.name_of_folder(path)

    def name_of_folder(self, folder: Path) -> str:
        """Return the name of a model that is a folder: where that lies.

        A slash at its end tells it from a file beside it, or from a name that does not come from a
        path.
        """
        place = self.place_of(folder)
        if place in (".", ""):
            place = folder.resolve().name
        is_taken = place in self.taken or folder.with_name(f"{folder.name}{ONNX}").exists()
        return f"{place}/" if is_taken else place


def _below(path: Path, folder: Path) -> PurePath | None:
    """The path relative to a folder that it lies in; ``None`` for one outside."""
    folder_text = os.path.abspath(folder)  # noqa: PTH100  # resolve() would follow links
    text = os.path.abspath(path)  # noqa: PTH100
    try:
        return PurePath(text).relative_to(folder_text)
    except ValueError:
        return None
