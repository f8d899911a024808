"""Language models as onnxruntime-genai's builder writes them.

Grouped-query attention with rotary embedding inside, RMS normalisation and a gated MLP.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from pytest_ortbench.models.builders.graph_writer import CONTRIB_DOMAIN, GraphWriter
from pytest_ortbench.models.builders.rotations import frequencies, rotation_tables
from pytest_ortbench.models.builders.transformer import HEAD_SIZE

#: Base of the frequencies of Llama 3.
_ROTARY_BASE = 500_000

#: Variance that the attention and the MLP of all layers add to that of the tokens, 1.
_ADDED = Fraction(1)

#: Deviation of the logits: the likeliest tokens stand out, as those of trained models do.
_SHARPNESS = Fraction(16)

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
    """

    layers: int
    width: int
    key_heads: int
    inner: int
    vocabulary: int
    context: int

    @property
    def heads(self) -> int:
        """Heads of queries."""
        return self.width // HEAD_SIZE


LLM_15M = LlmSizes(layers=6, width=384, key_heads=2, inner=1024, vocabulary=8192, context=8192)


def llm_15m(writer: GraphWriter) -> None:
    """6 layers of width 384; 15,733,632 parameters."""
    write_language_model(writer, LLM_15M)


def write_language_model(writer: GraphWriter, sizes: LlmSizes, *, cached: bool = True) -> None:
    """Write tokens, mask and cache to logits and the longer cache.

    Args:
        writer: Of the graph; its name and version choose the weights.
        sizes: Of the network.
        cached: Whether it takes and gives a cache; without one all tokens are read at once.
    """
    ids = writer.input("input_ids", "int64", ["batch_size", "sequence_length"])
    total = "total_sequence_length" if cached else "sequence_length"
    attended = writer.input("attention_mask", "int64", ["batch_size", total])
    past = [
        _cache_inputs(writer, sizes, layer) if cached else ("", "") for layer in range(sizes.layers)
    ]
    with writer.scope("mask"):
        lengths = _lengths(writer, attended)
    tables = [
        writer.table(name, values)
        for name, values in zip(
            ("cos_cache", "sin_cache"),
            rotation_tables(frequencies(_ROTARY_BASE, HEAD_SIZE), sizes.context),
            strict=True,
        )
    ]
    with writer.scope("embeddings"):
        words = writer.drawn("word.weight", (sizes.vocabulary, sizes.width), Fraction(1))
        trunk = writer.node("Gather", words, ids, out="out")
    added = ""
    for layer, cache in enumerate(past):
        with writer.scope(f"layer{layer}"):
            trunk, normed = _normed(writer, sizes, trunk, added, name="norm1")
            present = [f"present.{layer}.{kind}" if cached else "" for kind in _KINDS]
            added = _attention(writer, sizes, normed, (*cache, *lengths, *tables), present)
            trunk, normed = _normed(writer, sizes, trunk, added, name="norm2")
            added = _gated(writer, sizes, normed)
    _, normed = _normed(writer, sizes, trunk, added, name="norm")
    _projected(
        writer,
        normed,
        sizes.width,
        sizes.vocabulary,
        name="head",
        variance=_SHARPNESS,
        whole_name="logits",
    )
    writer.output("logits", "float", ["batch_size", "sequence_length", sizes.vocabulary])
    if cached:
        for layer in range(sizes.layers):
            for kind in _KINDS:
                writer.output(
                    f"present.{layer}.{kind}",
                    "float",
                    ["batch_size", sizes.key_heads, "total_sequence_length", HEAD_SIZE],
                )


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


def _lengths(writer: GraphWriter, attended: str) -> tuple[str, str]:
    """Return the index of each sequence's last token, and the length of the longest."""
    counts = writer.node("ReduceSum", attended, writer.integers(1), keepdims=0)
    last = writer.node("Cast", writer.node("Sub", counts, writer.integers(1)), to=_INT32)
    total = writer.node("Gather", writer.node("Shape", attended), writer.integer(1), axis=0)
    return last, writer.node("Cast", total, to=_INT32)


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


def _attention(
    writer: GraphWriter, sizes: LlmSizes, normed: str, shared: tuple[str, ...], present: list[str]
) -> str:
    """Return what attention adds.

    Args:
        writer: Of the graph.
        sizes: Of the network.
        normed: Its source.
        shared: Inputs of the operator after query, key and value.
        present: Names of the cache as it is afterwards; empty where nothing takes it.
    """
    inner = sizes.key_heads * HEAD_SIZE
    query, key, value = (
        _projected(writer, normed, sizes.width, outputs, name=name)
        for name, outputs in (("query", sizes.width), ("key", inner), ("value", inner))
    )
    mixed, _, _ = writer.nodes(
        "GroupQueryAttention",
        query,
        key,
        value,
        *shared,
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
    whole_name: str = "",
) -> str:
    """Add ``MatMul`` over the last axis; ``variance`` is that of the result for one of 1."""
    with writer.scope(name):
        weight = writer.drawn("weight", (inputs, outputs), variance / inputs)
        return writer.node("MatMul", source, weight, whole_name=whole_name)
