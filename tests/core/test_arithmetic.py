"""Counts from shapes alone, computed by hand."""

from __future__ import annotations

import onnx
import pytest

from pytest_ortbench.core.arithmetic import (
    CONTROL_FLOW,
    WITHOUT_PRODUCTS,
    ModelWork,
    NodeWork,
    einsum_products,
    element_count,
    is_counted,
    moved_bytes,
    multiply_accumulates,
    tensor_bytes,
)

X = (2, 64, 56, 56)
Y = (2, 128, 28, 28)


@pytest.mark.parametrize(
    ("op", "inputs", "outputs", "expected"),
    [
        ("Conv", [X, (128, 64, 3, 3)], [Y], 2 * 128 * 28 * 28 * 64 * 9),
        ("Conv", [X, (128, 16, 3, 3)], [Y], 2 * 128 * 28 * 28 * 16 * 9),  # 4 groups
        ("Conv", [(1, 8, 100), (4, 8, 5)], [(1, 4, 96)], 4 * 96 * 8 * 5),
        ("FusedConv", [X, (128, 64, 3, 3), (128,), Y], [Y], 2 * 128 * 28 * 28 * 64 * 9),
        (
            "QLinearConv",
            [X, (), (), (128, 64, 3, 3), (), (), (), ()],
            [Y],
            2 * 128 * 28 * 28 * 64 * 9,
        ),
        ("ConvInteger", [X, (128, 64, 1, 1)], [Y], 2 * 128 * 28 * 28 * 64),
        # Every one of 2·64·14·14 inputs meets 32 filters of 4·4 (one group).
        ("ConvTranspose", [(2, 64, 14, 14), (64, 32, 4, 4)], [(2, 32, 28, 28)], 25088 * 32 * 16),
        ("MatMul", [(4, 16), (16, 8)], [(4, 8)], 512),
        ("MatMul", [(3, 12, 5, 7), (3, 12, 7, 9)], [(3, 12, 5, 9)], 36 * 5 * 9 * 7),
        ("MatMul", [(3, 12, 5, 7), (7, 9)], [(3, 12, 5, 9)], 36 * 5 * 9 * 7),
        ("MatMul", [(7,), (7,)], [()], 7),
        ("MatMul", [(5, 7), (7,)], [(5,)], 35),
        ("MatMulNBits", [(1, 3, 256), (512, 8, 16), (4096,)], [(1, 3, 512)], 3 * 512 * 256),
        ("QLinearMatMul", [(4, 16), (), (), (16, 8), (), (), (), ()], [(4, 8)], 512),
        ("MatMulInteger", [(4, 16), (16, 8)], [(4, 8)], 512),
        ("DynamicQuantizeMatMul", [(4, 16), (16, 8), ()], [(4, 8)], 512),
        ("Gemm", [(4, 16), (16, 8), (8,)], [(4, 8)], 512),
        ("Gemm", [(16, 4), (16, 8), (8,)], [(4, 8)], 512),  # transposed A
        ("Gemm", [(4, 16)], [(4, 8)], 512),  # packed weights, which a profile does not list
        ("FusedMatMul", [(2, 16, 4), (2, 16, 8)], [(2, 4, 8)], 2 * 512),  # transposed A
        # 10 steps, 3 sequences; 4 gates of 32 with 16 inputs and 32 states, both directions.
        ("LSTM", [(10, 3, 16), (2, 128, 16), (2, 128, 32)], [], 30 * 2 * 128 * 48),
        ("GRU", [(10, 3, 16), (1, 96, 16), (1, 96, 32)], [], 30 * 96 * 48),
        ("RNN", [(10, 3, 16), (1, 32, 16), (1, 32, 32)], [], 30 * 32 * 48),
        # 8 heads, 5 queries, 7 keys, 64 wide: 5·7·64 products twice, a head.
        (
            "Attention",
            [(2, 8, 5, 64), (2, 8, 7, 64), (2, 8, 7, 64)],
            [(2, 8, 5, 64)],
            2 * 16 * 5 * 7 * 64,
        ),
        # Two key heads serve eight query heads.
        (
            "Attention",
            [(1, 8, 5, 64), (1, 2, 7, 64), (1, 2, 7, 32)],
            [(1, 8, 5, 32)],
            8 * 5 * 7 * 96,
        ),
        # Three new keys after a cache of nine.
        (
            "Attention",
            [(1, 8, 3, 64), (1, 8, 3, 64), (1, 8, 3, 64)],
            [(1, 8, 3, 64), (1, 8, 12, 64), (1, 8, 12, 64)],
            8 * 3 * 12 * 128,
        ),
        ("MultiHeadAttention", [(2, 5, 512), (2, 7, 512), (2, 7, 512)], [(2, 5, 512)], 71_680),
        ("GroupQueryAttention", [(2, 5, 768)], [(2, 5, 512), (2, 2, 7, 64)], 71_680),
        # com.microsoft: 512 -> 3·512 for 5 tokens, then the attention among them.
        (
            "Attention",
            [(1, 5, 512), (512, 1536), (1536,)],
            [(1, 5, 512)],
            5 * 512 * 1536 + 2 * 5 * 5 * 512,
        ),
        ("Relu", [X], [X], 0),
        ("BatchNormalization", [X, (64,), (64,), (64,), (64,)], [X], 0),
        ("QuantizeLinear", [X], [X], 0),
    ],
)
def test_multiply_accumulates(op, inputs, outputs, expected):
    assert multiply_accumulates(op, inputs, outputs) == expected


