"""Networks that read tokens: BERT encoders, a causal decoder and a recurrent tagger."""

from __future__ import annotations

from fractions import Fraction

from pytest_ortbench.models.builders.graph_writer import GraphWriter
from pytest_ortbench.models.builders.transformer import (
    HEAD_SIZE,
    HIDDEN_SCORE,
    attention,
    dense,
    embedding,
    feed_forward,
    heads,
    layer_norm,
    length_of,
    self_attention,
    shape_vector,
)

_VOCABULARY = 30522
_POSITIONS = 512
_TYPES = 2


def bert_base(writer: GraphWriter) -> None:
    """12 layers of width 768; 109,482,240 parameters."""
    _bert(writer, layers=12, width=768)


def bert_tiny(writer: GraphWriter) -> None:
    """2 layers of width 128; 4,385,920 parameters."""
    _bert(writer, layers=2, width=128)


def _bert(writer: GraphWriter, *, layers: int, width: int) -> None:
    """An encoder with pooler (J. Devlin et al., NAACL 2019), uncased vocabulary."""
    ids, attended, types = (
        writer.input(name, "int64", ["batch", "seq"])
        for name in ("input_ids", "attention_mask", "token_type_ids")
    )
    with writer.scope("embeddings"):
        trunk = _embedded(writer, ids, types, width)
        mask = mask_scores(writer, attended)
    for layer in range(layers):
        with writer.scope(f"layer{layer}"):
            mixed = self_attention(
                writer,
                trunk,
                width,
                sharpness=Fraction(2),
                variance=Fraction(1),
                mask=mask,
            )
            trunk = layer_norm(writer, writer.node("Add", trunk, mixed), width, name="norm1")
            fed = feed_forward(writer, trunk, width, 4 * width, variance=Fraction(2))
            trunk = layer_norm(
                writer,
                writer.node("Add", trunk, fed),
                width,
                name="norm2",
                whole_name="last_hidden_state" if layer == layers - 1 else "",
            )
    first = writer.node("Gather", trunk, writer.integer(0), axis=1)
    pooled = dense(writer, first, width, width, name="pooler")
    writer.node("Tanh", pooled, whole_name="pooler_output")
    writer.output(trunk, "float", ["batch", "seq", width])
    writer.output("pooler_output", "float", ["batch", width])


def _embedded(writer: GraphWriter, ids: str, types: str, width: int) -> str:
    """Sum of word, position and type vectors, normalised."""
    words = embedding(writer, "word", _VOCABULARY, width, variance=Fraction(1))
    places = embedding(writer, "position", _POSITIONS, width, variance=Fraction(1, 8))
    kinds = embedding(writer, "type", _TYPES, width, variance=Fraction(1, 64))
    length = shape_vector(writer, length_of(writer, ids, 1))
    used = writer.node("Slice", places, writer.integers(0), length, writer.integers(0))
    total = writer.node(
        "Add",
        writer.node("Add", writer.node("Gather", words, ids), writer.node("Gather", kinds, types)),
        used,
    )
    return layer_norm(writer, total, width, name="norm")


def mask_scores(writer: GraphWriter, attended: str) -> str:
    """What is added to the scores [batch, 1, 1, seq]: 0 where attended, else HIDDEN_SCORE."""
    axes = writer.node("Unsqueeze", attended, writer.integers(1, 2))
    kept = writer.node("Cast", axes, to=1)
    dropped = writer.node("Sub", writer.number(1.0), kept)
    return writer.node("Mul", dropped, writer.number(HIDDEN_SCORE))


_DECODER_VOCABULARY = 8192
_DECODER_POSITIONS = 1024
_DECODER_WIDTH = 256
_DECODER_HEADS = _DECODER_WIDTH // HEAD_SIZE
_DECODER_LAYERS = 4


