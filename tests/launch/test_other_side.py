"""Files that differ where a runtime measures: the failure tells the side."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from pytest_ortbench.core.case import Case, Runtime, SessionConfig
from pytest_ortbench.core.dataset import Dataset
from pytest_ortbench.core.failure import Failure
from pytest_ortbench.core.failures import case_error
from pytest_ortbench.core.file_digest import bytes_held_by
from pytest_ortbench.launch.other_side import AskContents, with_side
from pytest_ortbench.passes.task.questions import ScoreTask
from pytest_ortbench.planning.real_inputs import with_contents
from pytest_ortbench.schema.case_questions import Open
from pytest_ortbench.schema.file_questions import SeeContents

from .cases import case_of, relu

BOX = Runtime(label="box", command=("./box.sh",))
FAILURE = Failure(kind="error", phase="task", message="d.npz has no labels", hint="Add them")
ANOTHER = (
    "d.npz has no labels. The file was read where runtime 'box' measures, and {path} there differs "
    "from {path} on this machine"
)
COPY = (
    "Copy the file from this machine to the same path where runtime 'box' measures, or mount its "
    "folder there"
)
SEND = (
    ". To have the file sent there by each run, write shares_files = false where the runtime 'box' "
    "is configured (pyproject.toml or ortbench.toml)"
)


def labelled(tmp_path: Path, name: str = "d.npz", function: str = "") -> tuple[ScoreTask, Case]:
    path = tmp_path / name
    path.write_bytes(b"data")
    dataset = Dataset(path=str(path), function=function)
    case = with_contents(replace(case_of(tmp_path / "m.onnx"), dataset=dataset))
    return ScoreTask(dataset=dataset), case


def holds(content: str) -> AskContents:
    def ask(question: SeeContents) -> Mapping[str, str]:
        sizes = {path: bytes_held_by(path) for path in question.large}
        return {**dict.fromkeys(question.paths, content), **sizes} if content else {}

    return ask


def gone(_: SeeContents) -> Mapping[str, str]:
    raise case_error("ended")


def test_another_file_there_is_told_after_what_is_wrong_with_it(tmp_path: Path) -> None:
    path = tmp_path / "d.npz"
    failure = with_side(FAILURE, *labelled(tmp_path), BOX, holds("other"))
    assert failure.message == ANOTHER.format(path=path)
    assert failure.hint == COPY + SEND


def test_a_file_that_is_not_there_is_all_that_is_told(tmp_path: Path) -> None:
    question, case = labelled(tmp_path, "d.py", "data")
    failure = with_side(FAILURE, question, case, BOX, holds(""))
    assert failure.message.startswith(f"the file {tmp_path / 'd.py'} ")
    assert FAILURE.message not in failure.message
    assert failure.hint == COPY  # code is not sent


def test_a_library_may_be_another_one_there_but_not_missing(tmp_path: Path) -> None:
    library = tmp_path / "ops.so"
    library.write_bytes(b"library")
    case = case_of(tmp_path / "m.onnx")
    case = with_contents(replace(case, session=SessionConfig(custom_ops=(str(library),))))
    refused = replace(FAILURE, phase="session")
    assert with_side(refused, Open(case=case), case, BOX, holds("other")) is refused
    assert str(library) in with_side(refused, Open(case=case), case, BOX, holds("")).message


def test_a_model_that_is_not_there_is_told(tmp_path: Path) -> None:
    case = case_of(relu(tmp_path / "m.onnx"))
    refused = replace(FAILURE, phase="session")
    failure = with_side(refused, Open(case=case), case, BOX, holds(""))
    assert str(tmp_path / "m.onnx") in failure.message


@pytest.mark.parametrize(
    ("failure", "runtime", "ask"),
    [
        (FAILURE, Runtime(), holds("other")),
        (FAILURE, replace(BOX, shares_files=False), holds("other")),
        (FAILURE, replace(BOX, isolated=True), holds("other")),
        (replace(FAILURE, kind="crash"), BOX, holds("other")),
        (replace(FAILURE, phase="session"), BOX, holds("other")),
        (FAILURE, BOX, gone),
    ],
    ids=["current", "files are sent", "made here", "crash", "reads no file", "no answer"],
)
def test_any_other_failure_stays(
    tmp_path: Path, failure: Failure, runtime: Runtime, ask: AskContents
) -> None:
    assert with_side(failure, *labelled(tmp_path), runtime, ask) is failure


def test_the_same_file_there_is_not_mentioned(tmp_path: Path) -> None:
    question, case = labelled(tmp_path)
    same = holds(case.file_contents[question.dataset.path])
    assert with_side(FAILURE, question, case, BOX, same) is FAILURE


def test_a_file_that_has_changed_here_is_not_compared(tmp_path: Path) -> None:
    question, case = labelled(tmp_path)
    (tmp_path / "d.npz").write_bytes(b"changed")
    assert with_side(FAILURE, question, case, BOX, holds("other")) is FAILURE
