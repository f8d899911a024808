"""Operators that compute along axes: products, windows, sums, norms, recurrence, attention."""

from __future__ import annotations

from pytest_ortbench.models.axes.step import OperatorStep, SizeLimit, axis_rule
from pytest_ortbench.models.axes.values import (
    Axes,
    Axis,
    TracedValue,
    broadcast,
    joined,
    plain,
    size_of,
)

#: A window of so many samples on a single channel is one over a sound.
_SOUND_WINDOW = 8


@axis_rule(
    "MatMul", "MatMulInteger", "com.microsoft::FusedMatMul", "com.microsoft::MatMulIntegerToFloat"
)
def _product(step: OperatorStep) -> list[Axes | None] | None:
    first, second = step.axes(0), step.axes(1)
    if first is None or second is None or not first or not second:
        return None
    if step.attributes.get("transBatchA") or step.attributes.get("transBatchB"):
        return None
    return [transposed_product(step, first, second)]


def transposed_product(step: OperatorStep, first: Axes, second: Axes) -> Axes | None:
    """Return the axes of a matrix product of which each side may be transposed first."""
    if step.attributes.get("transA"):
        first = (*first[:-2], first[-1], first[-2])
    if step.attributes.get("transB"):
        second = (*second[:-2], second[-1], second[-2])
    return multiplied(step, first, second)


def multiplied(step: OperatorStep, first: Axes, second: Axes) -> Axes | None:
    """Return the axes of a matrix product."""
    inner = second[-2] if len(second) > 1 else second[-1]
    joined([first[-1], inner], step.labels)
    step.labels.mix([first[-1], inner], step.why)
    outer = broadcast([TracedValue(first[:-2]), TracedValue(second[:-2])], step.labels)
    if outer is None:
        return None
    rows = (first[-2],) if len(first) > 1 else ()
    columns = (second[-1],) if len(second) > 1 else ()
    return outer + rows + columns


@axis_rule("com.microsoft::QLinearMatMul", "QLinearMatMul")
def _quantised_product(step: OperatorStep) -> list[Axes | None] | None:
    first, second = step.axes(0), step.axes(3)
    return [multiplied(step, first, second)] if first and second else None


@axis_rule("Gemm", "com.microsoft::FusedGemm", "com.microsoft::GemmFastGelu")
def _general_product(step: OperatorStep) -> list[Axes | None] | None:
    first, second = step.axes(0), step.axes(1)
    if first is None or second is None or len(first) != 2 or len(second) != 2:
        return None
    return [transposed_product(step, first, second)]


@axis_rule("com.microsoft::MatMulNBits")
def _packed_product(step: OperatorStep) -> list[Axes | None] | None:
    axes = step.axes(0)
    if not axes:
        return None
    step.labels.mix([axes[-1]], step.why)
    return [(*axes[:-1], plain(step.attributes.get("N", 1)))]


@axis_rule("Einsum")
def _einsum(step: OperatorStep) -> list[Axes | None] | None:
    equation = str(step.attributes.get("equation", "")).replace(" ", "")
    left, arrow, right = equation.partition("->")
    terms = left.split(",")
    if not arrow or "." in equation or len(terms) != len(step.inputs):
        return None
    columns: dict[str, list[Axis]] = {}
    for index, term in enumerate(terms):
        axes = step.axes(index)
        if axes is None or len(axes) != len(term):
            return None
        for letter, axis in zip(term, axes, strict=True):
            columns.setdefault(letter, []).append(axis)
    if any(letter not in columns for letter in right):
        return None
    known = {letter: joined(column, step.labels) for letter, column in columns.items()}
    for letter, column in columns.items():
        if letter not in right:
            step.labels.mix(column, step.why)
    result = [known[letter] for letter in right]
    return [tuple(axis or () for axis in result)] if None not in result else None


