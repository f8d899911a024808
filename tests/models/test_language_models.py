"""Language models with a cache: what they write with it is what they write without."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from typing import TypeAlias

import numpy as np
import onnxruntime as ort
import pytest
from numpy.typing import NDArray

from pytest_ortbench.models.builders.generative import LLM_15M, LlmSizes
from pytest_ortbench.models.builders.rotations import (
    frequencies,
    long_gain,
    rotation_tables,
    slowed,
)
from tests.generation.folders import TINY, model_bytes

Feeds: TypeAlias = dict[str, NDArray[np.generic]]


def session(content: bytes) -> ort.InferenceSession:
    options = ort.SessionOptions()
    options.intra_op_num_threads = 2
    return ort.InferenceSession(content, options, providers=["CPUExecutionProvider"])


def empty_cache(model: ort.InferenceSession, batch: int) -> Feeds:
    return {
        info.name: np.zeros((batch, info.shape[1], 0, info.shape[3]), np.float32)
        for info in model.get_inputs()
        if info.name.startswith("past_key_values.")
    }


def continued(model: ort.InferenceSession, ids: NDArray[np.int64], lengths: list[int]) -> Feeds:
    """Logits of a text that is read in parts, with the cache handed on."""
    names = [info.name for info in model.get_outputs()]
    cache = empty_cache(model, len(ids))
    parts, past = [], 0
    for length in lengths:
        total = past + length
        mask = np.ones((len(ids), total), np.int64)
        feeds = {"input_ids": ids[:, past:total], "attention_mask": mask, **cache}
        outputs = dict(zip(names, model.run(names, feeds), strict=True))
        cache = {name: outputs[name.replace("past_key_values", "present")] for name in cache}
        parts.append(outputs["logits"])
        past = total
    return {"logits": np.concatenate(parts, axis=1), **cache}


@pytest.mark.live
@pytest.mark.parametrize(
    ("sizes", "name", "batch", "lengths"),
    [
        (TINY, "tiny", 1, [1, 7, 1, 1, 9, 1]),
        (TINY, "tiny", 3, [10, 1, 1, 1, 1, 1]),
        (LLM_15M, "llm_15m", 2, [12, 1, 1, 1]),
    ],
)
def test_cached_equals_uncached(sizes: LlmSizes, name: str, batch: int, lengths: list[int]) -> None:
    """At every position, to the rounding of float32."""
    ids = np.random.default_rng(0).integers(0, sizes.vocabulary, (batch, sum(lengths)))
    whole = session(model_bytes(sizes, name=name, cached=False))
    mask = np.ones_like(ids)
    expected = whole.run(["logits"], {"input_ids": ids, "attention_mask": mask})[0]
    assert [info.name for info in whole.get_inputs()] == ["input_ids", "attention_mask"]
    assert [info.name for info in whole.get_outputs()] == ["logits"]
    parts = continued(session(model_bytes(sizes, name=name)), ids, lengths)
    differences = np.abs(parts["logits"] - expected).max(axis=(0, 2))
    assert (differences / np.abs(expected).max() < 1e-5).all()
    cache = parts["past_key_values.0.key"]
    assert cache.shape == (batch, sizes.key_heads, ids.shape[1], 64)


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
