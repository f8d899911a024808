"""A network that listens and one that writes, as onnxruntime-genai's builder writes Whisper.

The first one reads the sound once, and makes keys and values for each layer of the second one,
which has a cache of its own beside them.
"""

from __future__ import annotations

from fractions import Fraction

from pytest_ortbench.models.builders.graph_writer import CONTRIB_DOMAIN, GraphWriter
from pytest_ortbench.models.builders.transformer import (
    HEAD_SIZE,
    dense,
    embedding,
    feed_forward,
    gelu,
    layer_norm,
    length_of,
    self_attention,
    shape_vector,
)

WIDTH = 256
HEADS = WIDTH // HEAD_SIZE
LAYERS = 2
_BANDS = 80
#: Positions of 30 s of sound, two frames of 10 ms each.
_SOUND_POSITIONS = 1500
TEXT_POSITIONS = 448
VOCABULARY = 4096

SHARPNESS = Fraction(2)
LAYER_VARIANCE = Fraction(1, 4)
KINDS = ("key", "value")

#: The mean of the square of GELU of N(0, 1).
_GELU_SQUARE = Fraction(425, 1000)


def speech_encoder(writer: GraphWriter) -> None:
    """Sound [batch, 80, frames] to states, keys and values [batch, 4, frames / 2, 64]."""
    sound = writer.input("audio_features", "float", ["batch_size", _BANDS, "num_frames"])
    hidden = gelu(writer, _convolution(writer, sound, _BANDS, name="conv1", stride=1))
    hidden = gelu(writer, _convolution(writer, hidden, WIDTH, name="conv2", stride=2))
    hidden = writer.node("Transpose", hidden, perm=[0, 2, 1])
    with writer.scope("positions"):
        end = shape_vector(writer, length_of(writer, hidden, 1))
        places = position_rows(writer, _SOUND_POSITIONS, writer.integers(0), end)
        trunk = writer.node("Add", hidden, places, out="out")
    for layer in range(LAYERS):
        with writer.scope(f"layer{layer}"):
            mixed = self_attention(
                writer,
                layer_norm(writer, trunk, WIDTH, name="norm1"),
                WIDTH,
                sharpness=SHARPNESS,
                variance=LAYER_VARIANCE,
            )
            trunk = fed_layers(writer, writer.node("Add", trunk, mixed), name="norm2")
    states = layer_norm(writer, trunk, WIDTH, name="norm", whole_name="hidden_states")
    writer.output(states, "float", ["batch_size", "num_frames / 2", WIDTH])
    for layer in range(LAYERS):
        with writer.scope(f"cross{layer}"):
            for kind in KINDS:
                projected = dense(writer, states, WIDTH, WIDTH, name=kind)
                split = writer.node("Reshape", projected, writer.integers(0, 0, HEADS, HEAD_SIZE))
                name = f"present_{kind}_cross_{layer}"
                writer.node("Transpose", split, perm=[0, 2, 1, 3], whole_name=name)
                writer.output(name, "float", ["batch_size", HEADS, "num_frames / 2", HEAD_SIZE])


def speech_decoder(writer: GraphWriter) -> None:
    """Tokens, their cache and what was heard to logits [batch, tokens, 4096] and the cache."""
    ids = writer.input("input_ids", "int32", ["batch_size", "sequence_length"])
    own, heard = (
        [
            [
                writer.input(
                    f"past_{kind}_{role}_{layer}",
                    "float",
                    ["batch_size", HEADS, length, HEAD_SIZE],
                )
                for kind in KINDS
            ]
            for layer in range(LAYERS)
        ]
        for role, length in (
            ("self", "past_sequence_length"),
            ("cross", "encoder_sequence_length"),
        )
    )
    with writer.scope("embeddings"):
        past = length_of(writer, own[0][0], 2)
        total = writer.node("Add", past, length_of(writer, ids, 1))
        words = embedding(writer, "word", VOCABULARY, WIDTH, variance=Fraction(1))
        places = position_rows(
            writer, TEXT_POSITIONS, shape_vector(writer, past), shape_vector(writer, total)
        )
        trunk = writer.node("Add", writer.node("Gather", words, ids), places, out="out")
    for layer in range(LAYERS):
        with writer.scope(f"layer{layer}"):
            presents = [f"present_{kind}_self_{layer}" for kind in KINDS]
            trunk = listening_layer(writer, trunk, own[layer], heard[layer], presents)
    normed = layer_norm(writer, trunk, WIDTH, name="norm")
    weight = writer.drawn("head.weight", (WIDTH, VOCABULARY), Fraction(16, WIDTH))
    writer.node("MatMul", normed, weight, whole_name="logits")
    writer.output("logits", "float", ["batch_size", "sequence_length", VOCABULARY])
    for layer in range(LAYERS):
        for kind in KINDS:
            writer.output(
                f"present_{kind}_self_{layer}",
                "float",
                ["batch_size", HEADS, "total_sequence_length", HEAD_SIZE],
            )


