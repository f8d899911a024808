"""A small causal language model with a key/value cache, for prefill and for decoding alike.

Prefill is ``past`` 0 and ``seq`` the prompt's length; decoding is ``seq`` 1 after ``past`` tokens.
"""

from __future__ import annotations

from fractions import Fraction

from pytest_ortbench.models.builders.graph_writer import GraphWriter
from pytest_ortbench.models.builders.transformer import (
    HEAD_SIZE,
    HIDDEN_SCORE,
    attention,
    embedding,
    feed_forward,
    heads,
    layer_norm,
    length_of,
    linear,
)

_VOCABULARY = 8192
_POSITIONS = 1024
_WIDTH = 256
_HEADS = _WIDTH // HEAD_SIZE
_LAYERS = 4


def decoder(writer: GraphWriter) -> None:
    """Tokens, mask and cache to logits [batch, seq, 8192] and the longer cache."""
    ids = writer.input("input_ids", "int64", ["batch", "seq"])
    attended = writer.input("attention_mask", "int64", ["batch", "past + seq"])
    caches = [
        [
            writer.input(f"past.{layer}.{kind}", "float", ["batch", _HEADS, "past", HEAD_SIZE])
            for kind in ("key", "value")
        ]
        for layer in range(_LAYERS)
    ]
    with writer.scope("embeddings"):
        words = embedding(writer, "word", _VOCABULARY, _WIDTH, variance=Fraction(1, 16))
        total = length_of(writer, attended, 1)
        past = writer.node("Sub", total, length_of(writer, ids, 1))
        queries = writer.node("Range", past, total, writer.integer(1))
        places = embedding(writer, "position", _POSITIONS, _WIDTH, variance=Fraction(1, 64))
        trunk = writer.node(
            "Add",
            writer.node("Gather", words, ids),
            writer.node("Gather", places, queries),
            out="out",
        )
        mask = _causal_mask(writer, attended, queries, total)
    for layer, cache in enumerate(caches):
        with writer.scope(f"layer{layer}"):
            trunk = _block(writer, trunk, cache, layer, mask)
    normed = layer_norm(writer, trunk, _WIDTH, name="norm")
    writer.node("MatMul", normed, writer.node("Transpose", words, perm=[1, 0]), whole_name="logits")
    writer.output("logits", "float", ["batch", "seq", _VOCABULARY])
    for layer in range(_LAYERS):
        for kind in ("key", "value"):
            writer.output(
                f"present.{layer}.{kind}", "float", ["batch", _HEADS, "past + seq", HEAD_SIZE]
            )


def _block(writer: GraphWriter, trunk: str, cache: list[str], layer: int, mask: str) -> str:
    normed = layer_norm(writer, trunk, _WIDTH, name="norm1")
    query, key, value = (
        heads(writer, linear(writer, normed, _WIDTH, _WIDTH, name=name), _HEADS)
        for name in ("query", "key", "value")
    )
    grown = [
        writer.node("Concat", old, new, axis=2, whole_name=f"present.{layer}.{kind}")
        for kind, old, new in zip(("key", "value"), cache, (key, value), strict=True)
    ]
    mixed = attention(writer, query, *grown, mask=mask)
    mixed = linear(writer, mixed, _WIDTH, _WIDTH, name="mix")
    trunk = writer.node("Add", trunk, mixed, out="attention/out")
    normed = layer_norm(writer, trunk, _WIDTH, name="norm2")
    fed = feed_forward(writer, normed, _WIDTH, 4 * _WIDTH, variance=Fraction(1))
    return writer.node("Add", trunk, fed, out="out")


def _causal_mask(writer: GraphWriter, attended: str, queries: str, total: str) -> str:
    """What is added to the scores [batch, 1, seq, past + seq]."""
    positions = writer.node("Range", writer.integer(0), total, writer.integer(1))
    rows = writer.node("Unsqueeze", queries, writer.integers(1))
    earlier = writer.node("LessOrEqual", positions, rows)
    shown = writer.node("Cast", attended, to=9)
    shown = writer.node("Unsqueeze", shown, writer.integers(1, 2))
    return writer.node(
        "Where",
        writer.node("And", shown, earlier),
        writer.number(0.0),
        writer.number(HIDDEN_SCORE),
    )
