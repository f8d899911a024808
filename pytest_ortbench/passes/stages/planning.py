"""``--ort-stages=[PATTERN@]FILE.py``: which file of stages goes with which cases."""

from __future__ import annotations

import ast
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pytest_ortbench.core.case import Case
from pytest_ortbench.core.errors import UsageError, did_you_mean, why_no_python
from pytest_ortbench.core.home_folder import in_home
from pytest_ortbench.core.ids import id_fits
from pytest_ortbench.core.option_text import OptionText
from pytest_ortbench.core.python_profile import PYTHON_PROFILERS
from pytest_ortbench.passes.stages.declaration import PASS
from pytest_ortbench.planning.python_names import bound_names
from pytest_ortbench.planning.served_apps import REFERENCE

#: Functions of which a file must define one.
_STAGES = frozenset({"preprocess", "postprocess"})
#: What can define names that no one sees without running the file.
_HIDDEN = frozenset({"globals", "exec", "setattr", "vars", "__dict__", "modules"})
_EXAMPLE = (
    "Name a Python file, e.g. stages.py. If it is for some cases only, write e.g. "
    "detector*@stages.py, a pattern that fits the ids of these cases"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class StageFile:
    """A file of stages.

    Attributes:
        pattern: Which cases it is for: a part of their id or a glob over it; empty for all.
        path: The file, absolute.
    """

    pattern: str = ""
    path: str


def read_stage_files(written: OptionText) -> tuple[StageFile, ...]:
    """Read files of stages, each with the cases that it is for."""
    return parse_stage_files(written.texts, base=written.base, place=written.place)


def read_profilers(written: OptionText) -> tuple[str, ...]:
    """Read which profilers of Python are to look.

    Raises:
        UsageError: for one that there is not.
    """
    names = [name.strip() for text in written.texts for name in text.split(",")]
    for name in names:
        if name not in PYTHON_PROFILERS:
            raise UsageError(
                f"{name!r} is not a known profiler",
                place=written.place,
                hint=did_you_mean(name, PYTHON_PROFILERS),
            )
    return tuple(dict.fromkeys(names))


def refuse_profile_of_nothing(
    *, value: tuple[str, ...], place: str, stages: tuple[StageFile, ...], serve: str
) -> None:
    """Refuse to look at code of the user's where there is none.

    Raises:
        UsageError: without stages and without an application of theirs.
    """
    if value and not stages and serve in ("", REFERENCE):
        raise UsageError(
            "this run has no Python code of yours to profile",
            place=place,
            hint="To profile your pre- and postprocessing, add their file, e.g. "
            "--ort-stages=stages.py. To profile your service, add e.g. --ort-serve=app.py:app",
        )


def parse_stage_files(texts: Iterable[str], *, base: Path, place: str) -> tuple[StageFile, ...]:
    """Read the option, and the files as far as that is possible without running them.

    Args:
        texts: What was written, one or several to a text with commas between.
        base: Folder that relative paths start at.
        place: Where it was written, for messages.

    Raises:
        UsageError: for a file that is not there, is not Python or defines no stage, and for two
            files that claim the same cases.
    """
    pieces = [piece.strip() for text in texts for piece in _pieces(text, base)]
    files = tuple(dict.fromkeys(_read(piece, base, place) for piece in pieces))
    claimed: dict[str, StageFile] = {}
    for file in files:
        other = claimed.setdefault(file.pattern, file)
        if other is not file:
            cases = f"the cases that match {file.pattern!r}" if file.pattern else "every case"
            path = Path(file.path)
            name = str(path.relative_to(base) if path.is_relative_to(base) else path)
            raise UsageError(
                f"{other.path} and {file.path} are both for {cases}, but a case has only one",
                place=place,
                hint="Define the functions of both in one file. To use the second file for some "
                "cases only, write "
                + (
                    f"another pattern in '{file.pattern}@{name}'"
                    if file.pattern
                    else f"e.g. 'detector*@{name}', with a pattern that fits their ids"
                ),
            )
    return files


def with_stages(case: Case, asked: Mapping[str, Any]) -> Case:
    """Return the case with its file of stages; one that is named for it goes before one for all.

    Args:
        case: Any case.
        asked: What passes ask of each case.
    """
    files: Sequence[StageFile] = asked.get(PASS.name, ())
    fitting = [file for file in files if id_fits(case.case_id, file.pattern)]
    if not fitting:
        return case
    return replace(case, stages=max(fitting, key=lambda file: bool(file.pattern)).path)


def check_cases(options: Any, cases: Sequence[Case]) -> None:
    """Refuse a file of stages of a run that no case of it goes with.

    Raises:
        UsageError: as :func:`refuse_unused_stages`.
    """
    if options.stages:
        place, runtimes = options.place_of("stages"), options.given.get("runtimes", "")
        refuse_unused_stages(options.stages, cases, place=place, runtimes=runtimes)


def refuse_unused_stages(
    files: Sequence[StageFile], cases: Sequence[Case], *, place: str, runtimes: str
) -> None:
    """Refuse a file that goes with no case.

    Args:
        files: As they were read.
        cases: Those of the run; without any, it says itself why there is none.
        place: Where the files are named, for messages.
        runtimes: As the user wrote them.

    Raises:
        UsageError: for the first that fits none, and for a case that two are named for.
    """
    for case in cases:
        named = [
            stage_file
            for stage_file in files
            if stage_file.pattern and id_fits(case.case_id, stage_file.pattern)
        ]
        if len(named) > 1:
            both = " and ".join(
                f"{stage_file.pattern}@{stage_file.path}" for stage_file in named[:2]
            )
            raise UsageError(
                f"{both} both fit the case {case.case_id}, but a case has only one file of stages",
                place=place,
                hint=_way_out(named[0], named[1], cases),
            )
    for file in files:
        if cases and not any(id_fits(case.case_id, file.pattern) for case in cases):
            raise UsageError(
                f"no case matches the pattern {file.pattern!r} of {Path(file.path).name}",
                place=place,
                hint=f"Write a pattern that fits the id of a case, e.g. {cases[0].case_id}",
            )
    if files and cases and all(case.runtime.label != "current" for case in cases):
        raise UsageError(
            "stages run only in the runtime 'current', the Python of pytest, and no case uses it",
            place=place,
            hint=f"Write --ort-runtimes=current{runtimes and f',{runtimes}'}. To measure without "
            f"stages, leave {place} out",
        )


def _way_out(one: StageFile, other: StageFile, cases: Sequence[Case]) -> str:
    """Return the next step where two files are named for the same case."""
    fits, others = (
        {case.case_id for case in cases if id_fits(case.case_id, file.pattern)}
        for file in (one, other)
    )
    for file, alone in ((one, fits - others), (other, others - fits)):
        if alone:
            return f"Write a narrower pattern for one of them, e.g. '{min(alone)}@{file.path}'"
    return (
        "Leave one of the files out. To use functions of both, define them in one file, and name "
        "only this"
    )


def _pieces(text: str, base: Path) -> list[str]:
    """Split at commas, but keep a file with a comma in its name."""
    pattern, _, name = text.rpartition("@")
    whole = "," not in pattern and (base / name.strip()).is_file()
    return [text] if whole else text.split(",")


def _read(text: str, base: Path, place: str) -> StageFile:
    pattern, _, name = text.rpartition("@")
    path = base / in_home(name)
    if not name.strip():
        raise UsageError(f"{text!r} names no file", place=place, hint=_EXAMPLE)
    if path.is_dir():
        raise UsageError(f"{str(path)!r} is a folder", place=place, hint=_EXAMPLE)
    if not path.is_file():
        file, _, function = name.rpartition(":")
        hint = "Correct the path"
        if file and (base / in_home(file)).is_file():
            # Functions are found by their names, which nobody gives.
            hint = (
                f"Write {file}, and leave {function} out"
                if function in (*_STAGES, "frames")
                else f"Rename {function} in the file to preprocess or postprocess, and write {file}"
            )
        raise UsageError(f"the file {str(path)!r} does not exist", place=place, hint=hint)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the worker shows them where the file runs
            tree = ast.parse(path.read_bytes(), str(path))
            compile(tree, str(path), "exec", dont_inherit=True)
    except (OSError, SyntaxError, ValueError) as error:
        why, step = why_no_python(error)
        raise UsageError(f"{str(path)!r} {why}", place=place, hint=step) from error
    if not _may_define(tree, _STAGES):
        raise UsageError(
            f"{path} defines neither preprocess(frame) nor postprocess(outputs)",
            place=place,
            hint="Define one of them at the top level of the file",
        )
    return StageFile(pattern=pattern.strip(), path=str(path))


def _may_define(tree: ast.Module, names: frozenset[str]) -> bool:
    """Whether running a file may leave one of some names at its top level."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Name | ast.Attribute):
            word = node.id if isinstance(node, ast.Name) else node.attr
            if word in _HIDDEN:
                return True
        elif isinstance(node, ast.Global) and names & set(node.names):
            return True
    return any(bound.name in names or bound.name == "*" for bound in bound_names(tree))
