"""Operators that move, join, cut and copy values: where each axis is behind them."""

from __future__ import annotations

from pytest_ortbench.models.axes.step import OperatorStep, axis_rule
from pytest_ortbench.models.axes.values import (
    Axes,
    Axis,
    AxisPart,
    broadcast,
    joined,
    labels_of,
    plain,
    reshaped,
    size_of,
)

_UNARY = (
    *("Abs", "Acos", "Acosh", "Asin", "Asinh", "Atan", "Atanh", "Bernoulli", "BitwiseNot"),
    *("Cast", "CastLike", "Ceil", "Celu", "Clip", "Cos", "Cosh", "DequantizeLinear", "Dropout"),
    *("Elu", "Erf", "Exp", "Floor", "Gelu", "HardSigmoid", "HardSwish", "Identity", "IsInf"),
    *("IsNaN", "LeakyRelu", "Log", "Mish", "Neg", "Not", "QuantizeLinear", "Reciprocal", "Relu"),
    *("Round", "Selu", "Shrink", "Sigmoid", "Sign", "Sin", "Sinh", "Softplus", "Softsign"),
    *("Sqrt", "Tan", "Tanh", "ThresholdedRelu", "BatchNormalization", "Optional", "Swish"),
    *("OptionalGetElement", "Trilu", "RandomNormalLike", "RandomUniformLike"),
    *("com.microsoft::Gelu", "com.microsoft::FastGelu", "com.microsoft::QuickGelu"),
    *("com.microsoft::BiasGelu", "com.microsoft::DequantizeLinear"),
    *("com.microsoft::QuantizeLinear", "com.microsoft::QLinearSigmoid"),
    *("com.microsoft::QLinearLeakyRelu", "com.microsoft::RotaryEmbedding"),
    *("com.microsoft::BiasSplitGelu", "RotaryEmbedding"),
    *("ai.onnx.ml::LabelEncoder", "ai.onnx.ml::Scaler", "ai.onnx.ml::Imputer"),
    *("ai.onnx.ml::Binarizer", "ai.onnx.ml::CategoryMapper", "ai.onnx.ml::Normalizer"),
)
_ELEMENTWISE = (
    *("Add", "And", "BitShift", "BitwiseAnd", "BitwiseOr", "BitwiseXor", "Div", "Equal"),
    *("Greater", "GreaterOrEqual", "Less", "LessOrEqual", "Max", "Mean", "Min", "Mod", "Mul"),
    *("Or", "Pow", "PRelu", "Sub", "Sum", "Where", "Xor"),
)


@axis_rule(*_UNARY)
def _unary(step: OperatorStep) -> list[Axes | None] | None:
    return [step.axes(0)]


@axis_rule(*_ELEMENTWISE)
def _elementwise(step: OperatorStep) -> list[Axes | None] | None:
    values = [value for value in step.inputs if value is not None]
    result = broadcast(values, step.labels)
    if result is not None:
        for value in values:
            if value.constant and value.axes is not None and step.op not in ("Where", "PRelu"):
                _own_constants(step, value.axes, result)
    return [result]


def _own_constants(step: OperatorStep, weight: Axes, result: Axes) -> None:
    """Rows that each have a weight of their own are no batch."""
    for place in range(1, len(weight) + 1):
        if size_of(weight[-place]) > 1:
            step.mix([result[-place]])


@axis_rule("com.microsoft::QLinearAdd", "com.microsoft::QLinearMul")
def _quantised(step: OperatorStep) -> list[Axes | None] | None:
    values = [value for value in (step.value(0), step.value(3)) if value is not None]
    return [broadcast(values, step.labels)]


@axis_rule("Transpose")
def _transpose(step: OperatorStep) -> list[Axes | None] | None:
    axes = step.axes(0)
    if axes is None:
        return None
    order = step.attributes.get("perm", tuple(reversed(range(len(axes)))))
    return [tuple(axes[place] for place in order)]


