"""Layers of transformers, as the usual exporters write them."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

from pytest_ortbench.models.builders.graph_writer import GraphWriter
from pytest_ortbench.models.builders.weights import moment, scale_for, scaled

#: Added to the attention scores of hidden positions; within float16.
HIDDEN_SCORE = -10000.0

#: Mean of GELU of N(0, 1) in units of 1/1024: 1/(2√π).
_GELU_MEAN = 289

#: Size of one attention head in every network here; its square root is exact.
HEAD_SIZE = 64


def dense(
    writer: GraphWriter,
    source: str,
    inputs: int,
    outputs: int,
    *,
    name: str,
    variance: Fraction = Fraction(1),
    mean: int = 0,
    whole_name: str = "",
) -> str:
    """Add ``MatMul`` and ``Add`` over the last axis.

    Args:
        writer: Of the graph.
        source: Tensor [..., inputs].
        inputs: Length of its last axis.
        outputs: Length of the result's last axis.
        name: Of the layer within the scope.
        variance: Of the result for a source of mean 0 and variance 1.
        mean: Of the source, in units of 1/1024; the bias takes what it adds to the result away.
        whole_name: Of the result, where it is a graph output.
    """
    with writer.scope(name):
        draws = writer.draws("weight", (inputs, outputs))
        scale = scale_for(variance / inputs)
        product = writer.node("MatMul", source, writer.parameter("weight", scaled(draws, scale)))
        shift = moment(draws.sum(axis=0, dtype=np.int64) * -mean, scale) if mean else None
        bias = writer.near("bias", outputs, 0, shift=shift)
        return writer.node("Add", product, bias, whole_name=whole_name)


def layer_norm(
    writer: GraphWriter, source: str, width: int, *, name: str, whole_name: str = ""
) -> str:
    """Add ``LayerNormalization`` over the last axis, of length ``width``.

    ``whole_name`` is that of the result, where it is a graph output.
    """
    with writer.scope(name):
        return writer.node(
            "LayerNormalization",
            source,
            writer.near("weight", width, 1),
            writer.near("bias", width, 0),
            axis=-1,
            epsilon=2.0**-16,
            out="out",
            whole_name=whole_name,
        )


def feed_forward(
    writer: GraphWriter, source: str, width: int, inner: int, *, variance: Fraction
) -> str:
    """Two dense layers with GELU between them.

    Args:
        writer: Of the graph.
        source: Tensor [..., width].
        width: Length of the last axis, of the result too.
        inner: Length between the layers.
        variance: Of the second layer for an input of variance 1.
    """
    active = gelu(writer, dense(writer, source, width, inner, name="inner"))
    return dense(writer, active, inner, width, name="outer", variance=variance, mean=_GELU_MEAN)


def gelu(writer: GraphWriter, hidden: str) -> str:
    """The exact GELU, x (1 + erf(x/√2)) / 2."""
    error = writer.node("Erf", writer.node("Div", hidden, writer.number(math.sqrt(2.0))))
    gate = writer.node("Add", error, writer.number(1.0))
    product = writer.node("Mul", hidden, gate)
    return writer.node("Mul", product, writer.number(0.5))


def heads(writer: GraphWriter, source: str, count: int) -> str:
    """[batch, length, width] to [batch, heads, length, HEAD_SIZE]."""
    split = writer.node("Reshape", source, writer.integers(0, 0, count, HEAD_SIZE))
    return writer.node("Transpose", split, perm=[0, 2, 1, 3])


def attention(writer: GraphWriter, query: str, key: str, value: str, *, mask: str = "") -> str:
    """Scaled dot-product attention over heads; gives [batch, length, width].

    Args:
        writer: Of the graph.
        query: Tensor [batch, heads, length, HEAD_SIZE].
        key: Likewise, over the positions that are looked at.
        value: Likewise.
        mask: Added to the scores, which are [batch, heads, length, positions].
    """
    turned = writer.node("Transpose", key, perm=[0, 1, 3, 2])
    scores = writer.node("MatMul", query, turned)
    scores = writer.node("Div", scores, writer.number(math.sqrt(HEAD_SIZE)))
    if mask:
        scores = writer.node("Add", scores, mask)
    mixed = writer.node("MatMul", writer.node("Softmax", scores, axis=-1), value)
    together = writer.node("Transpose", mixed, perm=[0, 2, 1, 3])
    return writer.node("Reshape", together, writer.integers(0, 0, -1))


def self_attention(
    writer: GraphWriter,
    source: str,
    width: int,
    *,
    sharpness: Fraction,
    variance: Fraction,
    mask: str = "",
) -> str:
    """Query, key and value layers, attention and the layer after it.

    Args:
        writer: Of the graph.
        source: Tensor [batch, length, width].
        width: A multiple of HEAD_SIZE.
        sharpness: Deviation of the attention scores.
        variance: Of the last layer for an input of variance 1.
        mask: As for ``attention``.
    """
    count = width // HEAD_SIZE
    query, key, value = (
        heads(writer, dense(writer, source, width, width, name=name, variance=gain), count)
        for name, gain in (("query", sharpness), ("key", sharpness), ("value", Fraction(1)))
    )
    mixed = attention(writer, query, key, value, mask=mask)
    return dense(writer, mixed, width, width, name="mix", variance=variance)


def embedding(
    writer: GraphWriter, name: str, entries: int, width: int, *, variance: Fraction
) -> str:
    """A table [entries, width] of drawn vectors."""
    return writer.drawn(f"{name}.weight", (entries, width), variance)


def length_of(writer: GraphWriter, source: str, axis: int) -> str:
    """The size of one axis, as int64 of rank 0."""
    return writer.node("Gather", writer.node("Shape", source), writer.integer(axis))


def shape_vector(writer: GraphWriter, *sizes: str) -> str:
    """Sizes of rank 0 as one vector of int64."""
    axis = writer.integers(0)
    return writer.node("Concat", *(writer.node("Unsqueeze", size, axis) for size in sizes), axis=0)
