"""Operators that ONNX Runtime's optimiser, its quantiser and its exporters write: where axes are.

They stand in its own domains. Those that pack tokens of several rows into one (PackedAttention,
RemovePadding), are opaque (EPContext), or that nothing writes any more have no rule.
"""

from __future__ import annotations

from pytest_ortbench.models.axes.layout_rules import pad, range_of
from pytest_ortbench.models.axes.mixing_rules import multiplied, transposed_product, windows
from pytest_ortbench.models.axes.step import OperatorStep, axis_rule
from pytest_ortbench.models.axes.values import (
    Axes,
    Axis,
    broadcast,
    joined,
    plain,
    size_of,
)

_OWN = "com.microsoft"
#: Convolutions and pools in blocks of channels, which the optimiser writes for one kind of CPU.
_BLOCKED = "com.microsoft.nchwc"

_CHANNELS_LAST = frozenset({"NhwcConv", "NhwcFusedConv", "NhwcMaxPool"})

axis_rule(f"{_OWN}::Pad")(pad)
axis_rule(f"{_OWN}::Range")(range_of)


@axis_rule(
    *(f"{_OWN}::{name}" for name in ("BiasAdd", "BiasDropout", "BitmaskDropout", "Trilu")),
    *(f"{_OWN}::{name}" for name in ("BitmaskBiasDropout", "QuantizeBFP", "MurmurHash3")),
    *(f"{_OWN}::{name}" for name in ("QOrderedGelu", "GemmaRotaryEmbedding", "ScaledSiLU")),
    *("BitCast", "StringNormalizer", "RegexFullMatch", "ParametricSoftplus", "ScaledTanh"),
)
def _as_read(step: OperatorStep) -> list[Axes | None] | None:
    return [step.axes(0)]


@axis_rule("DynamicQuantizeLinear")
def _scaled(step: OperatorStep) -> list[Axes | None] | None:
    """One scale and zero point for all: the values keep their places."""
    return [step.axes(0), (), ()]


@axis_rule(f"{_OWN}::QLinearWhere", f"{_OWN}::MulInteger", "StringConcat")
def _elementwise(step: OperatorStep) -> list[Axes | None] | None:
    places = {"QLinearWhere": (0, 1, 4), "MulInteger": (0, 2)}.get(step.node.op_type, (0, 1))
    values = [value for value in map(step.value, places) if value is not None]
    return [broadcast(values, step.labels)]


@axis_rule(f"{_OWN}::BiasSoftmax", f"{_OWN}::QLinearSoftmax")
def _softmax(step: OperatorStep) -> list[Axes | None] | None:
    axes = step.axes(0)
    if not axes:
        return None
    place = step.attributes.get("axis", 1 if step.node.op_type == "BiasSoftmax" else -1) % len(axes)
    # The first kind, and the second in old operator sets, take all axes from there on together.
    single = step.attributes.get("opset", 1) >= 13
    step.mix([axes[place]] if single else axes[place:])
    return [axes]


@axis_rule(
    *(f"{_OWN}::{name}" for name in ("DynamicQuantizeMatMul", "TransposeMatMul")),
    *(f"{_OWN}::{name}" for name in ("FusedMatMulActivation", "MatMulInteger16")),
)
def _product(step: OperatorStep) -> list[Axes | None] | None:
    first, second = step.axes(0), step.axes(1)
    if not first or not second:
        return None
    if step.attributes.get("transBatchA") or step.attributes.get("transBatchB"):
        return None
    return [transposed_product(step, first, second)]


@axis_rule(f"{_OWN}::QGemm", f"{_OWN}::GemmFloat8")
def _general_product(step: OperatorStep) -> list[Axes | None] | None:
    first, second = step.axes(0), step.axes(3 if step.node.op_type == "QGemm" else 1)
    if first is None or second is None or len(first) != 2 or len(second) != 2:
        return None
    return [transposed_product(step, first, second)]


