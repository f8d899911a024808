"""BERT encoders with pooler (J. Devlin et al., NAACL 2019), uncased vocabulary."""

from __future__ import annotations

from fractions import Fraction

from pytest_ortbench.models.builders.graph_writer import GraphWriter
from pytest_ortbench.models.builders.transformer import (
    HIDDEN_SCORE,
    embedding,
    feed_forward,
    layer_norm,
    length_of,
    linear,
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
    ids, attended, types = (
        writer.input(name, "int64", ["batch", "seq"])
        for name in ("input_ids", "attention_mask", "token_type_ids")
    )
    with writer.scope("embeddings"):
        trunk = _embedded(writer, ids, types, width)
        mask = _mask(writer, attended)
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
    pooled = linear(writer, first, width, width, name="pooler")
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


def _mask(writer: GraphWriter, attended: str) -> str:
    """What is added to the scores [batch, 1, 1, seq]: 0 where attended, else HIDDEN_SCORE."""
    axes = writer.node("Unsqueeze", attended, writer.integers(1, 2))
    kept = writer.node("Cast", axes, to=1)
    dropped = writer.node("Sub", writer.number(1.0), kept)
    return writer.node("Mul", dropped, writer.number(HIDDEN_SCORE))
