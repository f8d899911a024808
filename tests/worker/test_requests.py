"""Requests to a decoder: the first token is told at once, the times are those of the last loop."""

from __future__ import annotations

from array import array
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from pytest_ortbench.core.case import Case
from pytest_ortbench.core.generation import GeneratedRequest
from pytest_ortbench.schema.case_questions import TimeBlock
from pytest_ortbench.worker.generation.generating_case import GeneratingCase
from pytest_ortbench.worker.generation.requests import Prompts, RequestLoop, SessionEngine
from tests.passes.test_generating_rows import generating
from tests.worker.asking import ask
from tests.worker.decoder_cases import decoder_case


class Steps:
    """A decoder that notes what is asked of it; its likeliest token ends a text."""

    def __init__(self) -> None:
        self.events: list[object] = []

    def fill(self, ids: npt.NDArray[np.integer[Any]]) -> None:
        self.events.append(("fill", ids.shape))

    def rewind(self) -> None:
        self.events.append("rewind")

    def read(self, ids: npt.NDArray[np.integer[Any]]) -> int:
        self.events.append(ids.shape[1])
        return 1000 * ids.shape[1]

    def scores(self) -> npt.NDArray[np.float64]:
        return np.eye(1, 50, 7)[None] + np.eye(1, 50, 9)[None] / 2


def loop_of(steps: Steps, case: Case) -> RequestLoop:
    assert case.generation is not None
    return RequestLoop(SessionEngine(steps, case), Prompts(case, seed=0), case.generation)


def test_the_first_token_is_told_before_the_second_is_read() -> None:
    steps = Steps()
    request = loop_of(steps, generating()).carry_out(lambda: steps.events.append("first"))
    assert steps.events == ["rewind", 16, "first", *[1] * 7]
    assert request.steps_ns == (16_000, *[1000] * 7)
    assert request.new_tokens == 8


def test_a_token_that_ends_a_text_is_never_written() -> None:
    loop = loop_of(Steps(), generating())
    loop.carry_out()
    assert loop.engine.written.tolist() == [[9] * 8]


def test_what_requests_took_is_that_of_the_last_loop() -> None:
    """A loop that runs for hours, as under an energy meter, holds no more memory than once."""
    loop = loop_of(Steps(), generating())
    durations = array("q", bytes(8 * 3))
    loop(durations)
    assert [request.wall_ns for request in loop.requests] == list(durations)
    loop(array("q", bytes(8)))
    assert len(loop.requests) == 1
    loop.carry_out()
    assert len(loop.requests) == 1


@pytest.mark.live
def test_a_caller_of_a_case_that_generates_carries_out_requests(tmp_path: Path) -> None:
    measured = GeneratingCase(decoder_case(tmp_path), lambda _: None)
    measured.open()
    (call,) = measured.calls()
    taken = call()
    assert isinstance(taken, GeneratedRequest)
    assert (taken.prompt_tokens, taken.new_tokens) == (4, 3)
    block = ask(measured, TimeBlock(iterations=2))
    assert [request.new_tokens for request in block.requests] == [3, 3]
    assert block.durations_ns == tuple(request.wall_ns for request in block.requests)