@axis_rule("Reshape")
def _reshape(step: OperatorStep) -> list[Axes | None] | None:
    axes = step.axes(0)
    target = step.attributes.get("shape")
    sizes = step.numbers(1) if target is None else list(target)
    if axes is None or sizes is None:
        return None
    if not step.attributes.get("allowzero", 0):
        if any(size == 0 and place >= len(axes) for place, size in enumerate(sizes)):
            return None
        sizes = [size_of(axes[place]) if size == 0 else size for place, size in enumerate(sizes)]
    return _as_reshaped(step, axes, sizes)


def _as_reshaped(step: OperatorStep, axes: Axes, sizes: list[int]) -> list[Axes | None] | None:
    result = reshaped(axes, sizes)
    if result is not None:
        step.lost |= labels_of(axes) - labels_of(result)
    return [result]


@axis_rule("Flatten")
def _flatten(step: OperatorStep) -> list[Axes | None] | None:
    axes = step.axes(0)
    if axes is None:
        return None
    axis = step.attributes.get("axis", 1)
    cut = axis if axis >= 0 else axis + len(axes)
    return [tuple(tuple(f for axis in part for f in axis) for part in (axes[:cut], axes[cut:]))]


@axis_rule("Unsqueeze")
def _unsqueeze(step: OperatorStep) -> list[Axes | None] | None:
    axes, places = step.axes(0), step.attribute_axes(1)
    if axes is None or places is None:
        return None
    rank = len(axes) + len(places)
    new = {place % rank for place in places}
    rest = iter(axes)
    return [tuple(() if place in new else next(rest) for place in range(rank))]


@axis_rule("Squeeze")
def _squeeze(step: OperatorStep) -> list[Axes | None] | None:
    axes, places = step.axes(0), step.attribute_axes(1)
    if axes is None or (places is None and step.value(1) is not None):
        return None
    if places is None:
        return [tuple(axis for axis in axes if axis)]
    gone = {place % len(axes) for place in places}
    return [tuple(axis for place, axis in enumerate(axes) if place not in gone)]


@axis_rule("Expand")
def _expand(step: OperatorStep) -> list[Axes | None] | None:
    axes, sizes = step.axes(0), step.numbers(1)
    if axes is None or sizes is None:
        return None
    rank = max(len(axes), len(sizes))
    padded = ((),) * (rank - len(axes)) + axes
    wanted = [1] * (rank - len(sizes)) + sizes
    for axis, size in zip(padded, wanted, strict=True):
        if len(axis) == 1:
            step.labels.meet(axis[0], size)
    return [tuple(axis or plain(abs(size)) for axis, size in zip(padded, wanted, strict=True))]


@axis_rule("Tile")
def _tile(step: OperatorStep) -> list[Axes | None] | None:
    axes, repeats = step.axes(0), step.numbers(1)
    if axes is None or repeats is None or len(axes) != len(repeats):
        return None
    return [tuple(plain(count) + axis for axis, count in zip(axes, repeats, strict=True))]


@axis_rule("Concat")
def _concat(step: OperatorStep) -> list[Axes | None] | None:
    parts = [value.axes for value in step.inputs if value is not None]
    known = [axes for axes in parts if axes is not None]
    if len(known) < len(parts) or not known or len({len(axes) for axes in known}) > 1:
        return None
    rank = len(known[0])
    place = step.attributes.get("axis", 0) % max(rank, 1)
    columns: list[Axis] = []
    for index, column in enumerate(zip(*known, strict=True)):
        if index != place:
            axis = joined(column, step.labels)
            if axis is None:
                return None
            columns.append(axis)
        elif len(known) == 1:
            columns.append(column[0])
        else:
            step.mix(column)
            columns.append(plain(sum(size_of(axis) for axis in column)))
    return [tuple(columns)]


