"""Caches of all kinds in a session: shared buffers, other layouts, flags, or none at all."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
import onnxruntime as ort
import pytest

from pytest_ortbench.core.case import Provider
from pytest_ortbench.core.generation import Decoder
from pytest_ortbench.worker.generation.decoding import SessionDecoder
from tests.generation.folders import TINY, model_bytes
from tests.models.decoder_graphs import HEADS, SIZE, attended, grouped, joined
from tests.models.graphs import BOOL, INT64, read, value

CPU = Provider(alias="cpu", name="CPUExecutionProvider")
PROMPT = np.array([[3, 1, 4, 1, 5], [9, 2, 6, 5, 3]])
OPEN = ("batch_size", "heads", "past_sequence_length", "size")

pytestmark = pytest.mark.live


def written(decoder: Decoder, session: ort.InferenceSession, new: int = 6) -> list[list[int]]:
    """Tokens that are written after a prompt, and again after the same prompt."""
    runner = SessionDecoder(session, decoder, CPU, batch=2, length=PROMPT.shape[1] + new)
    rounds = []
    for _ in range(2):
        runner.rewind()
        runner.read(PROMPT)
        tokens = [runner.scores()[:, -1].argmax(axis=-1)]
        for _ in range(new - 1):
            runner.read(tokens[-1][:, None])
            tokens.append(runner.scores()[:, -1].argmax(axis=-1))
        rounds.append(np.stack(tokens, axis=1).tolist())
    assert rounds[0] == rounds[1]
    return [list(row) for row in rounds[0]]


def loaded(proto: onnx.ModelProto, folder: Path) -> tuple[Decoder, ort.InferenceSession]:
    found = read(proto, folder)
    assert found.decoder is not None
    return found.decoder, ort.InferenceSession(found.path, providers=["CPUExecutionProvider"])


def test_grouped_attention_writes_the_same_tokens_into_a_shared_buffer(tmp_path: Path) -> None:
    decoder, session = loaded(grouped(rows=64), tmp_path)
    assert decoder.shares_buffers
    assert decoder.context == 64
    assert "'cos'" in decoder.context_from
    assert written(decoder, session) == written(replace(decoder, shares_buffers=False), session)


@pytest.mark.parametrize("reader", ["Shape", "Identity"])
def test_a_cache_that_something_else_reads_is_not_shared(reader: str, tmp_path: Path) -> None:
    proto = grouped()
    proto.graph.node.append(onnx.helper.make_node(reader, ["past_key_values.0.key"], ["seen"]))
    proto.graph.output.append(onnx.helper.make_tensor_value_info("seen", 7, None))
    found = read(proto, tmp_path)
    assert found.decoder is not None
    assert not found.decoder.shares_buffers


def test_a_cache_that_is_joined_is_not_shared_and_has_flag_and_constants(tmp_path: Path) -> None:
    extra = [value("is_first_step", [1], BOOL), value("num_logits_to_keep", [], INT64)]
    decoder, session = loaded(joined(OPEN, None, extra=extra), tmp_path)
    assert not decoder.shares_buffers
    assert len(written(decoder, session)[0]) == 6


@pytest.mark.parametrize(
    ("op", "shape"),
    [
        ("MultiHeadAttention", (0, HEADS, 0, SIZE)),
        ("Attention", (0, HEADS, 0, SIZE)),
        ("packed", (2, 0, HEADS, 0, SIZE)),
    ],
)
def test_operators_that_keep_a_cache(op: str, shape: tuple[int, ...], tmp_path: Path) -> None:
    decoder, session = loaded(attended(op), tmp_path)
    assert {tensor.shape for tensor in decoder.cache} == {shape}
    assert token_by_token(decoder, session) == written(decoder, session)


def test_a_decoder_without_a_cache_reads_everything_again(tmp_path: Path) -> None:
    cached, session = loaded(onnx.load_model_from_string(model_bytes(TINY)), tmp_path)
    proto = onnx.load_model_from_string(model_bytes(TINY, cached=False))
    uncached, other = loaded(proto, tmp_path)
    assert (len(cached.cache), uncached.cache, uncached.context) == (4, (), TINY.context)
    assert written(uncached, other) == written(cached, session) == token_by_token(uncached, other)


def token_by_token(decoder: Decoder, session: ort.InferenceSession) -> list[list[int]]:
    """What is written where the prompt is read token by token, half of it before the request."""
    runner = SessionDecoder(session, decoder, CPU, batch=2, length=PROMPT.shape[1] + 6)
    runner.fill(PROMPT[:, :1])
    for place in range(1, PROMPT.shape[1]):
        runner.read(PROMPT[:, place : place + 1])
    tokens = [runner.scores()[:, -1].argmax(axis=-1)]
    while len(tokens) < 6:
        runner.read(tokens[-1][:, None])
        tokens.append(runner.scores()[:, -1].argmax(axis=-1))
    return [list(row) for row in np.stack(tokens, axis=1).tolist()]


def test_a_cache_with_the_length_before_the_heads(tmp_path: Path) -> None:
    decoder, session = loaded(joined(OPEN, None, along=1), tmp_path)
    runner = SessionDecoder(session, decoder, CPU, batch=2, length=8)
    runner.read(PROMPT)
    assert runner.cache_bytes == 2 * 2 * 5 * HEADS * SIZE * 4
