"""Small decoders with rotary positions and grouped-query attention, right and misleading ones."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto as Types
from onnx import helper, numpy_helper

LAYERS, HEADS, HEADS_OF_CACHE, SIZE, VOCABULARY, CONTEXT = 2, 4, 2, 16, 97, 256
WIDTH = HEADS * SIZE

#: What a file may expect beside the convention, once there is a cache.
RIGHT = "as the convention says"
COUNTS_FROM_ONE = "positions are one more"
LONGER_MASK = "the mask has one more column, of padding on the left"


def tiny_decoder(
    path: Path,
    *,
    expects: str = RIGHT,
    half: bool = False,
    bits: int = 0,
    damage: float = 1.0,
    seed: int = 0,
    scale: float = 1.0,
) -> Path:
    """Write a decoder.

    Args:
        path: The file to make.
        expects: What it expects of what it is fed.
        half: Whether it computes in float16.
        bits: Bits of its weights in blocks of 32; 0 for plain ones.
        damage: What the scales of such weights are multiplied by, in the first layer.
        seed: Of its weights.
        scale: Of its logits: the larger, the surer it is of its tokens.
    """
    kind, draw = (Types.FLOAT16 if half else Types.FLOAT), np.random.default_rng(seed)
    floats = np.float16 if half else np.float32
    weights: list[onnx.TensorProto] = []
    nodes: list[onnx.NodeProto] = []

    def constant(name: str, values: NDArray[np.generic]) -> str:
        weights.append(numpy_helper.from_array(values, name))
        return name

    def product(name: str, value: str, rows: int, columns: int, out: str) -> str:
        matrix = draw.standard_normal((rows, columns)) / np.sqrt(rows)
        if name == "head":
            matrix *= scale
        if not bits:
            constant(name, matrix.astype(floats))
            nodes.append(helper.make_node("MatMul", [value, name], [out]))
            return out
        packed, scales = _packed(matrix)
        if name.startswith("0."):
            scales = scales * damage
        constant(f"{name}.q", packed)
        constant(f"{name}.s", scales.astype(floats))
        sizes = {"K": rows, "N": columns, "bits": 4, "block_size": 32}
        inputs = [value, f"{name}.q", f"{name}.s"]
        nodes.append(
            helper.make_node("MatMulNBits", inputs, [out], domain="com.microsoft", **sizes)
        )
        return out

    def node(op: str, inputs: list[str], out: str, **attributes: object) -> str:
        nodes.append(helper.make_node(op, inputs, [out], **attributes))
        return out

    constant("one", np.array(1, np.int64))
    constant("one_list", np.array([1], np.int64))
    constant("two", np.array(2, np.int64))
    constant("embedding", draw.standard_normal((VOCABULARY, WIDTH)).astype(floats))
    constant("gain", np.ones(WIDTH, floats))
    angles = np.outer(np.arange(CONTEXT), 10000.0 ** (-np.arange(SIZE // 2) / (SIZE // 2)))
    constant("cosines", np.cos(angles).astype(floats))
    constant("sines", np.sin(angles).astype(floats))

    node("Gather", [node("Shape", ["past.0.key"], "past_shape"), "two"], "past")
    node("Cast", [node("Min", ["past", "one"], "cached")], "cached_flag", to=Types.BOOL)
    node("ReduceSum", ["attention_mask", "one_list"], "ones", keepdims=1)
    last = node("Sub", ["ones", "one"], "last")
    if expects == LONGER_MASK:
        last = node("Sub", [last, "cached"], "last_padded")
    node("Cast", [last], "lengths", to=Types.INT32)
    node("Gather", [node("Shape", ["attention_mask"], "mask_shape"), "one"], "total_long")
    node("Cast", ["total_long"], "total", to=Types.INT32)
    positions = "position_ids"
    if expects == COUNTS_FROM_ONE:
        positions = node("Sub", [positions, "cached"], "counted_positions")
    trunk = node("Gather", ["embedding", "input_ids"], "x")
    for layer in range(LAYERS):
        normed = _normed(nodes, trunk, f"{layer}.norm")
        parts = [
            product(f"{layer}.{name}", normed, WIDTH, columns, f"{layer}.{name}.out")
            for name, columns in (
                ("q", WIDTH),
                ("k", HEADS_OF_CACHE * SIZE),
                ("v", HEADS_OF_CACHE * SIZE),
            )
        ]
        for index, heads in ((0, HEADS), (1, HEADS_OF_CACHE)):
            parts[index] = node(
                "RotaryEmbedding",
                [parts[index], positions, "cosines", "sines"],
                f"{layer}.rotated.{index}",
                domain="com.microsoft",
                num_heads=heads,
                rotary_embedding_dim=0,
            )
        cache = [f"past.{layer}.{part}" for part in ("key", "value")]
        nodes.append(
            helper.make_node(
                "GroupQueryAttention",
                [*parts, *cache, "lengths", "total"],
                [f"{layer}.mixed", f"present.{layer}.key", f"present.{layer}.value"],
                domain="com.microsoft",
                num_heads=HEADS,
                kv_num_heads=HEADS_OF_CACHE,
            )
        )
        mixed = product(f"{layer}.o", f"{layer}.mixed", WIDTH, WIDTH, f"{layer}.o.out")
        trunk = node("Add", [trunk, mixed], f"{layer}.attended")
        normed = _normed(nodes, trunk, f"{layer}.norm2")
        wide = product(f"{layer}.up", normed, WIDTH, 2 * WIDTH, f"{layer}.up.out")
        wide = node("Relu", [wide], f"{layer}.relu")
        fed = product(f"{layer}.down", wide, 2 * WIDTH, WIDTH, f"{layer}.down.out")
        trunk = node("Add", [trunk, fed], f"{layer}.out")
    product("head", _normed(nodes, trunk, "norm"), WIDTH, VOCABULARY, "logits")

    value = helper.make_tensor_value_info
    whole = [
        f"{role}.{layer}.{part}"
        for role in ("past", "present")
        for layer in range(LAYERS)
        for part in ("key", "value")
    ]
    graph = helper.make_graph(
        nodes,
        "decoder",
        [
            value("input_ids", Types.INT64, ["batch", "tokens"]),
            value("attention_mask", Types.INT64, ["batch", "total"]),
            value("position_ids", Types.INT64, ["batch", "tokens"]),
            *(
                value(n, kind, ["batch", HEADS_OF_CACHE, "past", SIZE])
                for n in whole
                if n.startswith("past")
            ),
        ],
        [
            value("logits", kind, ["batch", "tokens", VOCABULARY]),
            *(
                value(n, kind, ["batch", HEADS_OF_CACHE, "total", SIZE])
                for n in whole
                if n.startswith("present")
            ),
        ],
        weights,
    )
    imports = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
    onnx.save(helper.make_model(graph, opset_imports=imports, ir_version=8), str(path))
    return path


def _normed(nodes: list[onnx.NodeProto], value: str, out: str) -> str:
    nodes.append(
        helper.make_node("SimplifiedLayerNormalization", [value, "gain"], [out], epsilon=1e-6)
    )
    return out


def _packed(matrix: NDArray[np.float64]) -> tuple[NDArray[np.uint8], NDArray[np.float64]]:
    """Return 4-bit weights as MatMulNBits stores them, ``[columns, blocks, 16]``, and scales."""
    columns = matrix.T.reshape(matrix.shape[1], -1, 32)
    scales = np.abs(columns).max(axis=2) / 7
    steps = np.clip(np.round(columns / scales[..., None]) + 8, 0, 15).astype(np.uint8)
    return steps[..., ::2] | (steps[..., 1::2] << 4), scales.reshape(-1)
