"""Requests to a decoder in two files: they write what the whole decoder writes."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from pytest_ortbench.core.case import Case
from pytest_ortbench.core.errors import WorkerError
from pytest_ortbench.launch.seal import measured as measured_seal
from pytest_ortbench.launch.seal import source
from pytest_ortbench.models.builders.graph_writer import GraphWriter
from pytest_ortbench.models.builders.translation import translation_decoder
from pytest_ortbench.passes.generation.questions import CheckGeneration, WriteContinuation
from pytest_ortbench.passes.generation.worker.check import check_generation
from pytest_ortbench.passes.generation.worker.reference import write_continuation
from pytest_ortbench.schema.case_questions import TimeBlock
from pytest_ortbench.worker.generation.generating_case import GeneratingCase
from pytest_ortbench.worker.generation.requests import SessionEngine
from pytest_ortbench.worker.inputs import make_feeds
from pytest_ortbench.worker.state import WorkerState
from tests.generation.folders import TINY, model_bytes
from tests.generation.splitting import FIRST, LATER, split_decoder, split_translation
from tests.planning.test_first_steps import only
from tests.worker.asking import ask

pytestmark = pytest.mark.live


def opened(case: Case) -> GeneratingCase:
    session = replace(case.session, intra_op_num_threads=1)
    measured = GeneratingCase(replace(case, session=session), lambda _: None)
    measured.open()
    return measured


def written(case: Case, prompts: list[list[int]], before: int = 0) -> list[list[list[int]]]:
    engine = opened(case).live_requests().engine
    if before:
        engine.fill(np.arange(3, 3 + before)[None])
    texts = []
    for prompt in prompts:
        engine.request(np.array([prompt]), 3)
        texts.append(engine.written.tolist())
    return texts


PROMPTS = [[5, 6, 7, 8], [9, 8, 7], [100]]


@pytest.mark.parametrize(("one_token", "depth"), [(True, 0), (False, 0), (False, 5)])
def test_two_files_write_what_one_writes(one_token: bool, depth: int, tmp_path: Path) -> None:
    split_decoder(tmp_path / "two", one_token=one_token)
    (tmp_path / "whole.onnx").write_bytes(model_bytes(TINY))
    asked = {"depths": (depth,)} if depth else {}
    two, whole = (
        written(only(tmp_path, spec, **asked).case, PROMPTS, depth)
        for spec in (f"two/{LATER}", "whole.onnx")
    )
    assert two == whole
    assert len({str(text) for text in two}) == len(PROMPTS)


def test_a_translation_in_two_files_is_that_of_one(tmp_path: Path) -> None:
    """With the states of the encoder, which the first step alone hears."""
    split_translation(tmp_path / "two")
    folder = tmp_path / "whole"
    folder.mkdir()
    writer = GraphWriter("translation", version=1)
    translation_decoder(writer)
    (folder / "decoder_model_merged.onnx").write_bytes(writer.serialise())
    shutil.copy(tmp_path / "two" / "encoder_model.onnx", folder)
    cases = [only(tmp_path, s).case for s in (f"two/{LATER}", "whole/decoder_model_merged.onnx")]
    assert written(cases[0], PROMPTS) == written(cases[1], PROMPTS)
    (request,) = ask(opened(cases[0]), TimeBlock(iterations=1)).requests
    assert request.encoder_ns
    assert len(request.steps_ns) == 3


class Speaker:
    """An encoder that says the same each time, and other things than what is drawn."""

    def __init__(self, case: Case) -> None:
        feeds = make_feeds((*case.inputs, *case.first_inputs), seed=case.seed)
        self._said = {
            name: value if "int" in str(np.asarray(value).dtype) else np.asarray(value) * -2
            for name, value in feeds.items()
            if name in case.model.hears
        }

    def listen(self) -> int:
        return 1

    def said(self) -> dict[str, object]:
        return self._said


def heard_text(case: Case, before: list[int], prompt: list[int]) -> list[list[int]]:
    engine = SessionEngine(opened(case).scorer().decoder, case, Speaker(case))
    if before:
        engine.fill(np.array([before]))
    engine.request(np.array([prompt]), 3)
    return engine.written.tolist()


@pytest.mark.parametrize("spec", [LATER, "builtin:translation_decoder", "builtin:speech_decoder"])
def test_tokens_before_the_prompt_listened_to_the_same_encoder(spec: str, tmp_path: Path) -> None:
    """They and the prompt together are one longer prompt."""
    split_translation(tmp_path, one_token=False)
    before, prompt = [3, 4, 5, 6, 7], [5, 6, 7, 8]
    deep = heard_text(only(tmp_path, spec, depths=(5,)).case, before, prompt)
    assert deep == heard_text(only(tmp_path, spec, new=9).case, [], [*before, *prompt])


@pytest.mark.parametrize("kind", ["decoder", "translation"])
def test_its_quality_is_looked_at_as_that_of_any_other(kind: str, tmp_path: Path) -> None:
    if kind == "decoder":
        split_decoder(tmp_path, one_token=True)
    else:
        split_translation(tmp_path)
    case = only(tmp_path).case
    right = tmp_path / "right.npz"
    looked_at = replace(case, encoder_inputs=())
    write_continuation(
        WriteContinuation(case=looked_at, text=(), path=str(right)), WorkerState(lambda _: None)
    )
    question = CheckGeneration(reference=str(right), prompt_tokens=4, new_tokens=3, text=())
    check = check_generation(question, opened(case))
    assert check.likeness is not None
    assert check.likeness.sqnr_db > 80
    assert check.likeness.same_greedy == check.likeness.tokens
    assert check.at_end is not None
    assert not check.at_end.is_wrong
    assert check.growth is not None
    assert check.growth.reason == ""


def test_halves_of_two_networks_are_found_out(tmp_path: Path) -> None:
    split_decoder(tmp_path, one_token=True)
    split_decoder(tmp_path / "other", one_token=True, name="other")
    shutil.copy(tmp_path / "other" / FIRST, tmp_path / FIRST)
    with pytest.raises(WorkerError) as caught:
        opened(only(tmp_path).case)
    assert caught.value.failure.phase == "first"


def test_a_first_step_that_changes_is_seen(tmp_path: Path) -> None:
    split_decoder(tmp_path)
    case = only(tmp_path).case
    for seal in (measured_seal(case), source(case)):
        seal.check()
    (tmp_path / FIRST).write_bytes(b"another file")
    for seal in (measured_seal(case), source(case)):
        with pytest.raises(WorkerError):
            seal.check()
