"""A network that reads a text and one that writes another, as exporters write T5.

The first one reads the text once; each layer of the second one makes keys and values of its states
in every step, and has a cache of what it wrote.
"""

from __future__ import annotations

from fractions import Fraction

from pytest_ortbench.models.builders.graph_writer import GraphWriter
from pytest_ortbench.models.builders.language import mask_scores
from pytest_ortbench.models.builders.speech import (
    HEADS,
    KINDS,
    LAYER_VARIANCE,
    LAYERS,
    SHARPNESS,
    TEXT_POSITIONS,
    VOCABULARY,
    WIDTH,
    fed_layers,
    listening_layer,
    position_rows,
)
from pytest_ortbench.models.builders.transformer import (
    HEAD_SIZE,
    dense,
    embedding,
    layer_norm,
    length_of,
    self_attention,
    shape_vector,
)

_STATES: tuple[int | str, ...] = ("batch_size", "encoder_sequence_length")
_INT32 = 6


def translation_encoder(writer: GraphWriter) -> None:
    """Tokens and their mask to states [batch, tokens, 256]."""
    ids, attended = (
        writer.input(name, "int64", _STATES) for name in ("input_ids", "attention_mask")
    )
    with writer.scope("embeddings"):
        trunk = _embedded(
            writer, ids, writer.integers(0), shape_vector(writer, _length(writer, ids))
        )
        mask = mask_scores(writer, attended)
    for layer in range(LAYERS):
        with writer.scope(f"layer{layer}"):
            mixed = self_attention(
                writer,
                layer_norm(writer, trunk, WIDTH, name="norm1"),
                WIDTH,
                sharpness=SHARPNESS,
                variance=LAYER_VARIANCE,
                mask=mask,
            )
            trunk = fed_layers(writer, writer.node("Add", trunk, mixed), name="norm2")
    layer_norm(writer, trunk, WIDTH, name="norm", whole_name="last_hidden_state")
    writer.output("last_hidden_state", "float", [*_STATES, WIDTH])


def translation_decoder(writer: GraphWriter) -> None:
    """Tokens, their cache and states to logits [batch, tokens, 4096] and the cache."""
    ids = writer.input("input_ids", "int64", ["batch_size", "decoder_sequence_length"])
    states = writer.input("encoder_hidden_states", "float", [*_STATES, WIDTH])
    attended = writer.input("encoder_attention_mask", "int64", _STATES)
    shape: list[int | str] = ["batch_size", HEADS, "past_decoder_sequence_length", HEAD_SIZE]
    own = [
        [writer.input(f"past_key_values.{layer}.decoder.{kind}", "float", shape) for kind in KINDS]
        for layer in range(LAYERS)
    ]
    with writer.scope("embeddings"):
        past = length_of(writer, own[0][0], 2)
        total = writer.node("Add", past, _length(writer, ids))
        trunk = _embedded(writer, ids, shape_vector(writer, past), shape_vector(writer, total))
        padding = writer.node("Cast", attended, to=_INT32)
    presents = [[f"present.{layer}.decoder.{kind}" for kind in KINDS] for layer in range(LAYERS)]
    for layer in range(LAYERS):
        with writer.scope(f"layer{layer}"):
            heard = [dense(writer, states, WIDTH, WIDTH, name=f"heard_{kind}") for kind in KINDS]
            trunk = listening_layer(
                writer, trunk, own[layer], [*heard, "", padding], presents[layer]
            )
    normed = layer_norm(writer, trunk, WIDTH, name="norm")
    weight = writer.drawn("head.weight", (WIDTH, VOCABULARY), Fraction(16, WIDTH))
    writer.node("MatMul", normed, weight, whole_name="logits")
    writer.output("logits", "float", ["batch_size", "decoder_sequence_length", VOCABULARY])
    shape[2] = "past_decoder_sequence_length + decoder_sequence_length"
    for name in (name for names in presents for name in names):
        writer.output(name, "float", shape)


def _length(writer: GraphWriter, ids: str) -> str:
    return length_of(writer, ids, 1)


def _embedded(writer: GraphWriter, ids: str, start: str, end: str) -> str:
    """The vectors of tokens and of their positions, from one to another."""
    words = embedding(writer, "word", VOCABULARY, WIDTH, variance=Fraction(1))
    rows = position_rows(writer, TEXT_POSITIONS, start, end)
    return writer.node("Add", writer.node("Gather", words, ids), rows, out="out")