@axis_rule("Split", "SplitToSequence")
def _split(step: OperatorStep) -> list[Axes | None] | None:
    axes = step.axes(0)
    if axes is None or step.op != "Split":
        return None
    place = step.attributes.get("axis", 0) % len(axes)
    count = len(step.node.output)
    sizes = step.numbers(1) or list(step.attributes.get("split", ()))
    if len(sizes) != count:
        sizes = [max(size_of(axes[place]) // count, 1)] * count
    if count > 1:
        step.mix([axes[place]])
    return [_with(axes, place, axes[place] if count == 1 else plain(size)) for size in sizes]


def _with(axes: Axes, place: int, axis: Axis) -> Axes:
    return (*axes[:place], axis, *axes[place + 1 :])


@axis_rule("Slice")
def _slice(step: OperatorStep) -> list[Axes | None] | None:
    axes = step.axes(0)
    if axes is None:
        return None
    if "starts" in step.attributes:
        starts: list[int] | None = list(step.attributes["starts"])
        ends: list[int] | None = list(step.attributes["ends"])
        places = list(step.attributes.get("axes", range(len(starts or ()))))
        steps = [1] * len(places)
    else:
        starts, ends = step.numbers(1), step.numbers(2)
        named = step.numbers(3)
        if step.value(3) is not None and named is None:
            return None
        count = len(named or starts or ends or ())
        places = list(range(count)) if named is None else named
        strides = step.numbers(4)
        unknown = 1 if step.value(4) is None else 0
        steps = [unknown] * count if strides is None else strides
    result = axes
    for index, place in enumerate(places):
        place %= len(axes)
        start = None if starts is None else starts[index]
        end = None if ends is None else ends[index]
        result = _with(result, place, _cut(step, axes[place], start, end, steps[index]))
    return [result]


def _cut(step: OperatorStep, axis: Axis, start: int | None, end: int | None, stride: int) -> Axis:
    size = size_of(axis)
    value = step.value(0)
    if value is not None and value.constant and end in step.labels.sizes and size < end:
        # A table that is cut to the length of an input can't be shorter than it.
        step.limit_of_size(end, most=size)
        return plain(max(end - (start or 0), 1))
    if start == 0 and end is not None and end >= size and stride == 1:
        return axis
    step.mix([axis])
    if start is None or end is None or stride == 0:
        return step.fresh()
    return plain(max(len(range(size)[start:end:stride]), 1))


@axis_rule("Pad")
def pad(step: OperatorStep) -> list[Axes | None] | None:
    """Return the axes of a Pad."""
    axes = step.axes(0)
    pads = step.numbers(1) if "pads" not in step.attributes else list(step.attributes["pads"])
    if axes is None:
        return None
    if pads is None or step.value(3) is not None or len(pads) != 2 * len(axes):
        step.lose(axes)
        return [tuple(step.fresh() for _ in axes)]
    result: list[Axis] = []
    for place, axis in enumerate(axes):
        more = pads[place] + pads[place + len(axes)]
        if pads[place] or pads[place + len(axes)]:
            step.lose([axis])
            if len(axis) == 1 and axis[0].label is not None and more > 0:
                step.labels.padded[axis[0].size + more] = (axis[0].label, more)
        result.append(axis if not more else plain(max(size_of(axis) + more, 1)))
    return [tuple(result)]


@axis_rule("Shape", "Size")
def _shape(step: OperatorStep) -> list[Axes | None] | None:
    axes = step.axes(0)
    if step.op == "Size":
        return [()]
    return [(step.fresh() if axes is None else plain(len(axes)),)]


@axis_rule("ConstantOfShape")
def _constant_of_shape(step: OperatorStep) -> list[Axes | None] | None:
    sizes = step.numbers(0)
    return None if sizes is None else [tuple(plain(max(size, 1)) for size in sizes)]


@axis_rule("Range")
def range_of(step: OperatorStep) -> list[Axes | None] | None:
    """Return the axis of a Range."""
    ends = [step.numbers(index) for index in range(3)]
    numbers = [end[0] for end in ends if end]
    if len(numbers) < 3 or not numbers[2]:
        return [(step.fresh(),)]
    return [(plain(max(len(range(numbers[0], numbers[1], numbers[2])), 1)),)]


@axis_rule("NonZero")
def _non_zero(step: OperatorStep) -> list[Axes | None] | None:
    axes = step.axes(0)
    if axes is None:
        return None
    step.lose(axes)
    return [(plain(len(axes)), step.fresh())]


@axis_rule("OneHot")
def _one_hot(step: OperatorStep) -> list[Axes | None] | None:
    axes, depth = step.axes(0), step.numbers(1)
    if axes is None:
        return None
    place = step.attributes.get("axis", -1) % (len(axes) + 1)
    new = plain(depth[0]) if depth else step.fresh()
    return [(*axes[:place], new, *axes[place:])]


@axis_rule("Gather", "com.microsoft::GatherBlockQuantized", "ai.onnx.ml::ArrayFeatureExtractor")
def _gather(step: OperatorStep) -> list[Axes | None] | None:
    axes, chosen = step.axes(0), step.axes(1)
    if not axes or chosen is None:
        return None
    last = -1 if step.op.endswith("Extractor") else 0
    place = step.attributes.get("gather_axis", step.attributes.get("axis", last)) % len(axes)
    data = step.value(0)
    positions = step.value(1)
    if data is not None and data.constant and positions is not None and not positions.touched:
        for axis in chosen:  # a table that is read by position
            step.limit_of_size(size_of(axis), most=size_of(axes[place]))
    if positions is not None and positions.counts:
        step.lose([axes[place]])  # each turn of a loop takes its own row
    else:
        _choose(step, axes[place], chosen)
    return [axes[:place] + chosen + axes[place + 1 :]]


def _choose(step: OperatorStep, axis: Axis, chosen: Axes) -> None:
    """Note that rows are chosen along an axis; by as many numbers as it has rows, says little."""
    sizes = {size_of(item) for item in chosen}
    roots = {step.labels.root(label) for label in labels_of(chosen)}
    own = [factor for factor in axis if factor.label is not None]
    if any(f.size in sizes or step.labels.root(f.label or 0) in roots for f in own):
        step.lose([axis])
    else:
        step.mix([axis])


@axis_rule("GatherElements")
def _gather_elements(step: OperatorStep) -> list[Axes | None] | None:
    axes, chosen = step.axes(0), step.axes(1)
    if axes is None or chosen is None or len(axes) != len(chosen):
        return None
    place = step.attributes.get("axis", 0) % len(axes)
    step.mix([axes[place]])
    result: list[Axis] = []
    for index, (axis, other) in enumerate(zip(axes, chosen, strict=True)):
        both = None if index == place else joined([axis, other], step.labels)
        result.append(other if both is None else both)
    return [tuple(result)]


@axis_rule("GatherND", "com.microsoft::GatherND")
def _gather_nd(step: OperatorStep) -> list[Axes | None] | None:
    axes, chosen = step.axes(0), step.axes(1)
    if axes is None or not chosen:
        return None
    shared = step.attributes.get("batch_dims", 0)
    depth = size_of(chosen[-1])
    if shared + depth > len(axes):
        return None
    for axis in axes[shared : shared + depth]:
        _choose(step, axis, chosen[:-1])
    lead: list[Axis] = []
    for first, second in zip(axes[:shared], chosen[:shared], strict=True):
        lead.append(joined([first, second], step.labels) or first)
    return [tuple(lead) + chosen[shared:-1] + axes[shared + depth :]]


@axis_rule("ScatterElements", "Scatter")
def _scatter_elements(step: OperatorStep) -> list[Axes | None] | None:
    axes, chosen = step.axes(0), step.axes(1)
    if axes is None or chosen is None or len(axes) != len(chosen):
        return None
    place = step.attributes.get("axis", 0) % len(axes)
    _choose(step, axes[place], (chosen[place],))
    _scattered(step, axes)
    return [axes]


@axis_rule("ScatterND")
def _scatter_nd(step: OperatorStep) -> list[Axes | None] | None:
    axes, chosen = step.axes(0), step.axes(1)
    if axes is None or not chosen:
        return None
    for axis in axes[: size_of(chosen[-1])]:
        _choose(step, axis, chosen[:-1])
    _scattered(step, axes)
    return [axes]


def _scattered(step: OperatorStep, axes: Axes) -> None:
    """What is added up goes into other rows than it stood in; what replaces a row, perhaps not.

    Rows that the result has no axis for are spread over others, as voxels are over a grid.
    """
    sizes = {size_of(axis) for axis in axes}
    roots = {step.labels.root(label) for label in labels_of(axes)}
    for axis in (*(step.axes(1) or ()), *(step.axes(2) or ())):
        known = any(
            step.labels.root(label) in roots or step.labels.sizes[label] in sizes
            for label in labels_of([axis])
        )
        if not known:
            step.labels.mix([axis], step.why)
    if step.attributes.get("reduction", "none") == "none":
        step.lose(step.axes(2) or ())


@axis_rule("Compress", "Unique")
def _left_out(step: OperatorStep) -> list[Axes | None] | None:
    """How many rows are left depends on values, so a result does not have one for each."""
    axes = step.axes(0)
    if axes is None or (step.op == "Unique" and len(step.node.output) > 1):
        return None
    place = step.attributes.get("axis")
    if place is None:
        step.labels.mix(axes, step.why)
        return [(step.fresh(),)]
    place %= len(axes)
    step.labels.mix([axes[place], *(step.axes(1) or ())], step.why)
    return [_with(axes, place, step.fresh())]


@axis_rule("DepthToSpace", "SpaceToDepth")
def _blocks(step: OperatorStep) -> list[Axes | None] | None:
    axes = step.axes(0)
    if axes is None or len(axes) != 4:
        return None
    block = step.attributes.get("blocksize", 1)
    step.mix(axes[1:])
    channels, height, width = (size_of(axis) for axis in axes[1:])
    if step.op == "DepthToSpace":
        sizes = (channels // block**2, height * block, width * block)
    else:
        sizes = (channels * block**2, height // block, width // block)
    return [(axes[0], *(plain(max(size, 1)) for size in sizes))]


@axis_rule("Resize", "Upsample")
def _resize(step: OperatorStep) -> list[Axes | None] | None:
    axes = step.axes(0)
    if axes is None:
        return None
    named = step.attributes.get("axes")
    places = [place % len(axes) for place in named] if named else list(range(len(axes)))
    factors = step.array(1 if step.op == "Upsample" else 2)
    scales = None if factors is None else [float(scale) for scale in factors.reshape(-1)]
    scales = scales or list(step.attributes.get("scales", ())) or None
    sizes = step.numbers(3)
    result = list(axes)
    for index, place in enumerate(places):
        axis = axes[place]
        if sizes is not None and index < len(sizes):
            size = sizes[index]
        elif scales is not None and index < len(scales):
            size = int(size_of(axis) * scales[index])
        else:
            size = size_of(axis) if place < 2 else step.labels.fresh()
        if size != size_of(axis):
            step.mix([axis])
            result[place] = plain(max(size, 1))
    return [tuple(result)]


@axis_rule("ai.onnx.ml::OneHotEncoder")
def _categories(step: OperatorStep) -> list[Axes | None] | None:
    axes = step.axes(0)
    return None if axes is None else [(*axes, (AxisPart(step.labels.fresh()),))]


@axis_rule("ai.onnx.ml::ZipMap")
def _maps(step: OperatorStep) -> list[Axes | None] | None:
    axes = step.axes(0)
    return [None if axes is None else axes[:1]]
