"""A part-of-speech tagger: embedding, bidirectional LSTM, one dense layer a token."""

from __future__ import annotations

from fractions import Fraction

from pytest_ortbench.models.builders.graph_writer import GraphWriter
from pytest_ortbench.models.builders.transformer import embedding, linear

_VOCABULARY = 10000
_WIDTH = 128
_HIDDEN = 128
_TAGS = 17  # universal part-of-speech tags


def lstm_tagger(writer: GraphWriter) -> None:
    """Tokens [batch, seq] to logits [batch, seq, 17]."""
    ids = writer.input("input_ids", "int64", ["batch", "seq"])
    words = embedding(writer, "word", _VOCABULARY, _WIDTH, variance=Fraction(1))
    looked_up = writer.node("Gather", words, ids)
    # LSTM wants time first.
    steps = writer.node("Transpose", looked_up, perm=[1, 0, 2])
    with writer.scope("lstm"):
        gates = 4 * _HIDDEN
        (states,) = writer.nodes(
            "LSTM",
            steps,
            writer.drawn("input.weight", (2, gates, _WIDTH), Fraction(2, _WIDTH)),
            writer.drawn("hidden.weight", (2, gates, _HIDDEN), Fraction(2, _HIDDEN)),
            writer.drawn("bias", (2, 2 * gates), Fraction(1, 64)),
            names=("out",),
            direction="bidirectional",
            hidden_size=_HIDDEN,
        )
    # [seq, directions, batch, hidden] to [batch, seq, directions times hidden]
    turned = writer.node("Transpose", states, perm=[2, 0, 1, 3])
    tokens = writer.node("Reshape", turned, writer.integers(0, 0, 2 * _HIDDEN))
    linear(
        writer,
        tokens,
        2 * _HIDDEN,
        _TAGS,
        name="tags",
        variance=Fraction(16),
        whole_name="logits",
    )
    writer.output("logits", "float", ["batch", "seq", _TAGS])
