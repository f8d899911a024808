"""Failures about a file that is missing or different where a runtime measures.

A runtime whose command starts a container may have an older copy under the same path, or none. What
a worker says of that copy is not true of the file that the user looks at, so the message says where
the file was read.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, replace
from pathlib import PurePath
from typing import Any, cast

from pytest_ortbench.core.case import Case, Runtime
from pytest_ortbench.core.dataset import Dataset
from pytest_ortbench.core.errors import WorkerError
from pytest_ortbench.core.failure import Failure
from pytest_ortbench.core.file_digest import bytes_held_by, content_of
from pytest_ortbench.schema.file_questions import SeeContents
from pytest_ortbench.schema.question import Question

_CURRENT = Runtime()
#: The phase in which the model is read, and libraries.
_OPENING = "session"
#: Kinds of failures after which no worker is left to be asked, or that no file is to blame for.
_ENDED = frozenset({"crash", "timeout", "out_of_memory"})
#: Asks the worker what files hold on its side; raises WorkerError.
AskContents = Callable[[SeeContents], Mapping[str, str]]


def with_side(
    failure: Failure,
    question: Question[Any],
    case: Case | None,
    runtime: Runtime,
    ask: AskContents,
) -> Failure:
    """Return a failure that says so, if a file that it is about differs where a runtime measures.

    Args:
        failure: What the worker said.
        question: What it was asked.
        case: What it is about; ``None`` for no case.
        runtime: Where it was measured.
        ask: Asks the worker.
    """
    # What was made here sees what is here.
    elsewhere = runtime.shares_files and runtime.label != _CURRENT.label and not runtime.isolated
    if case is None or not elsewhere or failure.kind in _ENDED:
        return failure
    here = {
        path: held
        for path in _read_for(failure.phase, question, case)
        # A file that has changed here since is told apart elsewhere.
        if (held := content_of(path)) and case.file_contents.get(path, held) == held
    }
    read = tuple(here)
    model = case.variant.path
    if failure.phase == _OPENING and (size := bytes_held_by(model)):
        here = {model: size, **here}
    if not here:
        return failure
    try:
        there = ask(SeeContents(paths=read, large=tuple(path for path in here if path not in read)))
    except WorkerError:
        return failure
    path = next((path for path in here if not there.get(path)), "")
    if path:
        message = f"the file {path} does not exist where runtime {runtime.label!r} measures"
        return replace(failure, message=message, hint=_hint(path, case, runtime))
    # A library is another one there with good reason: it may be built for that side.
    libraries = [path for path in case.session.custom_ops if PurePath(path).suffix != ".py"]
    own = [path for path in here if path not in libraries]
    path = next((path for path in own if there[path] != here[path]), "")
    if not path:
        return failure
    return replace(
        failure,
        message=f"{failure.message}. The file was read where runtime {runtime.label!r} measures, "
        f"and {path} there differs from {path} on this machine",
        hint=_hint(path, case, runtime),
    )


def _hint(path: str, case: Case, runtime: Runtime) -> str:
    copy = (
        f"Copy the file from this machine to the same path where runtime {runtime.label!r} "
        "measures, or mount its folder there"
    )
    if case.dataset is not None and path == case.dataset.user_code:
        return copy
    return (
        f"{copy}. To have the file sent there by each run, write shares_files = false where the "
        f"runtime {runtime.label!r} is configured (pyproject.toml or ortbench.toml)"
    )


def _read_for(phase: str, question: Question[Any], case: Case) -> list[str]:
    """Paths of what is read in a phase of a case, or for a question in any other phase."""
    by_phase: dict[str, Sequence[str]] = {
        "inputs": [spec.path for spec in case.inputs],
        _OPENING: case.session.custom_ops,
    }
    named: list[str] = []
    for field in fields(cast("Any", question)):
        value = getattr(question, field.name)
        if isinstance(value, Dataset):
            named += (value.path, value.user_code)
        elif isinstance(value, str):
            named.append(value)
    named = [path for path in named if path in case.file_contents]
    return [path for path in dict.fromkeys(by_phase.get(phase, named)) if path]