@axis_rule(f"{_OWN}::MatMulBnb4", f"{_OWN}::MatMulFpQ4")
def _packed_product(step: OperatorStep) -> list[Axes | None] | None:
    axes, shape = step.axes(0), step.numbers(2)
    if not axes:
        return None
    step.labels.mix([axes[-1]], step.why)
    columns = step.attributes.get("N") or (shape[-1] if shape else 0)
    return [(*axes[:-1], plain(columns) if columns else step.fresh())]


@axis_rule(f"{_OWN}::MoE", f"{_OWN}::QMoE")
def _experts(step: OperatorStep) -> list[Axes | None] | None:
    """Each row goes through experts of its own."""
    axes = step.axes(0)
    if not axes:
        return None
    step.mix([axes[-1]])
    return [axes]


@axis_rule(f"{_OWN}::QLinearConcat")
def _joined_parts(step: OperatorStep) -> list[Axes | None] | None:
    """Behind scale and zero point of the result, three inputs a part."""
    parts = [step.axes(index) for index in range(2, len(step.inputs), 3)]
    known = [axes for axes in parts if axes]
    if len(known) < len(parts) or not known or len({len(axes) for axes in known}) > 1:
        return None
    place = step.attributes.get("axis", 0) % len(known[0])
    columns = list(zip(*known, strict=True))
    step.labels.mix(columns[place], step.why)
    result = [joined(column, step.labels) for column in columns]
    result[place] = plain(sum(size_of(axis) for axis in columns[place]))
    return [tuple(axis or () for axis in result)] if None not in result else None


@axis_rule(f"{_OWN}::QLinearReduceMean")
def _mean(step: OperatorStep) -> list[Axes | None] | None:
    axes = step.axes(0)
    if axes is None:
        return None
    named = step.attributes.get("axes", range(len(axes)))
    places = {place % max(len(axes), 1) for place in named}
    step.labels.mix([axes[place] for place in places], step.why)
    if step.attributes.get("keepdims", 1):
        return [tuple(() if place in places else axis for place, axis in enumerate(axes))]
    return [tuple(axis for place, axis in enumerate(axes) if place not in places)]


@axis_rule(
    *(f"{_OWN}::{name}" for name in ("QLinearConv", "NhwcConv", "NhwcFusedConv")),
    f"{_BLOCKED}::Conv",
)
def _convolution(step: OperatorStep) -> list[Axes | None] | None:
    axes = step.axes(0)
    weight = step.axes(3 if step.node.op_type == "QLinearConv" else 1)
    if axes is None or weight is None or len(axes) != len(weight):
        return None
    last = step.node.op_type in _CHANNELS_LAST or bool(step.attributes.get("channels_last"))
    channels, sides = (axes[-1], axes[1:-1]) if last else (axes[1], axes[2:])
    kernel = [size_of(axis) for axis in (weight[1:-1] if _is_last(weight, step) else weight[2:])]
    step.labels.mix([channels], step.why)
    moved = windows(step, sides, kernel)
    return [_laid_out(axes[0], weight[0], moved, last=last)]


def _is_last(weight: Axes, step: OperatorStep) -> bool:
    """Whether the filters have their channels last as well."""
    shape = step.attributes.get("kernel_shape")
    return shape is not None and [size_of(axis) for axis in weight[2:]] != list(shape)


def _laid_out(batch: Axis, channels: Axis, sides: tuple[Axis, ...], *, last: bool) -> Axes:
    return (batch, *sides, channels) if last else (batch, channels, *sides)


@axis_rule(
    *(f"{_OWN}::{name}" for name in ("NhwcMaxPool", "QLinearAveragePool", "MaxpoolWithMask")),
    *(f"{_BLOCKED}::{name}" for name in ("MaxPool", "AveragePool")),
)
def _pool(step: OperatorStep) -> list[Axes | None] | None:
    axes = step.axes(0)
    kernel = list(step.attributes.get("kernel_shape", ()))
    if axes is None or len(kernel) != len(axes) - 2:
        return None
    last = step.node.op_type in _CHANNELS_LAST or bool(step.attributes.get("channels_last"))
    channels, sides = (axes[-1], axes[1:-1]) if last else (axes[1], axes[2:])
    return [_laid_out(axes[0], channels, windows(step, sides, kernel), last=last)]


