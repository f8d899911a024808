"""What the host does around a question: files go along, and an answer counts or does not."""

from __future__ import annotations

import base64
import hashlib
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pytest_ortbench.core.case import Case, Provider, Runtime
from pytest_ortbench.core.dataset import Dataset
from pytest_ortbench.core.errors import WorkerError
from pytest_ortbench.core.outcome import CHANGED_FILE, Failure, Placement
from pytest_ortbench.launch.questioner import Questioner
from pytest_ortbench.passes.soak.facts import Soak
from pytest_ortbench.passes.soak.questions import SoakFor
from pytest_ortbench.passes.task.facts import TaskAccuracy
from pytest_ortbench.passes.task.questions import ScoreTask
from pytest_ortbench.schema.case_questions import CompareOutputs, ProfilePlacement
from pytest_ortbench.schema.file_questions import FetchChunk, FetchedChunk, StoreChunk, StoredChunk
from pytest_ortbench.schema.model_questions import WriteReference
from pytest_ortbench.schema.question import Question

from .cases import case_of, relu

ELSEWHERE = Runtime(label="elsewhere", shares_files=False)
WRITTEN = b"what the worker wrote"


class Process:
    """Answers as a test says, and takes and gives files as a worker on another machine does."""

    def __init__(self, answers: dict[type, Callable[[Any], Any]], log: str = "") -> None:
        self.asked: list[Question[Any]] = []
        self.stored: list[str] = []
        self._answers = answers
        self._log = log

    def begin(self, question: Question[Any], deadline: float) -> None:
        del deadline
        if not isinstance(question, StoreChunk | FetchChunk):
            self.asked.append(question)

    def finish(self, question: Question[Any], deadline: float) -> Any:
        del deadline
        if isinstance(question, StoreChunk):
            self.stored.append(question.name)
            return StoredChunk(path=f"/there/{question.name}")
        if isinstance(question, FetchChunk):
            return FetchedChunk(
                data=base64.b64encode(WRITTEN).decode("ascii"),
                size_bytes=len(WRITTEN),
                digest=hashlib.sha256(WRITTEN).hexdigest(),
            )
        return self._answers[type(question)](question)

    def read_log(self) -> str:
        return self._log


def questioner(process: Process, case: Case, runtime: Runtime = ELSEWHERE) -> Questioner:
    asked: Any = process
    return Questioner(asked, runtime, time.monotonic() + 60, case=case)


def test_files_go_along_and_come_back(tmp_path: Path) -> None:
    case = case_of(relu(tmp_path / "m.onnx"))
    process = Process({WriteReference: lambda _: None})
    place = tmp_path / "reference.npz"
    questioner(process, case).ask(WriteReference(case=case, path=str(place)))
    [asked] = process.asked
    assert isinstance(asked, WriteReference)
    assert asked.case.model.path == "/there/model/model.onnx"
    assert asked.path == "/there/model/model.onnx.reference.npz"
    assert process.stored == ["model/model.onnx"]
    assert place.read_bytes() == WRITTEN


def test_a_worker_that_sees_the_files_gets_the_question_as_it_is(tmp_path: Path) -> None:
    case = case_of(relu(tmp_path / "m.onnx"))
    process = Process({WriteReference: lambda question: Path(question.path).write_bytes(b"own")})
    question = WriteReference(case=case, path=str(tmp_path / "reference.npz"))
    questioner(process, case, Runtime()).ask(question)
    assert process.asked == [question]
    assert process.stored == []
    assert (tmp_path / "reference.npz").read_bytes() == b"own"


def test_what_is_not_named_is_not_sent(tmp_path: Path) -> None:
    case = case_of(relu(tmp_path / "m.onnx"))
    data = tmp_path / "data.npz"
    data.write_bytes(b"data")
    process = Process(
        {ScoreTask: lambda _: TaskAccuracy(dataset="d"), SoakFor: lambda _: Soak(inferences=3)}
    )
    host = questioner(process, case)
    host.ask(ScoreTask(dataset=Dataset(path=str(data))))
    assert host.ask(SoakFor(seconds=1.0)).inferences == 3
    assert process.asked == [
        ScoreTask(dataset=Dataset(path="/there/data/data.npz"), reference=""),
        SoakFor(seconds=1.0),
    ]
    assert process.stored == ["data/data.npz"]


def test_a_file_that_is_not_there_is_a_failure_before_anything_is_asked(tmp_path: Path) -> None:
    case = case_of(relu(tmp_path / "m.onnx"))
    process = Process({})
    with pytest.raises(WorkerError) as caught:
        questioner(process, case).ask(CompareOutputs(reference=str(tmp_path / "gone.npz")))
    assert (caught.value.failure.kind, caught.value.failure.phase) == ("error", "files")
    assert process.asked == []


@pytest.mark.parametrize("runtime", [Runtime(), ELSEWHERE], ids=lambda runtime: runtime.label)
def test_what_was_written_about_a_changed_model_does_not_stay(
    tmp_path: Path, runtime: Runtime
) -> None:
    path = relu(tmp_path / "m.onnx")
    case = case_of(path)

    def write(question: WriteReference) -> None:
        if runtime.shares_files:
            Path(question.path).write_bytes(b"own")
        path.write_bytes(b"another model")

    place = tmp_path / "reference.npz"
    with pytest.raises(WorkerError) as caught:
        questioner(Process({WriteReference: write}), case, runtime).ask(
            WriteReference(case=case, path=str(place))
        )
    assert caught.value.failure.phase == CHANGED_FILE
    assert not place.exists()


QNN = Provider(alias="qnn", name="QNNExecutionProvider")
REFUSED = (
    "[E:onnxruntime:, qnn_execution_provider.cc:1 GetCapability] QNN SetupBackend failed: "
    "Unable to load backend"
)


@pytest.mark.parametrize(("ran_on", "fails"), [("CPUExecutionProvider", True), (QNN.name, False)])
def test_a_log_that_says_why_nothing_was_taken_is_the_failure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ran_on: str, fails: bool
) -> None:
    """Only where the provider took nothing; the same words beside nodes of its own are noise."""
    failure = Failure(kind="unavailable", phase="profile", message="no backend")
    monkeypatch.setattr(
        "pytest_ortbench.launch.questioner.graph_refused",
        lambda log, provider: failure if (log, provider) == (REFUSED, QNN) else None,
    )
    case = replace(case_of(relu(tmp_path / "m.onnx")), provider=QNN)
    placement = Placement(provider=QNN.name, executed={ran_on: 1})
    process = Process({ProfilePlacement: lambda _: placement}, log=REFUSED)
    host = questioner(process, case, Runtime())
    if not fails:
        assert host.ask(ProfilePlacement()) == placement
        return
    with pytest.raises(WorkerError) as caught:
        host.ask(ProfilePlacement())
    assert caught.value.failure == replace(failure, log_tail=REFUSED)
