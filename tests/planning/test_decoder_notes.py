"""Models that nearly write text: a run says once why no requests are measured of them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pytest_ortbench.core.model import Model, TensorInfo, ValueHint
from pytest_ortbench.planning.decoder_notes import near_decoder_skips
from pytest_ortbench.planning.request import PlanRequest
from tests.results_factory import make_case

INT64, FLOAT = "tensor(int64)", "tensor(float)"
IDS = TensorInfo(
    name="input_ids",
    type=INT64,
    shape=("batch", "sequence"),
    hint=ValueHint(kind="integers", low=0, high=99, why="rows of a table"),
)
LOGITS = TensorInfo(name="logits", type=FLOAT, shape=("batch", "sequence", 100))
CACHE = ("batch", 4, "past", 16)


def skips_of(inputs: list[TensorInfo], outputs: list[TensorInfo], generate: str = "auto") -> int:
    model: Model = replace(
        make_case().model, inputs=tuple(inputs), outputs=tuple(outputs), decoder=None
    )
    skips = list(near_decoder_skips([model], PlanRequest(models=(), generate=generate)))
    assert all(model.name in skip.what and skip.reason for skip in skips)
    return len(skips)


def tensor(name: str, shape: tuple[int | str, ...] = CACHE) -> TensorInfo:
    return TensorInfo(name=name, type=FLOAT, shape=shape)


@pytest.mark.parametrize(
    ("inputs", "outputs", "count"),
    [
        # Scores of tokens without a cache.
        ([IDS], [LOGITS], 1),
        # A cache, and tokens that are embedded elsewhere.
        (
            [tensor("inputs_embeds", ("b", "s", 8)), tensor("past_key_values.0.key")],
            [LOGITS, tensor("present.0.key")],
            1,
        ),
        # Classes: of words, of sentences.
        ([IDS], [replace(LOGITS, shape=("batch", "sequence", 9))], 0),
        ([IDS], [replace(LOGITS, shape=("batch", 2))], 0),
        ([IDS], [tensor("last_hidden_state", ("b", "s", 8))], 0),
        # A state that no output goes on with.
        ([tensor("past_frames")], [tensor("y")], 0),
        ([tensor("x")], [tensor("y")], 0),
    ],
)
def test_who_may_expect_requests_is_told_why_there_are_none(
    inputs: list[TensorInfo], outputs: list[TensorInfo], count: int
) -> None:
    assert skips_of(inputs, outputs) == count
    assert skips_of(inputs, outputs, "off") == 0
    # A row says it there.
    assert skips_of(inputs, outputs, "only") == 0