@pytest.mark.parametrize(
    ("op", "inputs", "outputs"),
    [
        ("TreeEnsembleClassifier", [(1, 32)], [(1,)]),
        ("OpenVINO-EP-subgraph_1", [X], [Y]),
        ("GroupQueryAttention", [(1, 1, 64)], [(1, 1, 64)]),
        ("DFT", [(1, 64, 2)], [(1, 64, 2)]),
        ("Conv", [X], [Y]),  # no weights listed
        ("Conv", [X, (128,)], [Y]),
        ("LSTM", [(10, 3, 16)], [(10, 2, 3, 32)]),
        ("MatMul", [], [(4, 8)]),
        ("MultiHeadAttention", [(2, 5, 8, 3, 64), (2, 5, 8)], [(2, 5, 512)]),
    ],
)
def test_what_is_not_known_is_not_zero(op, inputs, outputs):
    assert multiply_accumulates(op, inputs, outputs) is None


def test_every_operator_of_onnx_is_decided_upon():
    """Nothing up to operator set 26 was forgotten; what came later is uncounted by itself."""
    schemas = [s for s in onnx.defs.get_all_schemas_with_history() if s.domain == ""]
    named = {schema.name for schema in schemas if schema.since_version <= 26}
    left = {name for name in named if not is_counted(name)} - CONTROL_FLOW - {"Einsum"}
    assert left <= {
        *("CausalConvWithState", "DFT", "Det", "ImageDecoder", "LinearAttention"),
        *("MelWeightMatrix", "STFT"),
    }
    assert {"DFT", "Det", "STFT"} <= left
    assert not any(is_counted(name) for name in CONTROL_FLOW)
    assert not WITHOUT_PRODUCTS & {"Conv", "Gemm", "MatMul", "Einsum", "LSTM", "Attention"}