@axis_rule(
    *("Conv", "ConvInteger", "QLinearConv", "com.microsoft::FusedConv", "ConvTranspose"),
    "DeformConv",
)
def _convolution(step: OperatorStep) -> list[Axes | None] | None:
    axes = step.axes(0)
    weight = step.axes(3 if step.op == "QLinearConv" else 1)
    if axes is None or weight is None or len(axes) != len(weight):
        return None
    kernel = [size_of(axis) for axis in weight[2:]]
    transposed = step.op == "ConvTranspose"
    step.labels.mix([axes[1]], step.why)
    if transposed:
        channels = size_of(weight[1]) * step.attributes.get("group", 1)
        spatial = tuple(step.fresh() if _moves(step, axis, size) else axis
                        for axis, size in zip(axes[2:], kernel, strict=True))  # fmt: skip
        return [(axes[0], plain(channels), *spatial)]
    if len(kernel) == 1 and size_of(axes[1]) == 1 and kernel[0] >= _SOUND_WINDOW:
        _limit_sound(step, axes[2], kernel[0])
    return [(axes[0], weight[0], *windows(step, axes[2:], kernel))]


def _limit_sound(step: OperatorStep, axis: Axis, window: int) -> None:
    """Note that an axis, or what was padded, holds samples, and which sizes its windows fill."""
    known = axis[0].label if len(axis) == 1 else None
    label, more = (
        (known, 0) if known is not None else step.labels.padded.get(size_of(axis), (-1, 0))
    )
    if label >= 0:
        more += sum(step.attributes.get("pads", ()))
        hop = int((step.attributes.get("strides") or [1])[0])
        least = max(window - more, 1)
        step.limits.append(SizeLimit(label=label, why=step.why, least=least, samples=True, hop=hop))


def _moves(step: OperatorStep, axis: Axis, size: int) -> bool:
    """Whether a window reads more than one place of an axis; then it mixes along it."""
    strides = step.attributes.get("strides", ())
    if size == 1 and all(stride == 1 for stride in strides):
        return False
    step.mix([axis])
    return True


@axis_rule("MaxPool", "AveragePool", "LpPool")
def _pool(step: OperatorStep) -> list[Axes | None] | None:
    axes = step.axes(0)
    kernel = list(step.attributes.get("kernel_shape", ()))
    if axes is None or len(kernel) != len(axes) - 2:
        return None
    result = (*axes[:2], *windows(step, axes[2:], kernel))
    return [result] * len(step.node.output)


