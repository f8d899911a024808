"""What makes numbers of language models wrong elsewhere, and is kept out of them here."""

from __future__ import annotations

from array import array
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from pytest_ortbench.core.case import Case
from pytest_ortbench.core.generation import Decoder
from pytest_ortbench.worker.generation import requests
from pytest_ortbench.worker.generation.requests import (
    Prompts,
    RequestLoop,
    SessionEngine,
    generation_in,
)
from tests.passes.generation.generated import make_generating_case

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


def test_no_prompt_is_read_twice(clock: Clock) -> None:
    """Whatever keeps the states of earlier prompts finds none of them again."""
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


def test_workers_draw_other_prompts() -> None:
    case = ending_case()
    one, other = (Prompts(case, seed=seed).draw(6) for seed in (1, 2))
    assert (one != other).any()
