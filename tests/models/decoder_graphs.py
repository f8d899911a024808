"""Small decoders as tools export them: one layer, with a cache in one layout or another.

Each joins its cache with new keys and values, and gives logits that depend on all of them.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx
from onnx import TensorProto

from tests.models.graphs import FLOAT, INT64, Sizes, constant, model, node, value, weight

HEADS, KV, SIZE, VOCABULARY = 8, 4, 16, 100
WIDTH = HEADS * SIZE
MICROSOFT = {"": 17, "com.microsoft": 1}
PAST: Sizes = ("batch_size", KV, "past_sequence_length", "kv_cache_dim")
PRESENT: Sizes = ("batch_size", KV, "total_sequence_length", "kv_cache_dim")
KEY, VALUE = "past_key_values.0.key", "past_key_values.0.value"


def grouped(
    past: Sizes = PAST,
    present: Sizes = PRESENT,
    *,
    ids: Sizes = ("batch_size", "sequence_length"),
    mask: Sizes = ("batch_size", "total_sequence_length"),
    ids_kind: int = INT64,
    logits: Sizes = ("batch_size", "sequence_length", VOCABULARY),
    names: Sequence[str] = (KEY, VALUE, "present.0.key", "present.0.value"),
    rows: int = 0,
) -> onnx.ModelProto:
    """Grouped-query attention; with rotary embedding of so many positions where ``rows`` is set."""
    key, values, next_key, next_values = names
    tables = ["cos", "sin"] if rows else []
    rotary = {"do_rotary": 1} if rows else {}
    angles = np.outer(np.arange(rows), 0.5 ** np.arange(SIZE // 2))
    return model(
        [
            *_projected(),
            node("ReduceSum", ["attention_mask", "one"], ["lengths"], keepdims=1),
            node("Cast", ["lengths"], ["lengths32"], to=TensorProto.INT32),
            node("Sub", ["lengths32", "step"], ["seqlens"]),
            node("Shape", ["attention_mask"], ["mask_shape"]),
            node("Gather", ["mask_shape", "one_scalar"], ["total64"]),
            node("Cast", ["total64"], ["total"], to=TensorProto.INT32),
            node(
                "GroupQueryAttention",
                ["q", "k", "v", key, values, "seqlens", "total", *tables],
                ["attended", next_key, next_values],
                domain="com.microsoft",
                num_heads=HEADS,
                kv_num_heads=KV,
                **rotary,
            ),
            node("MatMul", ["attended", "wo"], ["logits"]),
        ],
        [
            value("input_ids", ids, ids_kind),
            value("attention_mask", mask, ids_kind),
            value(key, past),
            value(values, past),
        ],
        [value("logits", logits), value(next_key, present), value(next_values, present)],
        [
            *_weights(),
            constant("one", [1]),
            constant("one_scalar", 1),
            constant("step", 1, "int32"),
            *(
                [
                    constant("cos", np.cos(angles), "float32"),
                    constant("sin", np.sin(angles), "float32"),
                ]
                if rows
                else []
            ),
        ],
        opsets=MICROSOFT,
    )


def joined(
    past: Sizes,
    present: Sizes,
    *,
    along: int = 2,
    heads: int = HEADS,
    names: Sequence[str] = (KEY, VALUE, "present.0.key", "present.0.value"),
    kind: int = FLOAT,
    logits: Sizes = ("batch_size", "sequence_length", VOCABULARY),
    extra: Sequence[onnx.ValueInfoProto] = (),
) -> onnx.ModelProto:
    """A cache that new keys are appended to; what is attended to is the mean of all tokens."""
    key, values, next_key, next_values = names
    turned = {"perm": [0, 2, 1, 3]} if along == 2 else {"perm": [0, 1, 2, 3]}
    steps = []
    for new, before, after in (("k", key, next_key), ("v", values, next_values)):
        steps += [
            node("Reshape", [f"{new}_all", "by_head"], [f"{new}_heads"]),
            node("Transpose", [f"{new}_heads"], [f"{new}_placed"], **turned),
            node("Cast", [f"{new}_placed"], [f"{new}_typed"], to=kind),
            node("Concat", [before, f"{new}_typed"], [after], axis=along),
            node("Cast", [after], [f"{new}_real"], to=FLOAT),
            node("ReduceMean", [f"{new}_real"], [f"{new}_mean"], keepdims=0),
        ]
    return model(
        [
            node("Gather", ["emb", "input_ids"], ["x"]),
            *(node("MatMul", ["x", f"w{new}"], [f"{new}_all"]) for new in "kv"),
            *steps,
            node("Add", ["k_mean", "v_mean"], ["mean"]),
            node("Add", ["x", "mean"], ["y"]),
            node("MatMul", ["y", "wo"], ["logits"]),
        ],
        [
            value("input_ids", ("batch_size", "sequence_length"), INT64),
            value(key, past, kind),
            value(values, past, kind),
            *extra,
        ],
        [
            value("logits", logits),
            value(next_key, present, kind),
            value(next_values, present, kind),
        ],
        [
            weight("emb", VOCABULARY, WIDTH),
            weight("wk", WIDTH, heads * SIZE),
            weight("wv", WIDTH, heads * SIZE),
            weight("wo", WIDTH, VOCABULARY),
            constant("by_head", [0, 0, heads, SIZE]),
        ],
    )


def attended(op: str) -> onnx.ModelProto:
    """Attention by one operator that keeps the cache itself, whose sizes are all open.

    Args:
        op: ``MultiHeadAttention``, ``Attention`` (of ONNX), or ``packed`` (of ONNX Runtime: keys
            and values in one tensor).
    """
    names = [KEY, VALUE]
    shape: Sizes = ("b", "h", "p", "d")
    steps = _projected()
    if op == "packed":
        names, shape = ["past_0"], (2, "b", "h", "p", "d")
        steps = [node("Gather", ["emb", "input_ids"], ["x"])]
        reads = {"inputs": ["x", "wqkv", "bias", "", *names], "num_heads": HEADS}
        reads |= {"unidirectional": 1, "domain": "com.microsoft"}
        op = "Attention"
    elif op == "Attention":
        reads = {"inputs": ["q", "k", "v", "", *names], "is_causal": 1}
        reads |= {"q_num_heads": HEADS, "kv_num_heads": HEADS}
    else:
        reads = {"inputs": ["q", "k", "v", "", "", "", *names], "num_heads": HEADS}
        reads |= {"unidirectional": 1, "domain": "com.microsoft"}
    nexts = [
        name.replace("past_key_values", "present").replace("past", "present") for name in names
    ]
    return model(
        [
            *steps,
            node(op, reads.pop("inputs"), ["attended", *nexts], **reads),
            node("MatMul", ["attended", "wo"], ["logits"]),
        ],
        [value("input_ids", ("b", "s"), INT64), *(value(name, shape) for name in names)],
        [value("logits", ("b", "s", VOCABULARY)), *(value(name, None) for name in nexts)],
        [
            *(weight(name, WIDTH, WIDTH) for name in ("wq", "wk", "wv")),
            *(weight(name, *sizes) for name, *sizes in _OTHERS),
        ],
        opsets={"": 23, "com.microsoft": 1},
        ir_version=11,
    )


_OTHERS = (
    ("emb", VOCABULARY, WIDTH),
    ("wqkv", WIDTH, 3 * WIDTH),
    ("bias", 3 * WIDTH),
    ("wo", WIDTH, VOCABULARY),
)


def _projected() -> list[onnx.NodeProto]:
    return [
        node("Gather", ["emb", "input_ids"], ["x"]),
        *(node("MatMul", ["x", f"w{part}"], [part]) for part in "qkv"),
    ]


def _weights() -> list[onnx.TensorProto]:
    return [
        weight("emb", VOCABULARY, WIDTH),
        weight("wq", WIDTH, WIDTH),
        weight("wk", WIDTH, KV * SIZE),
        weight("wv", WIDTH, KV * SIZE),
        weight("wo", WIDTH, VOCABULARY),
    ]
