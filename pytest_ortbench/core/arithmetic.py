"""Multiply-accumulates and bytes of one node, told from its operator and the shapes it sees.

Only what is made of products counts: convolutions, matrix products, recurrent cells, attention and
their quantised and fused kin, as the field does (a ResNet-50 has 4.1 G). Elementwise operators,
normalisation, pooling and moves count none. What is in no list is *uncounted*, never 0.

Shapes suffice: a convolution multiplies every output element with one filter, whatever its groups,
strides and dilations are.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from pytest_ortbench.core.element_types import ELEMENT_BITS

Shape = tuple[int, ...]

#: No count is larger: documents and those who read them hold integers of 64 bits.
LARGEST_COUNT = 2**63 - 1

_NO_PRODUCTS = (
    # elementwise
    "Abs Acos Acosh Add And Asin Asinh Atan Atanh BitCast BitShift BitwiseAnd BitwiseNot "
    "BitwiseOr BitwiseXor Cast CastLike Ceil Celu Clip Cos Cosh Div Dropout Elu Equal Erf Exp "
    "Floor Gelu Greater GreaterOrEqual HardSigmoid HardSwish Identity IsInf IsNaN LeakyRelu "
    "Less LessOrEqual Log Max Mean Min Mish Mod Mul Neg Not Or PRelu Pow Reciprocal Relu Round "
    "Selu Shrink Sigmoid Sign Sin Sinh Softplus Softsign Sqrt Sub Sum SwiGLU Swish Tan Tanh "
    "ThresholdedRelu Where Xor "
    # reductions, normalisation, pooling
    "ArgMax ArgMin AveragePool BatchNormalization CumProd CumSum GlobalAveragePool "
    "GlobalLpPool GlobalMaxPool GroupNormalization Hardmax InstanceNormalization LRN "
    "LayerNormalization LogSoftmax LpNormalization LpPool MaxPool MaxRoiPool MaxUnpool "
    "MeanVarianceNormalization NegativeLogLikelihoodLoss RMSNormalization ReduceL1 ReduceL2 "
    "ReduceLogSum ReduceLogSumExp ReduceMax ReduceMean ReduceMin ReduceProd ReduceSum "
    "ReduceSumSquare RoiAlign Softmax SoftmaxCrossEntropyLoss "
    # moves, shapes, constants, sampling
    "AffineGrid BlackmanWindow CenterCropPad Col2Im Compress Concat ConcatFromSequence "
    "Constant ConstantOfShape DepthToSpace Expand EyeLike Flatten Gather GatherElements "
    "GatherND GridSample HammingWindow HannWindow NonMaxSuppression NonZero OneHot Optional "
    "OptionalGetElement OptionalHasElement Pad Range Reshape Resize ReverseSequence "
    "RotaryEmbedding Scatter ScatterElements ScatterND SequenceAt SequenceConstruct "
    "SequenceEmpty SequenceErase SequenceInsert SequenceLength Shape Size Slice SpaceToDepth "
    "Split SplitToSequence Squeeze TensorScatter Tile TopK Transpose Trilu Unique Unsqueeze "
    "Upsample "
    # random numbers, text
    "Bernoulli Multinomial RandomNormal RandomNormalLike RandomUniform RandomUniformLike "
    "RegexFullMatch StringConcat StringNormalizer StringSplit TfIdfVectorizer "
    # quantisation, and com.microsoft's kin of the above
    "DequantizeLinear DynamicQuantizeLinear QuantizeLinear BiasAdd BiasDropout BiasGelu "
    "BiasSoftmax BiasSplitGelu BitmaskBiasDropout BitmaskDropout ExpandDims FastGelu GroupNorm "
    "IsAllFinite MulInteger NhwcMaxPool QLinearAdd QLinearAveragePool QLinearConcat "
    "QLinearGlobalAveragePool QLinearLeakyRelu QLinearMul QLinearReduceMean QLinearSigmoid "
    "QLinearSoftmax QLinearWhere QuickGelu ReduceSumInteger ScaledSiLU SkipGroupNorm "
    "SkipLayerNormalization SkipSimplifiedLayerNormalization SimplifiedLayerNormalization "
    # what ONNX Runtime puts in
    "MemcpyFromHost MemcpyToHost ReorderInput ReorderOutput"
)
#: Operators that count no multiply-accumulates.
WITHOUT_PRODUCTS = frozenset(_NO_PRODUCTS.split())

#: Operators whose result is the same memory seen with another shape.
VIEWS = frozenset({"Flatten", "Identity", "OptionalGetElement", "Reshape", "Squeeze", "Unsqueeze"})
#: Operators that read of their first input only what they return.
_PARTIAL = frozenset({"Gather", "GatherElements", "GatherND", "Slice"})
#: Operators that read nothing of their input but its shape.
_OF_SHAPE = frozenset({"ConstantOfShape", "Shape", "Size"})

#: Operators whose bodies count, not they themselves.
CONTROL_FLOW = frozenset({"If", "Loop", "Scan", "SequenceMap"})

_Shapes = Sequence[Shape]
_Count = Callable[[_Shapes, _Shapes], int | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeWork:
    """What one node has to do in one run.

    Attributes:
        name: Its name, or that of its first output where it has none.
        op: Operator, ``domain::OpType`` outside the default domain.
        macs: Multiply-accumulates; ``None`` if uncounted.
        weight_bytes: Constants that it reads.
        activation_bytes: Other values that it reads and writes, each once; ``None`` where a shape
            is not known.
        parameters: Elements of its constants.
        reason: Why it is uncounted; empty if it is not.
    """

    name: str
    op: str
    macs: int | None = None
    weight_bytes: int = 0
    activation_bytes: int | None = None
    parameters: int = 0
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelWork:
    """What a model has to do in one run, at given sizes.

    Attributes:
        nodes: Every node that runs: constants folded, functions inlined.
        weight_bytes: Constants that its nodes read, each once.
        parameters: Elements of all float and integer weights.
        uncounted: Number of nodes whose multiply-accumulates are not known, by operator.
        reason: Why nothing could be counted; empty otherwise.
    """

    nodes: tuple[NodeWork, ...] = ()
    weight_bytes: int = 0
    parameters: int = 0
    uncounted: dict[str, int] = field(default_factory=dict)
    reason: str = ""

    @property
    def macs(self) -> int | None:
        """Multiply-accumulates of all nodes that could be counted.

        ``None`` if that is nothing (every node without a count may hold everything), or more than
        can be counted.
        """
        counted = sum(node.macs for node in self.nodes if node.macs is not None)
        return countable(counted) if counted or self.complete else None

    @property
    def activation_bytes(self) -> int | None:
        """Bytes of activations that the nodes read and write, those of unknown size left out.

        ``None`` if the size of none is known, or they are more than can be counted.
        """
        known = [node.activation_bytes for node in self.nodes if node.activation_bytes is not None]
        return countable(sum(known)) if known else None

    @property
    def complete(self) -> bool:
        """Whether every node was counted, so that ``macs`` is the whole."""
        return bool(self.nodes) and not self.uncounted


def countable(count: int | None) -> int | None:
    """Return a count, ``None`` for one that is negative or beyond :data:`LARGEST_COUNT`.

    Shape inference multiplies whatever sizes a file states, and its 64 bits wrap around.
    """
    return count if count is not None and 0 <= count <= LARGEST_COUNT else None


def element_count(sizes: Sequence[int]) -> int | None:
    """Return the number of elements of a tensor.

    Args:
        sizes: Its sizes, as a file states them.

    Returns:
        ``None`` if one of them is negative, or if the elements are more than can be counted.
    """
    if 0 in sizes:
        return 0 if min(sizes) == 0 else None
    count = 1
    for size in sizes:
        count *= size
        if not 0 < count <= LARGEST_COUNT:
            return None
    return count


def multiply_accumulates(op: str, inputs: _Shapes, outputs: _Shapes) -> int | None:
    """Return the multiply-accumulates of one node; ``None`` if they can't be told.

    Args:
        op: Operator type, without its domain.
        inputs: Shapes of its tensor inputs in order; missing optional ones at the end left out.
        outputs: Shapes of its outputs in order.
    """
    if op in WITHOUT_PRODUCTS:
        return 0
    count = _PRODUCTS.get(op)
    if count is None:
        return None
    if any(element_count(shape) is None for shape in (*inputs, *outputs)):
        return None
    try:
        return countable(count(inputs, outputs))
    except (IndexError, ZeroDivisionError):
        return None  # an input is not listed, or has another rank than the operator takes


def is_counted(op: str) -> bool:
    """Whether the multiply-accumulates of an operator can be told where its shapes are known."""
    return op in WITHOUT_PRODUCTS or op in _PRODUCTS


def einsum_products(equation: str, inputs: _Shapes) -> int | None:
    """Return the multiply-accumulates of an ``Einsum``; ``None`` for more than two operands.

    One operand is summed or transposed and multiplies nothing. With two, every combination of all
    indices is one product.
    """
    terms = equation.replace(" ", "").partition("->")[0].split(",")
    if len(inputs) == 1:
        return 0
    if len(inputs) != 2 or len(terms) != 2:
        return None
    sizes: dict[str, int] = {}
    for term, shape in zip(terms, inputs, strict=True):
        labels = _labels(term, len(shape))
        if len(labels) != len(shape):
            return None
        for label, size in zip(labels, shape, strict=True):
            sizes[label] = max(sizes.get(label, 1), size)
    return countable(math.prod(sizes.values()))


def _labels(term: str, rank: int) -> list[str]:
    """Index names of an operand; those of ``...`` are counted from the right."""
    before, dots, after = term.partition("...")
    if not dots:
        return list(term)
    hidden = rank - len(before) - len(after)
    return [*before, *(f".{hidden - i}" for i in range(hidden)), *after]


def tensor_bytes(element: str, shape: Sequence[int]) -> int | None:
    """Return the bytes of a tensor, ``None`` for strings, unknown types and sizes beyond counting.

    Args:
        element: ONNX Runtime's spelling of the type of an element (``float``).
        shape: Its sizes.
    """
    bits = ELEMENT_BITS.get(element)
    count = element_count(shape)
    return None if bits is None or count is None else countable((count * bits + 7) // 8)


def moved_bytes(op: str, inputs: Sequence[int], outputs: Sequence[int]) -> tuple[list[int], int]:
    """Return the bytes that a node reads of each input, and those that it writes.

    Every value is read and written once, whatever the caches do: the least that must be moved.

    Args:
        op: Operator type.
        inputs: Bytes of each input.
        outputs: Bytes of each output.
    """
    written = sum(outputs)
    if op in VIEWS:
        return [0] * len(inputs), 0
    if op in _OF_SHAPE:
        return [0] * len(inputs), written
    if op in _PARTIAL and inputs:
        return [min(inputs[0], written), *inputs[1:]], written
    return list(inputs), written


def _filters(weights: int) -> _Count:
    """Every output element is a product with one filter, ``[out, in / groups, …]``."""
    return lambda inputs, outputs: (
        math.prod(_ranked(outputs[0], 3)) * math.prod(_ranked(inputs[weights], 3)[1:])
    )


def _transposed(inputs: _Shapes, _outputs: _Shapes) -> int:
    """Every input element is multiplied with one filter, ``[in, out / groups, …]``."""
    return math.prod(_ranked(inputs[0], 3)) * math.prod(_ranked(inputs[1], 3)[1:])


def _matrices(inputs: _Shapes, outputs: _Shapes) -> int:
    """``[…, M, K] · […, K, N]``: every output element takes K."""
    return math.prod(outputs[0]) * inputs[0][-1]


def _maybe_transposed(inputs: _Shapes, outputs: _Shapes) -> int:
    """As matrices, where the first one may be ``[…, K, M]``; only the shapes tell."""
    first = inputs[0]
    if len(first) < 2 or len(outputs[0]) < 2 or first[-2] == outputs[0][-2]:
        return _matrices(inputs, outputs)
    return math.prod(outputs[0]) * first[-2]


def _recurrent(inputs: _Shapes, _outputs: _Shapes) -> int:
    """At every step of every sequence the input and the state meet all their weights."""
    steps = math.prod(_ranked(inputs[0], 3)[:2])
    return steps * (math.prod(_ranked(inputs[1], 3)) + math.prod(_ranked(inputs[2], 3)))


def _attention(inputs: _Shapes, outputs: _Shapes) -> int | None:
    """Queries times keys, and their weights times values.

    Of ONNX: query, key and value, ``[batch, heads, length, size]`` or ``[batch, length, heads *
    size]``; the length of a cache stands in the second output. Of ``com.microsoft``: input and
    packed weights, told by their rank.
    """
    if len(inputs[1]) == 2:
        return _packed_attention(inputs, outputs)
    query, key = inputs[0], inputs[1]
    if len(query) not in (3, 4) or len(key) not in (3, 4):
        return None  # queries, keys and values in one tensor
    length = outputs[1][-2] if len(outputs) > 2 else key[-2]
    return (math.prod(query) + math.prod(outputs[0])) * length


def _packed_attention(inputs: _Shapes, outputs: _Shapes) -> int:
    """``com.microsoft::Attention``: ``[batch, length, size]`` with ``[size, q + k + v]``."""
    batch, queries, _ = _ranked(inputs[0], 3)
    width, values = inputs[1][1], outputs[0][-1]
    length = outputs[1][-2] if len(outputs) > 1 else queries
    per_query = (width - values) // 2 + values
    return math.prod(inputs[0]) * width + batch * queries * per_query * length


def _grouped_attention(_inputs: _Shapes, outputs: _Shapes) -> int:
    """Every head of the queries meets the whole cache twice; the cache stands behind the result.

    Queries, keys and values may be one tensor, so only results tell.
    """
    return 2 * math.prod(_ranked(outputs[0], 3)) * _ranked(outputs[1], 4)[-2]


def _ranked(shape: Shape, least: int) -> Shape:
    if len(shape) < least:
        raise IndexError(f"a shape of {least} axes or more is needed, not {shape}")
    return shape


_PRODUCTS: Mapping[str, _Count] = {
    **dict.fromkeys(
        ("Conv", "ConvInteger", "DeformConv", "FusedConv", "NhwcConv", "NhwcFusedConv"),
        _filters(1),
    ),
    "QLinearConv": _filters(3),
    "ConvTranspose": _transposed,
    **dict.fromkeys(
        (
            *("MatMul", "MatMulInteger", "MatMulInteger16", "QLinearMatMul", "MatMulNBits"),
            *("DynamicQuantizeMatMul", "MatMulIntegerToFloat", "MatMulBnb4", "MatMulFpQ4"),
        ),
        _matrices,
    ),
    **dict.fromkeys(
        (
            *("Gemm", "QGemm", "FusedGemm", "GemmFastGelu", "GemmFloat8"),
            *("FusedMatMul", "FusedMatMulActivation", "TransposeMatMul"),
        ),
        _maybe_transposed,
    ),
    **dict.fromkeys(("LSTM", "GRU", "RNN", "DynamicQuantizeLSTM"), _recurrent),
    **dict.fromkeys(("Attention", "MultiHeadAttention", "QAttention"), _attention),
    "GroupQueryAttention": _grouped_attention,
}