def decoder(writer: GraphWriter) -> None:
    """Tokens, mask and cache to logits [batch, seq, 8192] and the longer cache.

    A small causal language model for prefill and for decoding alike: prefill is ``past`` 0 and
    ``seq`` the prompt's length; decoding is ``seq`` 1 after ``past`` tokens.
    """
    ids = writer.input("input_ids", "int64", ["batch", "seq"])
    attended = writer.input("attention_mask", "int64", ["batch", "past + seq"])
    caches = [
        [
            writer.input(
                f"past.{layer}.{kind}", "float", ["batch", _DECODER_HEADS, "past", HEAD_SIZE]
            )
            for kind in ("key", "value")
        ]
        for layer in range(_DECODER_LAYERS)
    ]
    with writer.scope("embeddings"):
        words = embedding(
            writer, "word", _DECODER_VOCABULARY, _DECODER_WIDTH, variance=Fraction(1, 16)
        )
        total = length_of(writer, attended, 1)
        past = writer.node("Sub", total, length_of(writer, ids, 1))
        queries = writer.node("Range", past, total, writer.integer(1))
        places = embedding(
            writer, "position", _DECODER_POSITIONS, _DECODER_WIDTH, variance=Fraction(1, 64)
        )
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
    normed = layer_norm(writer, trunk, _DECODER_WIDTH, name="norm")
    writer.node("MatMul", normed, writer.node("Transpose", words, perm=[1, 0]), whole_name="logits")
    writer.output("logits", "float", ["batch", "seq", _DECODER_VOCABULARY])
    for layer in range(_DECODER_LAYERS):
        for kind in ("key", "value"):
            writer.output(
                f"present.{layer}.{kind}",
                "float",
                ["batch", _DECODER_HEADS, "past + seq", HEAD_SIZE],
            )


def _block(writer: GraphWriter, trunk: str, cache: list[str], layer: int, mask: str) -> str:
    normed = layer_norm(writer, trunk, _DECODER_WIDTH, name="norm1")
    query, key, value = (
        heads(
            writer, dense(writer, normed, _DECODER_WIDTH, _DECODER_WIDTH, name=name), _DECODER_HEADS
        )
        for name in ("query", "key", "value")
    )
    grown = [
        writer.node("Concat", old, new, axis=2, whole_name=f"present.{layer}.{kind}")
        for kind, old, new in zip(("key", "value"), cache, (key, value), strict=True)
    ]
    mixed = attention(writer, query, *grown, mask=mask)
    mixed = dense(writer, mixed, _DECODER_WIDTH, _DECODER_WIDTH, name="mix")
    trunk = writer.node("Add", trunk, mixed, out="attention/out")
    normed = layer_norm(writer, trunk, _DECODER_WIDTH, name="norm2")
    fed = feed_forward(writer, normed, _DECODER_WIDTH, 4 * _DECODER_WIDTH, variance=Fraction(1))
    return writer.node("Add", trunk, fed, out="out")


def _causal_mask(writer: GraphWriter, attended: str, queries: str, total: str) -> str:
    """What is added to the scores [batch, 1, seq, past + seq]."""
    positions = writer.node("Range", writer.integer(0), total, writer.integer(1))
    rows = writer.node("Unsqueeze", queries, writer.integers(1))
    earlier = writer.node("LessOrEqual", positions, rows)
    shown = writer.node("Cast", attended, to=9)
    shown = writer.node("Unsqueeze", shown, writer.integers(1, 2))
    return writer.node(
        "Where", writer.node("And", shown, earlier), writer.number(0.0), writer.number(HIDDEN_SCORE)
    )


_TAGGER_VOCABULARY = 10000
_TAGGER_WIDTH = 128
_TAGGER_HIDDEN = 128
_TAGGER_TAGS = 17  # universal part-of-speech tags


def lstm_tagger(writer: GraphWriter) -> None:
    """Tokens [batch, seq] to logits [batch, seq, 17].

    Embedding, bidirectional LSTM, one dense layer a token.
    """
    ids = writer.input("input_ids", "int64", ["batch", "seq"])
    words = embedding(writer, "word", _TAGGER_VOCABULARY, _TAGGER_WIDTH, variance=Fraction(1))
    looked_up = writer.node("Gather", words, ids)
    # LSTM wants time first.
    steps = writer.node("Transpose", looked_up, perm=[1, 0, 2])
    with writer.scope("lstm"):
        gates = 4 * _TAGGER_HIDDEN
        (states,) = writer.nodes(
            "LSTM",
            steps,
            writer.drawn("input.weight", (2, gates, _TAGGER_WIDTH), Fraction(2, _TAGGER_WIDTH)),
            writer.drawn("hidden.weight", (2, gates, _TAGGER_HIDDEN), Fraction(2, _TAGGER_HIDDEN)),
            writer.drawn("bias", (2, 2 * gates), Fraction(1, 64)),
            names=("out",),
            direction="bidirectional",
            hidden_size=_TAGGER_HIDDEN,
        )
    # [seq, directions, batch, hidden] to [batch, seq, directions times hidden]
    turned = writer.node("Transpose", states, perm=[2, 0, 1, 3])
    tokens = writer.node("Reshape", turned, writer.integers(0, 0, 2 * _TAGGER_HIDDEN))
    dense(
        writer,
        tokens,
        2 * _TAGGER_HIDDEN,
        _TAGGER_TAGS,
        name="tags",
        variance=Fraction(16),
        whole_name="logits",
    )
    writer.output("logits", "float", ["batch", "seq", _TAGGER_TAGS])
