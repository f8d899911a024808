"""Requests to a decoder with the encoder that it listens to: once, before the first token."""

from __future__ import annotations

from pathlib import Path

import pytest

from pytest_ortbench.schema.case_questions import TimeBlock
from pytest_ortbench.worker.generation.generating_case import GeneratingCase
from tests.worker.asking import ask
from tests.worker.decoder_cases import decoder_case

pytestmark = pytest.mark.live


def test_the_encoder_runs_once_in_each_request(tmp_path: Path) -> None:
    case = decoder_case(tmp_path, model="speech_decoder")
    assert case.generation is not None
    # Three seconds are 300 frames.
    assert case.generation.sound_s == 3.0
    assert [spec.shape for spec in case.encoder_inputs] == [(1, 80, 300)]
    measured = GeneratingCase(case, lambda _: None)
    measured.open()
    for request in ask(measured, TimeBlock(iterations=2)).requests:
        assert request.encoder_ns is not None
        assert request.encoder_ns > 0
        assert request.wall_ns >= request.encoder_ns + sum(request.steps_ns)
        assert (request.prompt_tokens, request.new_tokens) == (4, 3)
