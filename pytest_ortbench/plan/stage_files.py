"""``--ort-stages=[PATTERN@]FILE.py``: which file of stages goes with which cases."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from pytest_ortbench.core.case import Case, id_fits
from pytest_ortbench.core.errors import UsageError

_EXAMPLE = "Write e.g. stages.py, or detector*@stages/detector.py"


@dataclass(frozen=True, slots=True, kw_only=True)
class StageFile:
    """A file of stages.

    Attributes:
        pattern: Which cases it is for: a part of their id or a glob over it; empty for all.
        path: The file, absolute.
    """

    pattern: str = ""
    path: str


def parse_stage_files(texts: Iterable[str], *, base: Path, place: str) -> tuple[StageFile, ...]:
    """Read the option, and the files as far as that is possible without running them.

    Args:
        texts: What was written, one or several to a text with commas between.
        base: Folder that relative paths start at.
        place: Where it was written, for messages.

    Raises:
        UsageError: for a file that is not there, or is not Python.
    """
    pieces = [piece.strip() for text in texts for piece in _pieces(text, base)]
    return tuple(_read(piece, base, place) for piece in pieces)


def with_stages(case: Case, files: Sequence[StageFile]) -> Case:
    """Return the case with its file of stages; one that is named for it goes before one for all."""
    fitting = [file for file in files if id_fits(case.case_id, file.pattern)]
    if not fitting:
        return case
    return replace(case, stages=max(fitting, key=lambda file: bool(file.pattern)).path)


def refuse_unused_stages(files: Sequence[StageFile], cases: Sequence[Case], *, place: str) -> None:
    """Refuse a file that goes with no case.

    Raises:
        UsageError: for the first that fits none.
    """
    for file in files:
        if not any(id_fits(case.case_id, file.pattern) for case in cases):
            raise UsageError(
                f"no case fits {file.pattern!r} of {file.pattern}@{file.path}",
                place=place,
                hint=f"The first case is {cases[0].case_id}" if cases else "",
            )
    if files and all(case.runtime.label != "current" for case in cases):
        raise UsageError(
            "stages run in the runtime 'current' only, where what they import is installed",
            place=place,
            hint="Add current to --ort-runtimes, or leave the option out",
        )


def _pieces(text: str, base: Path) -> list[str]:
    """Split at commas, but keep a file with a comma in its name."""
    pattern, _, name = text.rpartition("@")
    whole = "," not in pattern and (base / name.strip()).is_file()
    return [text] if whole else text.split(",")


def _read(text: str, base: Path, place: str) -> StageFile:
    pattern, _, name = text.rpartition("@")
    path = base / Path(name).expanduser()
    if not name or not path.is_file():
        raise UsageError(f"there is no file {str(path)!r}", place=place, hint=_EXAMPLE)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the worker shows them where the file runs
            compile(path.read_bytes(), str(path), "exec", dont_inherit=True)
    except (OSError, SyntaxError, ValueError) as error:
        line = getattr(error, "lineno", None)
        if isinstance(error, SyntaxError) and line:
            raise UsageError(
                f"{path}:{line}: {error.msg}", place=place, hint="Correct the file"
            ) from error
        raise UsageError(
            f"{str(path)!r} is not a Python file that can be read: {error}",
            place=place,
            hint=_EXAMPLE,
        ) from error
    return StageFile(pattern=pattern.strip(), path=str(path))
