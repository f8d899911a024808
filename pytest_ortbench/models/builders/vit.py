"""ViT-B/16 (A. Dosovitskiy et al., ICLR 2021) at 224 x 224."""

from __future__ import annotations

from fractions import Fraction

from pytest_ortbench.models.builders.graph_writer import GraphWriter
from pytest_ortbench.models.builders.transformer import (
    feed_forward,
    layer_norm,
    length_of,
    self_attention,
    shape_vector,
)

_WIDTH = 768
_LAYERS = 12
_PATCH = 16
_PATCHES = (224 // _PATCH) ** 2
_CLASSES = 1000


def vit_b16(writer: GraphWriter) -> None:
    """Images [batch, 3, 224, 224] to logits [batch, 1000]; 86,567,656 parameters."""
    image = writer.input("image", "float", ["batch", 3, 224, 224])
    with writer.scope("patches"):
        trunk = _embedded(writer, image)
    for layer in range(_LAYERS):
        with writer.scope(f"layer{layer}"):
            trunk = _block(writer, trunk)
    normed = layer_norm(writer, trunk, _WIDTH, name="norm")
    token = writer.node("Gather", normed, writer.integer(0), axis=1)
    with writer.scope("classifier"):
        weight = writer.drawn("weight", (_WIDTH, _CLASSES), Fraction(1, _WIDTH))
        bias = writer.near("bias", _CLASSES, 0)
        writer.node("Gemm", token, weight, bias, whole_name="logits")
    writer.output("logits", "float", ["batch", _CLASSES])


def _embedded(writer: GraphWriter, image: str) -> str:
    """Patch vectors after a class token, plus positions: [batch, 197, 768]."""
    weight = writer.drawn("weight", (_WIDTH, 3, _PATCH, _PATCH), Fraction(1, 3 * _PATCH * _PATCH))
    convolved = writer.node(
        "Conv",
        image,
        weight,
        writer.near("bias", _WIDTH, 0),
        kernel_shape=[_PATCH, _PATCH],
        strides=[_PATCH, _PATCH],
    )
    flat = writer.node("Reshape", convolved, writer.integers(0, _WIDTH, -1))
    patches = writer.node("Transpose", flat, perm=[0, 2, 1])
    token = writer.drawn("class_token", (1, 1, _WIDTH), Fraction(1, 64))
    shape = shape_vector(
        writer, length_of(writer, image, 0), writer.integer(1), writer.integer(_WIDTH)
    )
    tokens = writer.node("Concat", writer.node("Expand", token, shape), patches, axis=1)
    places = writer.drawn("position", (1, _PATCHES + 1, _WIDTH), Fraction(1, 64))
    return writer.node("Add", tokens, places, out="out")


def _block(writer: GraphWriter, trunk: str) -> str:
    normed = layer_norm(writer, trunk, _WIDTH, name="norm1")
    # Sharp scores: an even mean over 196 patches of noise would be the same for every image.
    mixed = self_attention(writer, normed, _WIDTH, sharpness=Fraction(2), variance=Fraction(1))
    trunk = writer.node("Add", trunk, mixed, out="attention/out")
    normed = layer_norm(writer, trunk, _WIDTH, name="norm2")
    fed = feed_forward(writer, normed, _WIDTH, 4 * _WIDTH, variance=Fraction(1))
    return writer.node("Add", trunk, fed, out="out")
