"""The worker's side of the conversation, without a process of its own."""

from __future__ import annotations

import io
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pytest_ortbench.core.case import Provider, SessionConfig
from pytest_ortbench.core.outcome import (
    Accuracy,
    Block,
    Memory,
    OutputCheck,
    Placement,
    RuntimeInfo,
    WarmUp,
)
from pytest_ortbench.schema.case_questions import (
    CheckOutputs,
    CompareOutputs,
    Open,
    Opened,
    ProfilePlacement,
    ReadMemory,
    TimeBlock,
    WarmUpFor,
)
from pytest_ortbench.schema.model_questions import WriteReference
from pytest_ortbench.schema.protocol import PhaseEntered, Refusal, unpack_answer
from pytest_ortbench.schema.question import Question, answer_type
from pytest_ortbench.schema.runtime_questions import Inspect, Probed, ProbeProvider
from pytest_ortbench.schema.wire import decode_frame
from pytest_ortbench.worker.main import Conversation
from tests.launch.cases import CPU, case_of, relu, x_input

pytestmark = pytest.mark.live


class Talk:
    """Asks a conversation and reads what it says."""

    def __init__(self) -> None:
        self._written = io.BytesIO()
        self._conversation = Conversation(self._written, "t")

    def ask(self, question: Question[Any]) -> tuple[list[str], object]:
        """Return the phases that were entered, and the answer."""
        start = self._written.tell()
        self._conversation.answer(question)
        self._written.seek(start)
        answer: type[object] = answer_type(type(question))
        said = [
            unpack_answer(decode_frame("t", line)[1], answer) for line in self._written.readlines()
        ]
        phases = [message.phase for message in said[:-1] if isinstance(message, PhaseEntered)]
        assert len(phases) == len(said) - 1
        return phases, said[-1]


def test_a_case_from_first_to_last_question(tmp_path: Path) -> None:
    talk, case = Talk(), case_of(relu(tmp_path / "m.onnx"))
    phases, opened = talk.ask(Open(case=case))
    assert phases == ["import", "inputs", "session", "first"]
    assert isinstance(opened, Opened)
    assert opened.options_in_force == {}
    expected: list[tuple[Question[Any], list[str], type]] = [
        (CheckOutputs(run="first"), ["measure"], OutputCheck),
        (WarmUpFor(budget_s=0.05), ["warm-up"], WarmUp),
        (TimeBlock(iterations=4), ["measure"], Block),
        (TimeBlock(iterations=4), [], Block),
        (ReadMemory(), ["memory"], Memory),
        (ProfilePlacement(), ["profile"], Placement),
        (
            WriteReference(case=case, path=str(tmp_path / "r.npz")),
            ["import", "reference"],
            type(None),
        ),
        (CompareOutputs(reference=str(tmp_path / "r.npz")), ["accuracy"], Accuracy),
    ]
    for question, phases_entered, kind in expected:
        phases, answer = talk.ask(question)
        assert (phases, type(answer)) == (phases_entered, kind), answer


def test_inspecting_and_probing() -> None:
    talk = Talk()
    assert isinstance(talk.ask(Inspect())[1], RuntimeInfo)
    assert isinstance(talk.ask(ProbeProvider(provider=CPU))[1], Probed)


def test_a_question_before_its_time_is_refused() -> None:
    _, answer = Talk().ask(TimeBlock(iterations=1))
    assert isinstance(answer, Refusal)
    assert (answer.error, answer.phase) == ("RuntimeError", "start")
    assert answer.text.startswith("TimeBlock ")


def test_a_refusal_carries_facts(tmp_path: Path) -> None:
    talk = Talk()
    wrong = case_of(relu(tmp_path / "m.onnx"), inputs=(x_input((2, 5)),))
    phases, answer = talk.ask(Open(case=wrong))
    assert phases[-1] == "first"
    assert isinstance(answer, Refusal)
    assert answer.error == "InvalidArgument"
    assert answer.fed == ("x: float32 [2, 5]",)
    assert answer.declared == ("x: tensor(float) [None, 4]",)
    assert answer.version
    assert answer.numpy
    assert "CPUExecutionProvider" in answer.available_providers


def test_a_failure_that_is_found_inside_is_passed_on(tmp_path: Path) -> None:
    odd = case_of(relu(tmp_path / "m.onnx"), inputs=(x_input(kind="tensor(nonsense)"),))
    _, answer = Talk().ask(Open(case=odd))
    assert isinstance(answer, Refusal)
    assert answer.failure is not None
    assert answer.phase == "inputs"


def test_a_missing_provider_is_refused_by_name(tmp_path: Path) -> None:
    provider = Provider(alias="x", name="XExecutionProvider")
    case = case_of(relu(tmp_path / "m.onnx"), provider=provider)
    _, answer = Talk().ask(Open(case=case))
    assert isinstance(answer, Refusal)
    assert (answer.error, answer.phase) == ("ProviderMissing", "session")


def test_the_memory_of_looking_at_outputs_is_not_the_cases(tmp_path: Path) -> None:
    talk = Talk()
    case = case_of(relu(tmp_path / "m.onnx"), inputs=(x_input((2_000_000, 4)),))
    case = replace(case, session=SessionConfig(intra_op_num_threads=1))
    talk.ask(Open(case=case))
    before = talk.ask(ReadMemory())[1]
    talk.ask(CheckOutputs(run="first"))
    after = talk.ask(ReadMemory())[1]
    assert isinstance(before, Memory)
    assert isinstance(after, Memory)
    if before.source != "VmHWM after clear_refs":
        pytest.skip(before.source)
    assert before.peak_bytes is not None
    assert after.peak_bytes is not None
    # One output is 32 MB; a copy of it for looking would show.
    assert after.peak_bytes - before.peak_bytes < 16_000_000


_FIRST_OF_A_CONTAINER = """
import os, sys, time
from pytest_ortbench.worker import main

main._GRACE_S = 0.0
os.killpg = lambda *_: None  # as the kernel answers the first process of a container
main.end_with_host(sys.stdin.buffer, lambda: None)
time.sleep(6000)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="needs poll")
def test_a_worker_that_can_t_be_killed_from_inside_ends_with_its_host() -> None:
    done = subprocess.run(
        [sys.executable, "-c", _FIRST_OF_A_CONTAINER],
        input=b"",  # a pipe that is closed at once
        check=False,
        timeout=600,
    )
    assert done.returncode == 137