@pytest.mark.parametrize(
    ("equation", "inputs", "expected"),
    [
        ("ij,jk->ik", [(4, 16), (16, 8)], 512),
        ("bhqd,bhkd->bhqk", [(2, 8, 5, 64), (2, 8, 7, 64)], 16 * 5 * 7 * 64),
        ("b h q d , b h k d -> b h q k", [(2, 8, 5, 64), (2, 8, 7, 64)], 16 * 5 * 7 * 64),
        ("...qd,...kd->...qk", [(2, 8, 5, 64), (8, 7, 64)], 16 * 5 * 7 * 64),
        ("ij->ji", [(4, 16)], 0),
        ("i,j->ij", [(4,), (5,)], 20),
        ("ij,jk,kl->il", [(2, 3), (3, 4), (4, 5)], None),
        ("ij,jk->ik", [(2, 3, 4), (3, 4)], None),
    ],
)
def test_einsum(equation, inputs, expected):
    assert einsum_products(equation, inputs) == expected


@pytest.mark.parametrize(
    ("element", "shape", "expected"),
    [
        ("float", (2, 3), 24),
        ("float16", (2, 3), 12),
        ("int8", (), 1),
        ("int4", (3,), 2),
        ("int64", (0, 7), 0),
        ("string", (3,), None),
        ("", (3,), None),
    ],
)
def test_bytes_of_a_tensor(element, shape, expected):
    assert tensor_bytes(element, shape) == expected


@pytest.mark.parametrize(
    ("op", "inputs", "outputs", "expected"),
    [
        ("Add", [400, 4], [400], ([400, 4], 400)),
        ("Reshape", [400, 16], [400], ([0, 0], 0)),
        ("Gather", [4_000_000, 80], [400], ([400, 80], 400)),
        ("Slice", [40, 8], [400], ([40, 8], 400)),
        ("Shape", [400], [16], ([0], 16)),
        ("Split", [400], [200, 200], ([400], 400)),
    ],
)
def test_bytes_that_move(op, inputs, outputs, expected):
    assert moved_bytes(op, inputs, outputs) == expected


def node(macs: int | None, activation_bytes: int | None = 8) -> NodeWork:
    return NodeWork(name="n", op="Op", macs=macs, activation_bytes=activation_bytes)


def test_totals():
    whole = ModelWork(nodes=(node(5), node(0, 4)))
    assert (whole.macs, whole.activation_bytes, whole.complete) == (5, 12, True)
    part = ModelWork(nodes=(node(5), node(None, None)), uncounted={"Op": 1})
    assert (part.macs, part.activation_bytes, part.complete) == (5, 8, False)
    nothing = ModelWork(nodes=(node(0), node(None)), uncounted={"Op": 1})
    assert (nothing.macs, nothing.complete) == (None, False)
    assert ModelWork(nodes=(node(0),)).macs == 0
    assert (ModelWork().macs, ModelWork().activation_bytes) == (None, None)


@pytest.mark.parametrize(
    ("sizes", "count"),
    [
        ((), 1),
        ((3, 4), 12),
        ((0, 2**62), 0),
        ((2**62, 2**62, 0), 0),
        ((2**32, 2**31 - 1), 2**63 - 2**32),
        ((2**32, 2**31), None),
        ((2**62,) * 300, None),
        ((-1, 4), None),
        ((-2, -2), None),
        ((-1, 0), None),
    ],
)
def test_elements_are_counted_up_to_what_a_document_can_hold(sizes, count):
    assert element_count(sizes) == count


@pytest.mark.parametrize("op", ["MatMul", "Conv", "Gemm", "LSTM", "Attention"])
@pytest.mark.parametrize("size", [2**40, -4])
def test_products_of_sizes_beyond_counting_are_unknown(op, size):
    shapes = [(size, size, size, size)] * 3
    assert multiply_accumulates(op, shapes, shapes) is None


def test_sums_beyond_counting_are_unknown():
    node = NodeWork(name="n", op="MatMul", macs=2**62, activation_bytes=2**62)
    work = ModelWork(nodes=(node, node, node))
    assert (work.macs, work.activation_bytes) == (None, None)
    assert einsum_products("ij,jk->ik", [(2**40, 2**40), (2**40, 2**40)]) is None
    assert tensor_bytes("float", (2**62,)) is None
