"""Files that ``ortbench init`` writes: new ones, and none in place of another unless told so."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from pytest_ortbench.cli.files import writing
from pytest_ortbench.core.errors import UsageError
from pytest_ortbench.core.whole_file import replace_file
from pytest_ortbench.store.folder import check_writable

#: Names for the folder of results, the first that is not taken.
RESULTS = ("results", "ortbench-results")

State = Literal["new", "same", "other"]


@dataclass(frozen=True, slots=True, kw_only=True)
class NewFile:
    """A file to write.

    Attributes:
        name: Its path in the repository, with slashes.
        text: What it holds.
    """

    name: str
    text: str

    def state(self, root: Path) -> State:
        """Return whether it is new, there with the same content, or there with another one."""
        path = root / self.name
        if not path.exists() and not path.is_symlink():
            return "new"
        try:
            return "same" if path.read_bytes() == self.text.encode() else "other"
        except OSError:
            return "other"


def is_free(path: Path) -> bool:
    """Whether a folder of results can have this name: no file is called so."""
    return path.is_dir() or not (path.exists() or path.is_symlink())


def refuse_impossible(files: Sequence[NewFile], root: Path) -> None:
    """Refuse files that can't be written, before any of them is.

    Raises:
        UsageError: for a link that leads out of the repository, or a file where a folder belongs.
        DocumentError: for a folder that nothing can be written to.
    """
    inside = root.resolve()
    for file in files:
        path = root / file.name
        for part in (path, *path.parents):
            if part == root:
                break
            if part.is_symlink() and not _target(part).is_relative_to(inside):
                raise _refused(
                    part,
                    "it is a link that leads out of the repository",
                    f"Replace the link {str(part)!r} by a copy of what it leads to",
                )
            if part != path and part.exists() and not part.is_dir():
                raise _refused(part, "it is a file, and a folder is needed")
        if path.is_dir():
            raise _refused(path, "it is a folder, and a file is needed")
        check_writable(path.parent)


def _target(link: Path) -> Path:
    try:
        return link.resolve()
    except (OSError, RuntimeError):  # links in a circle
        return Path("/")


def _refused(path: Path, reason: str, step: str = "") -> UsageError:
    return UsageError(
        f"{str(path)!r} can't be written: {reason}",
        place="init",
        hint=f"{step or f'Move {str(path)!r} away'}, and run 'ortbench init' again",
    )


def write_file(file: NewFile, root: Path) -> None:
    """Write a file whole.

    Raises:
        DocumentError: if that fails.
    """
    path = root / file.name
    with writing(path, option="FOLDER"):
        replace_file(path, file.text.encode())