def _convolution(writer: GraphWriter, source: str, inputs: int, *, name: str, stride: int) -> str:
    """Add a convolution over three frames; the second one reads what GELU left."""
    square = Fraction(1) if stride == 1 else _GELU_SQUARE
    with writer.scope(name):
        weight = writer.drawn("weight", (WIDTH, inputs, 3), 1 / (3 * inputs * square))
        bias = writer.near("bias", WIDTH, 0)
        return writer.node(
            "Conv", source, weight, bias, kernel_shape=[3], pads=[1, 1], strides=[stride]
        )


def position_rows(writer: GraphWriter, count: int, start: str, end: str) -> str:
    """The vectors of the positions from one to another."""
    places = embedding(writer, "position", count, WIDTH, variance=Fraction(1, 4))
    return writer.node("Slice", places, start, end, writer.integers(0))


def fed_layers(writer: GraphWriter, trunk: str, *, name: str) -> str:
    """The trunk and what two layers add to it."""
    normed = layer_norm(writer, trunk, WIDTH, name=name)
    fed = feed_forward(writer, normed, WIDTH, 4 * WIDTH, variance=LAYER_VARIANCE)
    return writer.node("Add", trunk, fed, out="out")


def listening_layer(
    writer: GraphWriter, trunk: str, own: list[str], heard: list[str], presents: list[str]
) -> str:
    """A layer that looks at the text so far, then at what was heard.

    Args:
        writer: Of the graph.
        trunk: What it reads, ``[batch, tokens, width]``.
        own: Keys and values of its text so far.
        heard: Those of what was heard, and what ``MultiHeadAttention`` takes behind them.
        presents: Names of the outputs that go on with ``own``.
    """
    with writer.scope("own"):
        normed = layer_norm(writer, trunk, WIDTH, name="norm")
        query, key, value = (
            dense(writer, normed, WIDTH, WIDTH, name=name, variance=variance)
            for name, variance in (
                ("query", SHARPNESS),
                ("key", SHARPNESS),
                ("value", Fraction(1)),
            )
        )
        # Between the values and the cache: no bias, no mask of keys, nothing added to the scores.
        mixed, _, _ = writer.nodes(
            "MultiHeadAttention",
            *(query, key, value, "", "", "", *own),
            names=("attention",),
            whole_names=presents,
            domain=CONTRIB_DOMAIN,
            num_heads=HEADS,
            unidirectional=1,
        )
        mixed = dense(writer, mixed, WIDTH, WIDTH, name="mix", variance=LAYER_VARIANCE)
        trunk = writer.node("Add", trunk, mixed, out="out")
    with writer.scope("cross"):
        normed = layer_norm(writer, trunk, WIDTH, name="norm")
        query = dense(writer, normed, WIDTH, WIDTH, name="query", variance=SHARPNESS**2)
        mixed = writer.node(
            "MultiHeadAttention", query, *heard, domain=CONTRIB_DOMAIN, num_heads=HEADS
        )
        mixed = dense(writer, mixed, WIDTH, WIDTH, name="mix", variance=LAYER_VARIANCE)
        trunk = writer.node("Add", trunk, mixed, out="out")
    return fed_layers(writer, trunk, name="norm")