@axis_rule(
    f"{_OWN}::QLinearGlobalAveragePool",
    *(f"{_BLOCKED}::{name}" for name in ("GlobalAveragePool", "GlobalMaxPool")),
)
def _global_pool(step: OperatorStep) -> list[Axes | None] | None:
    axes = step.axes(0)
    if axes is None or len(axes) < 3:
        return None
    last = bool(step.attributes.get("channels_last"))
    channels, sides = (axes[-1], axes[1:-1]) if last else (axes[1], axes[2:])
    step.labels.mix(sides, step.why)
    return [_laid_out(axes[0], channels, ((),) * len(sides), last=last)]


@axis_rule(f"{_BLOCKED}::ReorderInput", f"{_BLOCKED}::ReorderOutput")
def _reordered(step: OperatorStep) -> list[Axes | None] | None:
    axes = step.axes(0)
    if axes is None or len(axes) != 4:
        return None
    into = step.node.op_type == "ReorderInput"
    channels = plain(step.attributes["channels"]) if "channels" in step.attributes else axes[1]
    if not step.attributes.get("channels_last"):
        return [(axes[0], axes[1] if into else channels, *axes[2:])]
    if into:
        return [(axes[0], axes[3], axes[1], axes[2])]
    return [(axes[0], axes[2], axes[3], channels)]


@axis_rule(f"{_BLOCKED}::Upsample")
def _enlarged(step: OperatorStep) -> list[Axes | None] | None:
    axes, scales = step.axes(0), step.attributes.get("scales", ())
    if axes is None or len(scales) != len(axes):
        return None
    step.labels.mix(
        [axis for axis, scale in zip(axes, scales, strict=True) if scale != 1], step.why
    )
    return [
        tuple(
            axis if scale == 1 else plain(size_of(axis) * scale)
            for axis, scale in zip(axes, scales, strict=True)
        )
    ]


@axis_rule(f"{_OWN}::SkipGroupNorm")
def _norm_of_images(step: OperatorStep) -> list[Axes | None] | None:
    axes = step.axes(0)
    if axes is not None:
        step.mix(axes[1:])
    return [axes] * len(step.node.output)


@axis_rule(f"{_OWN}::LongformerAttention", f"{_OWN}::CausalConvWithState", "CausalConvWithState")
def _attention_of_one(step: OperatorStep) -> list[Axes | None] | None:
    axes = step.axes(0)
    if not axes:
        return None
    step.mix(axes[1:])
    state = step.axes(3) if step.node.op_type == "CausalConvWithState" else None
    if state:
        batch = joined([axes[0], state[0]], step.labels) or axes[0]
        step.mix(state[1:])
        return [(batch, *axes[1:]), (batch, *state[1:])]
    return [axes]


