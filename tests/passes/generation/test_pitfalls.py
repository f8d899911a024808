"""What makes numbers of language models wrong elsewhere, and is kept out of them here."""

from __future__ import annotations

from array import array
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import pytest

from pytest_ortbench.analysis.summary import summarise
from pytest_ortbench.core.case import Case
from pytest_ortbench.core.generation import Decoder
from pytest_ortbench.engines.torch.worker.generated import OnlyKnown
from pytest_ortbench.worker.generation import genai_engine, requests
from pytest_ortbench.worker.generation.requests import (
    Prompts,
    RequestLoop,
    SessionEngine,
    generation_in,
)
from tests.passes.generation.generated import make_generated, make_generating_case, make_request

if TYPE_CHECKING:
    from pytest_ortbench.worker.generation.genai_model import GenaiModel

VOCABULARY, END, READ_NS, CHOICE_NS = 50, 7, 1_000, 1_000_000


class Clock:
    """Counts what is done: nothing else takes time."""

    def __init__(self) -> None:
        self.now = 0

    def __call__(self) -> int:
        return self.now


class EagerToEnd:
    """A decoder that holds the end of the text for the likeliest token, always."""

    def __init__(self, clock: Clock, batch: int) -> None:
        self.clock, self.batch = clock, batch
        self.fed: list[Any] = []

    def fill(self, ids: Any) -> None:
        """Keep nothing."""

    def rewind(self) -> None:
        self.fed.append([])

    def read(self, ids: Any) -> int:
        self.fed[-1].append(ids)
        self.clock.now += READ_NS
        return READ_NS

    def scores(self) -> Any:
        # Whoever asks for scores chooses a token, which is Python's work and not the model's.
        self.clock.now += CHOICE_NS
        scores = np.zeros((self.batch, 1, VOCABULARY))
        scores[:, :, END], scores[:, :, 3] = 9, 5
        return scores


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(requests, "perf_counter_ns", made)
    return made


def ending_case(batch: int = 2) -> Case:
    """A case whose model ends texts with one token."""
    case = make_generating_case(batch=batch, prompt=6, new=5)
    decoder = Decoder(ids="ids", logits="logits", vocabulary=VOCABULARY, end_tokens=(END,))
    return replace(case, model=replace(case.model, decoder=decoder))


def test_an_early_end_inflates_no_rate(clock: Clock) -> None:
    """The end is never chosen: as many tokens are written, and counted, as were asked for."""
    engine = SessionEngine(EagerToEnd(clock, batch=2), ending_case())
    request = engine.request(np.zeros((2, 6), dtype=np.int64), 5)
    assert (request.prompt_tokens, request.new_tokens, len(request.steps_ns)) == (6, 5, 5)
    assert engine.written.tolist() == [[3] * 5] * 2


def test_the_time_of_a_token_is_that_of_the_model_alone(clock: Clock) -> None:
    """Choosing takes a thousand times as long here, and is in no step; it is in the request."""
    engine = SessionEngine(EagerToEnd(clock, batch=2), ending_case())
    request = engine.request(np.zeros((2, 6), dtype=np.int64), 5)
    assert request.steps_ns == (READ_NS,) * 5
    assert request.chosen_ns == CHOICE_NS
    assert request.wall_ns == 5 * (READ_NS + CHOICE_NS)


def test_no_prompt_is_read_twice(clock: Clock, capfd: pytest.CaptureFixture[str]) -> None:
    """Whatever keeps the states of earlier prompts finds none of them again; nothing is printed."""
    case = ending_case()
    decoder = EagerToEnd(clock, batch=2)
    loop = RequestLoop(SessionEngine(decoder, case), Prompts(case, seed=1), generation_in(case))
    loop(array("q", bytes(8 * 20)))
    prompts = [steps[0] for steps in decoder.fed]
    assert len(prompts) == 20
    assert all((earlier != later).any(axis=1).all() for earlier, later in pairwise(prompts))
    first_tokens = {tuple(row[:2]) for prompt in prompts for row in prompt.tolist()}
    assert len(first_tokens) > 30
    assert not any((prompt == END).any() for prompt in prompts)
    assert capfd.readouterr() == ("", "")


