"""Language models as onnxruntime-genai's builder writes them.

Grouped-query attention with rotary embedding inside, RMS normalisation and a gated MLP.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from pytest_ortbench.models.builders.graph_writer import (
    CONTRIB_DOMAIN,
    GraphWriter,
    constants_graph,
)
from pytest_ortbench.models.builders.rotations import (
    frequencies,
    long_gain,
    rotation_tables,
    slowed,
)
from pytest_ortbench.models.builders.transformer import HEAD_SIZE
from pytest_ortbench.models.builders.weights import scale_for, scaled

#: Base of the frequencies of Llama 3.
_ROTARY_BASE = 500_000

#: Variance that the attention and the MLP of all layers add to that of the tokens, 1.
_ADDED = Fraction(1, 2)

#: Deviation of the logits: the likeliest tokens stand out, as those of trained models do.
_SHARPNESS = Fraction(16)

#: Logit of a token that is sure, more than the largest of the others.
_SURENESS = 28

#: Variance of queries and of keys, so the deviation of what softmax sees.
_ATTENTIVENESS = Fraction(2)

#: Names of the tables, which a LongRoPE model chooses.
_TABLES = ("cos_cache", "sin_cache")

_KINDS = ("key", "value")
_INT32 = 6


@dataclass(frozen=True, slots=True, kw_only=True)
class LlmSizes:
    """How large a language model is.

    Attributes:
        layers: Number of them.
        width: Of a token, a multiple of ``HEAD_SIZE``.
        key_heads: Heads of keys and values; each serves several heads of queries.
        inner: Width within the MLP.
        vocabulary: Number of tokens.
        context: The most tokens of a sequence.
        original: Tokens above which the rotations of LongRoPE are the slower ones; 0 without it.
    """

    layers: int
    width: int
    key_heads: int
    inner: int
    vocabulary: int
    context: int
    original: int = 0

    @property
    def heads(self) -> int:
        """Heads of queries."""
        return self.width // HEAD_SIZE


LLM_15M = LlmSizes(layers=6, width=384, key_heads=2, inner=1024, vocabulary=8192, context=8192)
LLM_125M = LlmSizes(layers=12, width=768, key_heads=4, inner=2048, vocabulary=32_000, context=8192)
LLM_1B = LlmSizes(layers=22, width=2048, key_heads=4, inner=5632, vocabulary=32_000, context=8192)
LLM_LONG = LlmSizes(
    layers=2,
    width=256,
    key_heads=4,
    inner=768,
    vocabulary=4096,
    context=4096,
    original=256,
)


def llm_15m(writer: GraphWriter) -> None:
    """6 layers of width 384; 15,733,632 parameters."""
    write_language_model(writer, LLM_15M)


def llm_125m(writer: GraphWriter) -> None:
    """12 layers of width 768; 124,668,672 parameters."""
    write_language_model(writer, LLM_125M)


def llm_1b(writer: GraphWriter) -> None:
    """22 layers of width 2048; 1,100,048,384 parameters."""
    write_language_model(writer, LLM_1B)


def llm_long(writer: GraphWriter) -> None:
    """2 layers of width 256 with LongRoPE; 3,802,368 parameters."""
    write_language_model(writer, LLM_LONG)


def write_language_model(
    writer: GraphWriter, sizes: LlmSizes, *, cached: bool = True, packed: bool = True
) -> None:
    """Write tokens, mask and cache to logits and the longer cache.

    Args:
        writer: Of the graph; its name and version choose the weights.
        sizes: Of the network.
        cached: Whether it takes and gives a cache; without one all tokens are read at once.
        packed: Whether one product makes queries, keys and values.
    """
    ids = writer.input("input_ids", "int64", ["batch_size", "sequence_length"])
    attended = writer.input(
        "attention_mask",
        "int64",
        ["batch_size", "total_sequence_length" if cached else "sequence_length"],
    )
    past = [
        _cache_inputs(writer, sizes, layer) if cached else ("", "") for layer in range(sizes.layers)
    ]
    with writer.scope("mask"):
        counts = writer.node("ReduceSum", attended, writer.integers(1), keepdims=0)
        last = writer.node("Cast", writer.node("Sub", counts, writer.integers(1)), to=_INT32)
        total = writer.node("Gather", writer.node("Shape", attended), writer.integer(1), axis=0)
        lengths = (last, writer.node("Cast", total, to=_INT32))
    tables = _rotations(writer, sizes, total)
    with writer.scope("embeddings"):
        vectors = scaled(
            writer.draws("word.weight", (sizes.vocabulary, sizes.width)), scale_for(Fraction(1))
        )
        trunk = writer.node("Gather", writer.parameter("word.weight", vectors), ids, out="out")
    added = ""
    for layer, cache in enumerate(past):
        with writer.scope(f"layer{layer}"):
            trunk, normed = _normed(writer, sizes, trunk, added, name="norm1")
            present = [f"present.{layer}.{kind}" if cached else "" for kind in _KINDS]
            projected = _queries_keys_values(writer, sizes, normed, packed=packed)
            shared = (*cache, *lengths, *tables)
            added = _attention(writer, sizes, (*projected, *shared), present)
            trunk, normed = _normed(writer, sizes, trunk, added, name="norm2")
            added = _gated(writer, sizes, normed)
    _, normed = _normed(writer, sizes, trunk, added, name="norm")
    with writer.scope("head"):
        weight = writer.parameter("weight", _head_weight(writer, sizes, vectors))
        writer.node("MatMul", normed, weight, whole_name="logits")
    writer.output("logits", "float", ["batch_size", "sequence_length", sizes.vocabulary])
    if cached:
        for layer in range(sizes.layers):
            for kind in _KINDS:
                writer.output(
                    f"present.{layer}.{kind}",
                    "float",
                    ["batch_size", sizes.key_heads, "total_sequence_length", HEAD_SIZE],
                )


def _head_weight(
    writer: GraphWriter, sizes: LlmSizes, vectors: NDArray[np.float32]
) -> NDArray[np.float32]:
    """Return weights [width, vocabulary] that make every other token a sure one.

    Trained models are sure of many tokens and waver between others, and both must be there for
    what is said of a precision: after an even token comes the odd one half a vocabulary on, and
    after an odd one what the draws say.
    """
    drawn = writer.draws("weight", (sizes.width, sizes.vocabulary))
    weight = scaled(drawn, scale_for(_SHARPNESS / sizes.width))
    after = np.arange(0, sizes.vocabulary, 2) + sizes.vocabulary // 2 + 1
    weight[:, after % sizes.vocabulary] += vectors[::2].T * np.float32(_SURENESS / sizes.width)
    return weight


def _cache_inputs(writer: GraphWriter, sizes: LlmSizes, layer: int) -> tuple[str, str]:
    key, value = (
        writer.input(
            f"past_key_values.{layer}.{kind}",
            "float",
            ["batch_size", sizes.key_heads, "past_sequence_length", HEAD_SIZE],
        )
        for kind in _KINDS
    )
    return key, value


def _rotations(writer: GraphWriter, sizes: LlmSizes, total: str) -> tuple[str, ...]:
    """Return the tables of cosines and of sines.

    Args:
        writer: Of the graph.
        sizes: Of the network.
        total: Length of the longest sequence, which chooses between the tables of LongRoPE.
    """
    turns = frequencies(_ROTARY_BASE, HEAD_SIZE)
    if not sizes.original:
        tables = zip(_TABLES, rotation_tables(turns, sizes.context), strict=True)
        return tuple(writer.table(name, values) for name, values in tables)
    pairs = len(turns)
    # From 1 up to twice the stretch, and hardly any for short texts, as those that were searched.
    slower = [
        1 + Fraction(2 * sizes.context * pair, sizes.original * pairs) for pair in range(pairs)
    ]
    hardly = [1 + Fraction(pair, 4 * pairs) for pair in range(pairs)]
    gain = long_gain(sizes.context, sizes.original)
    branches = {
        f"{branch}_branch": constants_graph(
            f"{name}_rotations",
            dict(zip((f"{table}_{name}" for table in _TABLES), values, strict=True)),
        )
        for branch, name, values in (
            (
                "then",
                "large",
                rotation_tables(slowed(turns, slower), sizes.context, gain=gain),
            ),
            (
                "else",
                "small",
                rotation_tables(slowed(turns, hardly), sizes.original, gain=gain),
            ),
        )
    }
    is_long = writer.node("Greater", total, writer.integer(sizes.original))
    return writer.nodes("If", is_long, names=(), whole_names=_TABLES, **branches)


def _normed(
    writer: GraphWriter, sizes: LlmSizes, trunk: str, added: str, *, name: str
) -> tuple[str, str]:
    """Return the trunk with what was added to it, and that normalised."""
    with writer.scope(name):
        weight = writer.near("weight", sizes.width, 1)
        if not added:
            normed = writer.node(
                "SimplifiedLayerNormalization",
                trunk,
                weight,
                out="out",
                axis=-1,
                epsilon=2.0**-17,
                stash_type=1,
            )
            return trunk, normed
        normed, _, _, total = writer.nodes(
            "SkipSimplifiedLayerNormalization",
            trunk,
            added,
            weight,
            names=("out", "", "", "sum/out"),
            domain=CONTRIB_DOMAIN,
            epsilon=2.0**-17,
        )
        return total, normed


def _queries_keys_values(
    writer: GraphWriter, sizes: LlmSizes, normed: str, *, packed: bool
) -> tuple[str, str, str]:
    """Return the three inputs of attention; if packed, all are in the first and two are empty."""
    inner = sizes.key_heads * HEAD_SIZE
    parts = (
        ("query", sizes.width, _ATTENTIVENESS),
        ("key", inner, _ATTENTIVENESS),
        ("value", inner, Fraction(1)),
    )
    if not packed:
        query, key, value = (
            _projected(writer, normed, sizes.width, outputs, name=name, variance=variance)
            for name, outputs, variance in parts
        )
        return query, key, value
    weights = []
    for name, outputs, variance in parts:
        with writer.scope(name):
            draws = writer.draws("weight", (sizes.width, outputs))
        weights.append(scaled(draws, scale_for(variance / sizes.width)))
    with writer.scope("packed"):
        weight = writer.parameter("weight", np.concatenate(weights, axis=1))
        return writer.node("MatMul", normed, weight), "", ""


def _attention(
    writer: GraphWriter, sizes: LlmSizes, inputs: tuple[str, ...], present: list[str]
) -> str:
    """Return what attention adds.

    Args:
        writer: Of the graph.
        sizes: Of the network.
        inputs: Of the operator.
        present: Names of the cache as it is afterwards; empty where nothing takes it.
    """
    mixed, _, _ = writer.nodes(
        "GroupQueryAttention",
        *inputs,
        names=("attention",),
        whole_names=present,
        domain=CONTRIB_DOMAIN,
        num_heads=sizes.heads,
        kv_num_heads=sizes.key_heads,
        scale=HEAD_SIZE**-0.5,
        local_window_size=-1,
        softcap=0.0,
        do_rotary=1,
        rotary_interleaved=0,
    )
    variance = _ADDED / (2 * sizes.layers)
    return _projected(writer, mixed, sizes.width, sizes.width, name="mix", variance=variance)


def _gated(writer: GraphWriter, sizes: LlmSizes, normed: str) -> str:
    """Return what the MLP adds: SiLU of one layer times another, and a third."""
    gate, up = (
        _projected(writer, normed, sizes.width, sizes.inner, name=name) for name in ("gate", "up")
    )
    active = writer.node("Mul", gate, writer.node("Sigmoid", gate))
    product = writer.node("Mul", active, up)
    # The mean of the square of SiLU of N(0, 1) is 0.356.
    variance = _ADDED / (2 * sizes.layers) / Fraction(356, 1000)
    return _projected(writer, product, sizes.inner, sizes.width, name="down", variance=variance)


def _projected(
    writer: GraphWriter,
    source: str,
    inputs: int,
    outputs: int,
    *,
    name: str,
    variance: Fraction = Fraction(1),
) -> str:
    """Add ``MatMul`` over the last axis; ``variance`` is that of the result for one of 1."""
    with writer.scope(name):
        weight = writer.drawn("weight", (inputs, outputs), variance / inputs)
        return writer.node("MatMul", source, weight)
