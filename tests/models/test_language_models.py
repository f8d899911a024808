"""Language models with a cache: what they write with it is what they write without."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from numpy.typing import NDArray

from pytest_ortbench.models.builders.generative import LLM_15M, LLM_LONG, LlmSizes
from pytest_ortbench.models.builders.rotations import (
    frequencies,
    long_gain,
    rotation_tables,
    slowed,
)
from tests.generation.decoding import continued, difference, session
from tests.generation.folders import TINY, model_bytes


def at_once(content: bytes, ids: NDArray[np.int64]) -> NDArray[np.float32]:
    """Logits of a text that is read at once by a network without a cache."""
    whole = session(content)
    assert [info.name for info in whole.get_inputs()] == ["input_ids", "attention_mask"]
    assert [info.name for info in whole.get_outputs()] == ["logits"]
    mask = np.ones_like(ids)
    logits: NDArray[np.float32] = whole.run(None, {"input_ids": ids, "attention_mask": mask})[0]
    return logits


@pytest.mark.live
@pytest.mark.parametrize(
    ("sizes", "name", "batch", "lengths"),
    [
        (TINY, "tiny", 1, [1, 7, 1, 1, 9, 1]),
        (TINY, "tiny", 3, [10, 1, 1, 1, 1, 1]),
        (LLM_15M, "llm_15m", 2, [12, 1, 1, 1]),
        (LLM_LONG, "llm_long", 1, [200, 1, 54, 1]),  # up to the switch
        (LLM_LONG, "llm_long", 2, [257, 1, 1, 1]),  # past it from the start
    ],
)
def test_cached_equals_uncached(sizes: LlmSizes, name: str, batch: int, lengths: list[int]) -> None:
    """At every position, to the rounding of float32."""
    ids = np.random.default_rng(0).integers(0, sizes.vocabulary, (batch, sum(lengths)))
    expected = at_once(model_bytes(sizes, name=name, cached=False), ids)
    parts = continued(session(model_bytes(sizes, name=name)), ids, lengths)
    assert (difference(parts["logits"], expected) < 1e-5).all()
    cache = parts["past_key_values.0.key"]
    assert cache.shape == (batch, sizes.key_heads, ids.shape[1], 64)


@pytest.mark.live
def test_keys_of_before_the_switch_do_not_fit_after_it() -> None:
    """They were turned by other tables, and the graph does not turn them again."""
    ids = np.random.default_rng(0).integers(0, LLM_LONG.vocabulary, (1, 260))
    expected = at_once(model_bytes(LLM_LONG, name="llm_long", cached=False), ids)
    parts = continued(session(model_bytes(LLM_LONG, name="llm_long")), ids, [256, 1, 1, 1, 1])
    assert (difference(parts["logits"], expected)[256:] > 1e-2).all()
    short = at_once(model_bytes(LLM_LONG, name="llm_long", cached=False), ids[:, :256])
    assert (difference(parts["logits"][:, :256], short) < 1e-5).all()


@pytest.mark.live
def test_one_product_or_three_make_the_same_network() -> None:
    ids = np.random.default_rng(0).integers(0, TINY.vocabulary, (2, 20))
    packed, apart = (model_bytes(TINY, cached=False, packed=packed) for packed in (True, False))
    assert (difference(at_once(packed, ids), at_once(apart, ids)) < 1e-5).all()


@pytest.mark.live
def test_every_other_token_is_a_sure_one() -> None:
    """After most even tokens comes the odd one half a vocabulary on; after an odd one, any."""
    ids = np.random.default_rng(0).integers(0, LLM_15M.vocabulary, (1, 200))
    best = at_once(model_bytes(LLM_15M, name="llm_15m", cached=False), ids).argmax(axis=2)
    half = LLM_15M.vocabulary // 2
    sure = best == (ids + half + 1) % LLM_15M.vocabulary
    assert sure[ids % 2 == 0].mean() > 0.9
    assert not sure[ids % 2 == 1].any()
    assert len(np.unique(best[ids % 2 == 1])) > 80


@pytest.mark.live
@pytest.mark.parametrize("wrong", ["another text", "one token missing", "one token twice"])
def test_another_cache_changes_the_logits(wrong: str) -> None:
    """The weights are drawn so that the past counts: a wrong feed shows in the answer."""
    ids = np.random.default_rng(1).integers(0, TINY.vocabulary, (1, 16))
    model = session(model_bytes(TINY))
    expected = continued(model, ids, [15, 1])["logits"][:, -1]
    read = {
        "another text": ids[:, 14::-1],
        "one token missing": ids[:, :14],
        "one token twice": np.repeat(ids[:, :15], [1] * 14 + [2], axis=1),
    }[wrong]
    cache = continued(model, read, [read.shape[1]])
    del cache["logits"]
    mask = np.ones((1, read.shape[1] + 1), np.int64)
    feeds = {"input_ids": ids[:, 15:], "attention_mask": mask, **cache}
    actual = model.run(["logits"], feeds)[0][:, -1]
    assert np.abs(actual - expected).max() / np.abs(expected).max() > 0.05


def test_rotations_are_cosines_and_sines_of_every_position() -> None:
    turns = frequencies(10_000, 64)
    assert turns[0] == 1
    assert float(turns[16]) == pytest.approx(0.01, rel=1e-15)
    cosines, sines = rotation_tables(turns, 3000, gain=1.25)
    angles = np.outer(np.arange(3000), [float(turn) for turn in turns])
    assert cosines.shape == sines.shape == (3000, 32)
    np.testing.assert_allclose(cosines, 1.25 * np.cos(angles), atol=1e-7)
    np.testing.assert_allclose(sines, 1.25 * np.sin(angles), atol=1e-7)


def test_rotations_are_pinned() -> None:
    """A change here changes every model with rotary embedding."""
    cosines, sines = rotation_tables([Decimal(1), Decimal("0.001")], 1024)
    assert [value.hex() for value in cosines[1023].tolist()] == [
        "0x1.99ab7a0000000p-2",
        "0x1.0aa7400000000p-1",
    ]
    assert [value.hex() for value in sines[1023].tolist()] == [
        "-0x1.d53d920000000p-1",
        "0x1.b514cc0000000p-1",
    ]


def test_slowed_rotations_fit_a_longer_context() -> None:
    slow = slowed([Decimal(1), Decimal("0.5")], [Fraction(5, 4), Fraction(8)])
    assert slow == (Decimal("0.8"), Decimal("0.0625"))
    # Phi-3 mini 128k: 131072 tokens after 4096.
    assert long_gain(131_072, 4096) == pytest.approx(1.1902380714238083, rel=1e-15)