def windows(step: OperatorStep, axes: Axes, kernel: list[int]) -> tuple[Axis, ...]:
    """Return the sides of an image after windows moved over it."""
    count = len(axes)
    strides = step.attributes.get("strides") or (1,) * count
    dilations = step.attributes.get("dilations") or (1,) * count
    pads = step.attributes.get("pads") or (0,) * (2 * count)
    automatic = step.attributes.get("auto_pad", "NOTSET")
    result: list[Axis] = []
    for place, axis in enumerate(axes):
        if not _moves(step, axis, kernel[place]):
            result.append(axis)
            continue
        extent = dilations[place] * (kernel[place] - 1) + 1
        size = size_of(axis)
        if automatic.startswith("SAME"):
            result.append(plain(-(-size // strides[place])))
            continue
        padding = pads[place] + pads[place + count]
        if automatic == "NOTSET" and extent > padding + 1:
            step.limit(axis, least=extent - padding)
        rounding = strides[place] - 1 if step.attributes.get("ceil_mode") else 0
        result.append(plain(max((size + padding - extent + rounding) // strides[place] + 1, 1)))
    return tuple(result)


@axis_rule("GlobalAveragePool", "GlobalMaxPool", "GlobalLpPool")
def _global_pool(step: OperatorStep) -> list[Axes | None] | None:
    axes = step.axes(0)
    if axes is None:
        return None
    step.mix(axes[2:])
    return [axes[:2] + ((),) * (len(axes) - 2)]


@axis_rule("InstanceNormalization", "GroupNormalization", "LRN", "com.microsoft::GroupNorm")
def _norm_of_images(step: OperatorStep) -> list[Axes | None] | None:
    axes = step.axes(0)
    if axes is not None:
        step.mix(axes[1:] if step.op != "LRN" else axes[1:2])
    return [axes]


@axis_rule(
    *("LayerNormalization", "RMSNormalization", "SimplifiedLayerNormalization"),
    *("com.microsoft::SkipLayerNormalization", "com.microsoft::SimplifiedLayerNormalization"),
    "com.microsoft::SkipSimplifiedLayerNormalization",
)
def _norm(step: OperatorStep) -> list[Axes | None] | None:
    axes = step.axes(0)
    if axes is None:
        return None
    result = axes
    if "Skip" in step.op:
        pair = [value for value in (step.value(0), step.value(1)) if value is not None]
        result = broadcast(pair, step.labels) or axes
    place = step.attributes.get("axis", -1) % max(len(axes), 1)
    step.mix(axes[place:])
    statistics = axes[:place] + ((),) * (len(axes) - place)
    outputs: list[Axes | None] = [result, statistics, statistics, result]
    return outputs[: len(step.node.output)]


@axis_rule(
    "Softmax", "LogSoftmax", "Hardmax", "LpNormalization", "CumSum", "MeanVarianceNormalization"
)
def _along(step: OperatorStep) -> list[Axes | None] | None:
    axes = step.axes(0)
    if not axes:
        return [axes]
    if step.op == "MeanVarianceNormalization":
        places = [place % len(axes) for place in step.attributes.get("axes", (0, 2, 3))]
    elif step.op == "CumSum":
        places = [place % len(axes) for place in step.numbers(1) or range(len(axes))]
    elif step.op != "LpNormalization" and step.opset < 13:
        first = step.attributes.get("axis", 1) % len(axes)
        places = list(range(first, len(axes)))
    else:
        places = [step.attributes.get("axis", -1) % len(axes)]
    step.mix([axes[place] for place in places])
    return [axes]


@axis_rule("ArgMax", "ArgMin")
def _position(step: OperatorStep) -> list[Axes | None] | None:
    axes = step.axes(0)
    if not axes:
        return None
    place = step.attributes.get("axis", 0) % len(axes)
    step.mix([axes[place]])
    return [_without(axes, {place}, keep=bool(step.attributes.get("keepdims", 1)))]


def _without(axes: Axes, places: set[int], *, keep: bool) -> Axes:
    if keep:
        return tuple(() if place in places else axis for place, axis in enumerate(axes))
    return tuple(axis for place, axis in enumerate(axes) if place not in places)


@axis_rule(
    *("ReduceL1", "ReduceL2", "ReduceLogSum", "ReduceLogSumExp", "ReduceMax", "ReduceMean"),
    *("ReduceMin", "ReduceProd", "ReduceSum", "ReduceSumSquare"),
)
def _reduce(step: OperatorStep) -> list[Axes | None] | None:
    axes, named = step.axes(0), step.attribute_axes(1)
    if axes is None or (named is None and step.value(1) is not None):
        return None
    if not named:
        if step.attributes.get("noop_with_empty_axes"):
            return [axes]
        named = tuple(range(len(axes)))
    places = {place % max(len(axes), 1) for place in named}
    step.mix([axis for place, axis in enumerate(axes) if place in places])
    return [_without(axes, places, keep=bool(step.attributes.get("keepdims", 1)))]


@axis_rule("TopK")
def _top(step: OperatorStep) -> list[Axes | None] | None:
    axes, count = step.axes(0), step.numbers(1)
    if not axes:
        return None
    count = count or ([step.attributes["k"]] if "k" in step.attributes else None)
    place = step.attributes.get("axis", -1) % len(axes)
    step.mix([axes[place]])
    chosen = plain(max(count[0], 1)) if count else step.fresh()
    result = (*axes[:place], chosen, *axes[place + 1 :])
    return [result, result]


@axis_rule("NonMaxSuppression")
def _chosen_boxes(step: OperatorStep) -> list[Axes | None] | None:
    """Boxes are compared with each other; what is chosen of all images stands in one list."""
    boxes, scores = step.axes(0), step.axes(1)
    if boxes is None or scores is None or len(boxes) != 3 or len(scores) != 3:
        return None
    joined([boxes[0], scores[0]], step.labels)
    joined([boxes[1], scores[2]], step.labels)
    step.mix([*boxes[1:], *scores[1:]])
    step.lose([boxes[0], scores[0]])
    return [(step.fresh(), plain(3))]


@axis_rule("RoiAlign", "MaxRoiPool")
def _regions(step: OperatorStep) -> list[Axes | None] | None:
    """Regions are cut from images that they name: their number is that of one picture."""
    axes, regions = step.axes(0), step.axes(1)
    if axes is None or len(axes) != 4 or not regions:
        return None
    step.mix([*axes[2:], *regions])
    step.lose([axes[0]])
    if step.op == "MaxRoiPool":
        sides = tuple(step.attributes.get("pooled_shape", (1, 1)))
    else:
        sides = tuple(step.attributes.get(f"output_{side}", 1) for side in ("height", "width"))
    return [(regions[0], axes[1], *(plain(side) for side in sides))]


@axis_rule("Det", "com.microsoft::Inverse")
def _matrices(step: OperatorStep) -> list[Axes | None] | None:
    axes = step.axes(0)
    if axes is None or len(axes) < 2:
        return None
    joined(axes[-2:], step.labels)
    step.mix(axes[-2:])
    return [axes[:-2] if step.op == "Det" else axes]


@axis_rule("ReverseSequence")
def _reversed(step: OperatorStep) -> list[Axes | None] | None:
    axes, lengths = step.axes(0), step.axes(1)
    if axes is None or len(axes) < 2:
        return None
    step.mix([axes[step.attributes.get("time_axis", 0)]])
    if lengths:
        joined([axes[step.attributes.get("batch_axis", 1)], lengths[0]], step.labels)
    return [axes]


@axis_rule("LSTM", "GRU", "RNN", "com.microsoft::DynamicQuantizeLSTM")
def _recurrent(step: OperatorStep) -> list[Axes | None] | None:
    axes = step.axes(0)
    if axes is None or len(axes) != 3:
        return None
    first = bool(step.attributes.get("layout", 0))
    batch, sequence = (axes[0], axes[1]) if first else (axes[1], axes[0])
    step.mix([sequence, axes[2]])
    for index, place in ((4, 0), (5, 0 if first else 1), (6, 0 if first else 1)):
        others = step.axes(index) if step.value(index) is not None else None
        if others is not None and len(others) > place:
            batch = joined([batch, others[place]], step.labels) or batch
            step.mix([axis for at, axis in enumerate(others) if at != place])
    directions = plain(2 if step.attributes.get("direction") == "bidirectional" else 1)
    size = plain(step.attributes.get("hidden_size", 1))
    last = (batch, directions, size) if first else (directions, batch, size)
    whole = (batch, sequence, directions, size) if first else (sequence, directions, batch, size)
    outputs: list[Axes | None] = [whole, last, last]
    return outputs[: len(step.node.output)]


@axis_rule("com.microsoft::Attention", "com.microsoft::QAttention")
def _attention(step: OperatorStep) -> list[Axes | None] | None:
    axes = step.axes(0)
    weight = step.axes(1)
    if axes is None or len(axes) != 3 or weight is None:
        return None
    step.mix(axes[1:])
    batch, size = axes[0], max(size_of(weight[-1]) // 3, 1)
    past = step.axes(8 if step.node.op_type == "QAttention" else 4)
    if past and len(past) == 5:
        batch = joined([batch, past[1]], step.labels) or batch
        step.mix(past[2:])
    heads = max(step.attributes.get("num_heads", 1), 1)
    outputs: list[Axes | None] = [(batch, axes[1], plain(size))]
    outputs.append((plain(2), batch, plain(heads), step.fresh(), plain(max(size // heads, 1))))
    return outputs[: len(step.node.output)]


@axis_rule("com.microsoft::MultiHeadAttention", "com.microsoft::GroupQueryAttention", "Attention")
def _attention_of_parts(step: OperatorStep) -> list[Axes | None] | None:
    """Rows of query, key, value and cache belong together; all other axes are mixed."""
    parts = [axes for axes in (step.axes(index) for index in (0, 1, 2)) if axes]
    query = step.axes(0)
    if query is None or len(query) not in (3, 4):
        return None
    cache = [step.axes(index) for index in _CACHE_INPUTS[step.op]]
    batch = query[0]
    for axes in [*parts, *(part for part in cache if part)]:
        batch = joined([batch, axes[0]], step.labels) or batch
        step.mix(axes[1:])
    lengths = step.axes(5) if step.node.op_type == "GroupQueryAttention" else None
    if lengths:
        batch = joined([batch, lengths[0]], step.labels) or batch
    # Query, key and value in one tensor are as wide as all three; the answer is as one of them.
    width = step.fresh() if len(parts) == 1 else query[-1]
    outputs: list[Axes | None] = [(batch, *query[1:-1], width)]
    for part in cache[: len(step.node.output) - 1]:
        if part is None or len(part) != 4:
            return None
        outputs.append((batch, part[1], step.fresh(), part[3]))
    missing = len(step.node.output) - len(outputs)
    return [*outputs, *([None] * missing)]


_CACHE_INPUTS = {
    "com.microsoft::MultiHeadAttention": (6, 7),
    "com.microsoft::GroupQueryAttention": (3, 4),
    "Attention": (4, 5),
}


@axis_rule("com.microsoft::EmbedLayerNormalization", "com.microsoft::QEmbedLayerNormalization")
def _embedding(step: OperatorStep) -> list[Axes | None] | None:
    axes, table = step.axes(0), step.axes(2)
    if axes is None or len(axes) != 2 or table is None:
        return None
    positions = step.axes(3)
    if positions:
        step.limit(axes[1], most=size_of(positions[0]))
    outputs: list[Axes | None] = [(*axes, table[-1]), (axes[0],), (*axes, table[-1])]
    return outputs[: len(step.node.output)]


@axis_rule("STFT")
def _spectrum(step: OperatorStep) -> list[Axes | None] | None:
    axes = step.axes(0)
    if axes is None or len(axes) < 2:
        return None
    window, length, hop = step.axes(2), step.numbers(3), step.numbers(1)
    frame = length[0] if length else size_of(window[0]) if window else 0
    step.limit(axes[1], least=frame, samples=True)
    step.mix(axes[1:])
    bins = frame // 2 + 1 if step.attributes.get("onesided", 1) else frame
    frames = (
        plain(max((size_of(axes[1]) - frame) // hop[0] + 1, 1)) if hop and hop[0] else step.fresh()
    )
    return [(axes[0], frames, plain(bins) if bins else step.fresh(), plain(2))]


@axis_rule("GridSample", "com.microsoft::GridSample")
def _sampled(step: OperatorStep) -> list[Axes | None] | None:
    axes, grid = step.axes(0), step.axes(1)
    if axes is None or grid is None or len(axes) != len(grid):
        return None
    step.mix(axes[2:])
    batch = joined([axes[0], grid[0]], step.labels) or axes[0]
    return [(batch, axes[1], *grid[1:-1])]


@axis_rule(
    *("ai.onnx.ml::LinearClassifier", "ai.onnx.ml::SVMClassifier"),
    *("ai.onnx.ml::TreeEnsembleClassifier", "ai.onnx.ml::LinearRegressor"),
    *("ai.onnx.ml::SVMRegressor", "ai.onnx.ml::TreeEnsembleRegressor", "ai.onnx.ml::TreeEnsemble"),
)
def _rows(step: OperatorStep) -> list[Axes | None] | None:
    axes = step.axes(0)
    if axes is None or len(axes) != 2:
        return None
    step.mix([axes[1]])
    scores: Axes = (axes[0], step.fresh())
    return [(axes[0],), scores] if step.op.endswith("Classifier") else [scores]


@axis_rule("ai.onnx.ml::FeatureVectorizer")
def _columns(step: OperatorStep) -> list[Axes | None] | None:
    parts = [axes for axes in (value.axes for value in step.inputs if value) if axes]
    if len(parts) < len(step.inputs):
        return None
    rows = joined([axes[0] for axes in parts], step.labels)
    if rows is None:
        return None
    for axes in parts:
        step.mix(axes[1:])
    return [(rows, step.fresh())]