@axis_rule(f"{_OWN}::DecoderMaskedMultiHeadAttention", f"{_OWN}::DecoderMaskedSelfAttention")
def _attention_of_a_token(step: OperatorStep) -> list[Axes | None] | None:
    """One token a row, and a cache that grows by it."""
    query = step.axes(0)
    if query is None or len(query) != 3:
        return None
    single = step.node.op_type == "DecoderMaskedSelfAttention"
    past = [step.axes(index) for index in ((4,) if single else (5, 6))]
    batch = query[0]
    rows = [axes[1 if single else 0] for axes in past if axes]
    batch = joined([batch, *rows], step.labels) or batch
    step.mix(query[1:])
    weight = step.axes(1)
    last = query[-1]
    if single and weight:
        last = plain(max(size_of(weight[-1]) // 3, 1))
    outputs: list[Axes | None] = [(batch, query[1], last)]
    for axes in past[: len(step.node.output) - 1]:
        if not axes:
            return None
        front = (axes[0], batch) if single else (batch,)
        outputs.append((*front, axes[len(front)], step.fresh(), axes[-1]))
    return [*outputs, *([None] * (len(step.node.output) - len(outputs)))]


@axis_rule(f"{_OWN}::RelativePositionBias", f"{_OWN}::GatedRelativePositionBias")
def _position_bias(step: OperatorStep) -> list[Axes | None] | None:
    """A table over positions: of one row for all, or gated by each row's query."""
    heads = plain(step.attributes.get("num_heads", 0) or step.labels.fresh())
    if step.node.op_type == "RelativePositionBias":
        table = step.axes(0)
        lengths = [step.numbers(index) for index in (1, 2)]
        sides = [plain(max(size[0], 1)) if size else step.fresh() for size in lengths]
        return [((), table[-1] if table else heads, *sides)]
    query = step.axes(0)
    if query is None or len(query) != 3:
        return None
    step.mix(query[1:])
    return [(query[0], heads, query[1], query[1])]


@axis_rule(*(f"{_OWN}::{name}" for name in ("GreedySearch", "Sampling", "BeamSearch")))
def _generated(step: OperatorStep) -> list[Axes | None] | None:
    """Rows of tokens, each made of its own prompt."""
    axes = step.axes(0)
    if axes is None or len(axes) != 2:
        return None
    step.labels.mix([axes[1]], step.why)
    ways = (step.fresh(),) if step.node.op_type == "BeamSearch" else ()
    first: Axes = (axes[0], *ways, step.fresh())
    scores: Axes = (axes[0], *ways)
    outputs: list[Axes | None] = [first, scores if ways else None]
    return [*outputs, None][: len(step.node.output)]


@axis_rule(f"{_OWN}::NGramRepeatBlock")
def _scores(step: OperatorStep) -> list[Axes | None] | None:
    tokens, scores = step.axes(0), step.axes(1)
    if tokens is None or scores is None or len(tokens) != 2 or len(scores) != 2:
        return None
    batch = joined([scores[0], tokens[0]], step.labels) or scores[0]
    step.labels.mix([tokens[1], scores[1]], step.why)
    return [(batch, scores[1])]


@axis_rule(f"{_OWN}::CDist")
def _distances(step: OperatorStep) -> list[Axes | None] | None:
    first, second = step.axes(0), step.axes(1)
    if first is None or second is None or len(first) != 2 or len(second) != 2:
        return None
    return [multiplied(step, first, (second[1], second[0]))]


@axis_rule(f"{_OWN}::ExpandDims")
def _expanded(step: OperatorStep) -> list[Axes | None] | None:
    axes, place = step.axes(0), step.numbers(1)
    if axes is None or not place:
        return None
    at = place[0] % (len(axes) + 1)
    return [(*axes[:at], (), *axes[at:])]


@axis_rule(f"{_OWN}::Tokenizer", "TfIdfVectorizer")
def _tokens(step: OperatorStep) -> list[Axes | None] | None:
    axes = step.axes(0)
    if axes is None:
        return None
    if step.op == "TfIdfVectorizer" and axes:
        step.labels.mix([axes[-1]], step.why)
        axes = axes[:-1]
    return [(*axes, step.fresh())]


@axis_rule("HannWindow", "HammingWindow", "BlackmanWindow", "MelWeightMatrix", "EyeLike")
def _table(step: OperatorStep) -> list[Axes | None] | None:
    """Tables of sizes that are known or not; nothing of an input's values is in them."""
    if step.op == "EyeLike":
        axes = step.axes(0)
        return None if axes is None else [tuple(plain(size_of(axis)) for axis in axes)]
    sizes = [numbers[0] if numbers else 0 for numbers in (step.numbers(0), step.numbers(1))]
    if step.op == "MelWeightMatrix":
        sizes = [sizes[1] // 2 + 1 if sizes[1] else 0, sizes[0]]
    else:
        sizes = sizes[:1]
    return [tuple(plain(size) if size else step.fresh() for size in sizes)]


@axis_rule("CumProd", "DFT", "CenterCropPad", "MaxUnpool", "TensorScatter", "AffineGrid")
def _along_some(step: OperatorStep) -> list[Axes | None] | None:
    """What reads along some axes; those keep no place, all others do."""
    axes = step.axes(0)
    if not axes:
        return None
    rank = len(axes)
    if step.op == "TensorScatter":
        step.mix([axes[step.attributes.get("axis", -2) % rank]])
        return [axes]
    if step.op == "AffineGrid":
        sides = step.numbers(1)
        step.labels.mix(axes[1:], step.why)
        spatial = [plain(max(size, 1)) for size in sides[2:]] if sides else []
        return [(axes[0], *spatial, plain(len(spatial)))] if spatial else None
    if step.op == "CumProd":
        step.mix([axes[place % rank] for place in step.numbers(1) or range(rank)])
        return [axes]
    places = _places(step, rank)
    step.labels.mix([axes[place] for place in places], step.why)
    result = tuple(step.fresh() if place in places else axis for place, axis in enumerate(axes))
    return [(*result[:-1], plain(2)) if step.op == "DFT" else result]


def _places(step: OperatorStep, rank: int) -> set[int]:
    if step.op == "MaxUnpool":
        return set(range(2, rank))
    if step.op == "CenterCropPad":
        return {place % rank for place in step.attributes.get("axes", range(rank))}
    numbers = step.numbers(2)
    named = numbers[0] if numbers else step.attributes.get("axis", 1 if step.opset < 20 else -2)
    return {named % rank}


@axis_rule("Multinomial", "Col2Im")
def _of_rows(step: OperatorStep) -> list[Axes | None] | None:
    axes = step.axes(0)
    if not axes:
        return None
    step.labels.mix(axes[1:], step.why)
    if step.op == "Multinomial":
        return [(axes[0], plain(step.attributes.get("sample_size", 1)))]
    sides = step.axes(1)
    return [(axes[0], *(step.fresh() for _ in range(1 + size_of(sides[0]))))] if sides else None


@axis_rule(f"{_OWN}::TorchEmbedding")
def _embedded(step: OperatorStep) -> list[Axes | None] | None:
    table, chosen = step.axes(0), step.axes(1)
    return None if table is None or chosen is None else [(*chosen, *table[1:])]


@axis_rule(f"{_OWN}::ConvTransposeWithDynamicPads")
def _transposed(step: OperatorStep) -> list[Axes | None] | None:
    axes, weight = step.axes(0), step.axes(1)
    if axes is None or weight is None or len(axes) != len(weight):
        return None
    step.labels.mix(axes[1:], step.why)
    channels = plain(size_of(weight[1]) * step.attributes.get("group", 1))
    return [(axes[0], channels, *(step.fresh() for _ in axes[2:]))]


@axis_rule("RandomNormal", "RandomUniform")
def _random(step: OperatorStep) -> list[Axes | None] | None:
    return [tuple(plain(size) for size in step.attributes.get("shape", ()))]


@axis_rule(f"{_OWN}::LinearAttention", "LinearAttention")
def _linear_attention(step: OperatorStep) -> list[Axes | None] | None:
    """Query, key, value and the state before; the state is as large as it was."""
    parts = [axes for axes in map(step.axes, range(4)) if axes]
    query, value, state = step.axes(0), step.axes(2), step.axes(3)
    if query is None or value is None or len(query) != len(value):
        return None
    batch = joined([axes[0] for axes in parts], step.labels) or query[0]
    for axes in parts:
        step.mix(axes[1:])
    present = None if state is None else (batch, *state[1:])
    outputs: list[Axes | None] = [(batch, *query[1:-1], step.fresh()), present]
    return outputs[: len(step.node.output)]