def test_workers_draw_other_prompts() -> None:
    case = ending_case()
    one, other = (Prompts(case, seed=seed).draw(6) for seed in (1, 2))
    assert (one != other).any()


class Text:
    """A tokenizer and a generator of onnxruntime-genai, of which each call takes its own time."""

    tokenizer: Any
    has_template = True

    def __init__(self, clock: Clock) -> None:
        self.clock, self.tokenizer = clock, self
        self.made: list[list[list[int]]] = []

    def decode(self, _ids: Any) -> str:
        self.clock.now += TEXT_NS
        return "text"

    def apply_chat_template(self, _messages: str, *, add_generation_prompt: bool) -> str:
        assert add_generation_prompt
        self.clock.now += TEXT_NS
        return "prompt"

    def encode(self, _text: str) -> None:
        self.clock.now += TEXT_NS

    def generator(self, *, length: int) -> Text:
        assert length == 11
        self.clock.now += MADE_NS
        self.made.append([])
        return self

    def append_tokens(self, ids: Any) -> None:
        self.clock.now += READ_NS
        self.made[-1] = ids.tolist()

    def generate_next_token(self) -> None:
        self.clock.now += STEP_NS
        for row in self.made[-1]:
            row.append(3)

    def get_sequence(self, row: int) -> list[int]:
        return self.made[-1][row]


TEXT_NS, MADE_NS, STEP_NS = 50_000_000, 7_000, 300


def test_no_text_is_in_the_time_of_a_token(monkeypatch: pytest.MonkeyPatch) -> None:
    """Template and tokenising are apart from the request, and count for its first token alone."""
    clock = Clock()
    monkeypatch.setattr(genai_engine, "perf_counter_ns", clock)
    text = Text(clock)
    engine = genai_engine.GenaiEngine(cast("GenaiModel", text), ending_case())
    request = engine.request(np.zeros((2, 6), dtype=np.int32), 5)
    assert request.steps_ns == (READ_NS + STEP_NS, *[STEP_NS] * 4)
    assert request.wall_ns == MADE_NS + READ_NS + 5 * STEP_NS
    # Two sequences: a template and a tokenising each.
    assert request.prepared_ns == 2 * 2 * TEXT_NS + MADE_NS
    assert engine.written.tolist() == [[3] * 5] * 2


def test_each_request_of_genai_begins_with_an_empty_cache(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock = Clock()
    monkeypatch.setattr(genai_engine, "perf_counter_ns", clock)
    text, case = Text(clock), ending_case()
    engine = genai_engine.GenaiEngine(cast("GenaiModel", text), case)
    loop = RequestLoop(engine, Prompts(case, seed=1), generation_in(case))
    loop(array("q", bytes(8 * 9)))
    prompts = [[row[:6] for row in rows] for rows in text.made]
    assert len(prompts) == 9
    assert all(earlier != later for earlier, later in pairwise(prompts))


def test_fewer_tokens_than_asked_for_inflate_no_rate() -> None:
    """Rates follow from the tokens that there are, whatever was asked for."""
    case = make_generating_case(prompt=16, new=50)
    quantities = summarise(make_generated([[make_request((80, 2, 2))] * 3], case=case)).quantities
    assert quantities["decode_rate"].value == pytest.approx(500)
    assert quantities["tpot"].value == pytest.approx(0.002)


def test_a_framework_writes_no_token_that_the_file_does_not_know() -> None:
    scores = np.zeros((2, VOCABULARY + 3))
    scores[:, VOCABULARY + 1], scores[:, 3] = 8, 5
    assert OnlyKnown(VOCABULARY)(None, scores).argmax(axis=-1).tolist() == [3, 3]
