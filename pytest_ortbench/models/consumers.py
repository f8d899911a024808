"""Operators that accept only certain values, and which: indices, counts, shapes, categories."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from pytest_ortbench.models.dataflow import Dataflow, Use
from pytest_ortbench.models.findings import ConsumerFinding, below
from pytest_ortbench.models.shape_inference import Shape
from pytest_ortbench.models.symbols import quote

if TYPE_CHECKING:
    import numpy as np
    import onnx

Rule = Callable[[Use, Dataflow], "ConsumerFinding | None"]

#: Rules by (operator, input index).
RULES: dict[tuple[str, int], Rule] = {}
#: Rules by (operator without its domain, input index), for operators that no standard domain has.
_IN_ANY_DOMAIN: dict[tuple[str, int], Rule] = {}

#: Ends of slices: larger than any axis, and a valid int32.
_FAR = 2**31 - 1
#: Depth of a OneHot where nothing else says it.
_DEPTH = 10


def rule(*keys: tuple[str, int]) -> Callable[[Rule], Rule]:
    """Register a rule for inputs of operators."""

    def register(function: Rule) -> Rule:
        RULES.update(dict.fromkeys(keys, function))
        return function

    return register


def rule_in_any_domain(*keys: tuple[str, int]) -> Callable[[Rule], Rule]:
    """Register a rule for inputs of custom operators and of functions in the model, by name."""

    def register(function: Rule) -> Rule:
        _IN_ANY_DOMAIN.update(dict.fromkeys(keys, function))
        return function

    return register


def finding_of(use: Use, flow: Dataflow) -> ConsumerFinding | None:
    """Return what one operator says about the values that it reads, ``None`` if nothing."""
    function = RULES.get((use.op, use.index))
    function = function or _IN_ANY_DOMAIN.get((use.node.op_type, use.index))
    return None if function is None else function(use, flow)


def always(finding: ConsumerFinding, *keys: tuple[str, int]) -> None:
    """Register inputs that accept the same values whatever stands around them."""

    def found(_use: Use, _flow: Dataflow) -> ConsumerFinding:
        return finding

    RULES.update(dict.fromkeys(keys, found))


def attribute(node: onnx.NodeProto, name: str, default: int) -> int:
    """Return an integer attribute."""
    for item in node.attribute:
        if item.name == name:
            return int(item.i)
    return default


def input_shape(use: Use, flow: Dataflow, index: int) -> Shape | None:
    """Return the shape of another input of the same operator."""
    names = use.node.input
    if index >= len(names) or not names[index]:
        return None
    return flow.shape(use.scope, names[index])


def axis_size(shape: Shape | None, axis: int) -> int | str | None:
    """Return the size of an axis, ``None`` if the shape or the axis is unknown."""
    if shape is None or not -len(shape) <= axis < len(shape):
        return None
    return shape[axis]


def input_name(use: Use, index: int) -> str:
    """Return the name of an input of the same operator, empty where it is left out."""
    return use.node.input[index] if index < len(use.node.input) else ""


@rule(
    ("Gather", 1),
    ("GatherElements", 1),
    ("com.microsoft::GatherBlockQuantized", 1),
)
def index_into_axis(use: Use, flow: Dataflow) -> ConsumerFinding | None:
    """Return the bound of an index into one axis of the operator's first input."""
    axis = attribute(use.node, "gather_axis", attribute(use.node, "axis", 0))
    size = axis_size(input_shape(use, flow, 0), axis)
    return below(size, use.op, f"{input_name(use, 0)}, axis {axis}")


@rule(("GatherND", 1), ("com.microsoft::GatherND", 1))
def index_into_leading_axes(use: Use, flow: Dataflow) -> ConsumerFinding | None:
    """Return the bound that holds for an index into any of the leading axes of the first input."""
    data, indices = input_shape(use, flow, 0), input_shape(use, flow, 1)
    depth = axis_size(indices, -1)
    if data is None or not isinstance(depth, int):
        return below(None, use.op, input_name(use, 0))
    first = attribute(use.node, "batch_dims", 0)
    sizes = data[first : first + depth]
    numbers = [size for size in sizes if isinstance(size, int)]
    what = f"{input_name(use, 0)}, one of axes {first} to {first + depth - 1}"
    symbols = [size for size in sizes if isinstance(size, str)]
    if symbols:
        parts = [*(f"{quote(size)} - 1" for size in symbols), *(str(n - 1) for n in numbers)]
        text = parts[0] if len(parts) == 1 else f"min({', '.join(parts)})"
        return ConsumerFinding(high_symbol=text, why=f"{use.op}({what})")
    return below(min(numbers, default=None), use.op, what)


@rule(("ArrayFeatureExtractor", 1), ("ai.onnx.ml::ArrayFeatureExtractor", 1))
def _index_into_features(use: Use, flow: Dataflow) -> ConsumerFinding | None:
    size = axis_size(input_shape(use, flow, 0), -1)
    return below(size, use.op, f"{input_name(use, 0)}, last axis")


@rule(("MaxUnpool", 1))
def _index_into_all(use: Use, flow: Dataflow) -> ConsumerFinding | None:
    """Positions in the flat result, which is at least as large as the input."""
    data = input_shape(use, flow, 0)
    if not data or any(size is None for size in data):
        return below(None, use.op, input_name(use, 0))
    count = " * ".join(quote(size) for size in data if size is not None)
    return ConsumerFinding(
        high_symbol=f"{count} - 1", why=f"{use.op}, flat positions in {input_name(use, 0)}"
    )


@rule(("OneHot", 0))
def _one_hot(use: Use, flow: Dataflow) -> ConsumerFinding | None:
    depth = flow.constant(use.scope, input_name(use, 1))
    if depth is None or depth.size != 1:
        return ConsumerFinding(high=_DEPTH - 1, why="OneHot of a depth that is an input")
    return below(int(depth.reshape(-1)[0]), use.op, "depth")


@rule(("OneHot", 1))
def _one_hot_depth(use: Use, flow: Dataflow) -> ConsumerFinding | None:
    axis = attribute(use.node, "axis", -1)
    size = axis_size(flow.shape(use.scope, use.node.output[0]), axis)
    depth = size if isinstance(size, int) and size > 0 else _DEPTH
    return ConsumerFinding(values=(str(depth),), why="OneHot depth")


@rule(("NegativeLogLikelihoodLoss", 1), ("SoftmaxCrossEntropyLoss", 1))
def _labels(use: Use, flow: Dataflow) -> ConsumerFinding | None:
    classes = axis_size(input_shape(use, flow, 0), 1)
    return below(classes, use.op, f"{input_name(use, 0)}, classes on axis 1")


@rule(("TensorScatter", 2))
def _first_written(use: Use, flow: Dataflow) -> ConsumerFinding | None:
    """Where an update begins in the cache: it must end inside."""
    axis = attribute(use.node, "axis", -2)
    cache = axis_size(input_shape(use, flow, 0), axis)
    update = axis_size(input_shape(use, flow, 1), axis)
    why = f"TensorScatter({input_name(use, 0)}, axis {axis}): the update fits behind it"
    if cache is None or update is None:
        return ConsumerFinding(high=0, why=why)
    if isinstance(cache, int) and isinstance(update, int):
        return ConsumerFinding(high=max(cache - update, 0), why=why)
    return ConsumerFinding(high_symbol=f"max(0, {quote(cache)} - {quote(update)})", why=why)


@rule(("Attention", 6))
def _valid_keys(use: Use, flow: Dataflow) -> ConsumerFinding | None:
    """How many keys of each batch item hold something: all of them."""
    keys = input_shape(use, flow, 1)
    size = axis_size(keys, -2)
    return ConsumerFinding(
        values=("1" if size is None else quote(size),), why="Attention nonpad_kv_seqlen: all keys"
    )


@rule(("TopK", 1))
def _count_of_top(use: Use, flow: Dataflow) -> ConsumerFinding | None:
    axis = attribute(use.node, "axis", -1)
    size = axis_size(input_shape(use, flow, 0), axis)
    why = f"TopK({input_name(use, 0)}, axis {axis}" + (f" of size {size})" if size else ")")
    if isinstance(size, int):
        return ConsumerFinding(values=(str(max(min(5, size), 1)),), why=why)
    return ConsumerFinding(values=(f"min(5, {quote(size)})" if size else "1",), why=why)


@rule(("LSTM", 4), ("GRU", 4), ("RNN", 4), ("com.microsoft::DynamicQuantizeLSTM", 4))
def _sequence_lengths(use: Use, flow: Dataflow) -> ConsumerFinding | None:
    axis = 1 if attribute(use.node, "layout", 0) else 0
    size = axis_size(input_shape(use, flow, 0), axis)
    why = f"{use.op} sequence_lens, at most axis {axis} of {input_name(use, 0)}"
    # The whole sequence: a shorter one would be less work than the sizes say.
    return ConsumerFinding(values=("1" if size is None else quote(size),), why=why)


@rule(("ReverseSequence", 1))
def _reversed_lengths(use: Use, flow: Dataflow) -> ConsumerFinding | None:
    axis = attribute(use.node, "time_axis", 0)
    size = axis_size(input_shape(use, flow, 0), axis)
    why = f"ReverseSequence lengths, at most axis {axis} of {input_name(use, 0)}"
    return ConsumerFinding(values=("1" if size is None else quote(size),), why=why)


@rule(("com.microsoft::EmbedLayerNormalization", 0), ("com.microsoft::QEmbedLayerNormalization", 0))
def _word_ids(use: Use, flow: Dataflow) -> ConsumerFinding | None:
    return below(axis_size(input_shape(use, flow, 2), 0), use.op, "word embedding")


@rule(("com.microsoft::EmbedLayerNormalization", 1), ("com.microsoft::QEmbedLayerNormalization", 1))
def _segment_ids(use: Use, flow: Dataflow) -> ConsumerFinding | None:
    return below(axis_size(input_shape(use, flow, 4), 0), use.op, "segment embedding")


@rule(("com.microsoft::EmbedLayerNormalization", 8))
def _position_ids(use: Use, flow: Dataflow) -> ConsumerFinding | None:
    return below(axis_size(input_shape(use, flow, 3), 0), use.op, "position embedding")


@rule(("com.microsoft::RotaryEmbedding", 1))
def _rotary_positions(use: Use, flow: Dataflow) -> ConsumerFinding | None:
    return below(axis_size(input_shape(use, flow, 2), 0), use.op, "cosine table")


@rule(("RotaryEmbedding", 3))
def _rotary_positions_of_onnx(use: Use, flow: Dataflow) -> ConsumerFinding | None:
    return below(axis_size(input_shape(use, flow, 1), 0), use.op, "cosine table")


@rule(
    ("com.microsoft::EmbedLayerNormalization", 7),
    ("com.microsoft::QEmbedLayerNormalization", 7),
    ("com.microsoft::Attention", 3),
    ("com.microsoft::MultiHeadAttention", 4),
    ("com.microsoft::QAttention", 5),
)
def _fused_mask(use: Use, flow: Dataflow) -> ConsumerFinding | None:
    mask = input_shape(use, flow, use.index)
    data = input_shape(use, flow, 0)
    if mask is not None and len(mask) == 1:  # one length a batch item
        size = axis_size(data, 1)
        return ConsumerFinding(values=(quote(size) if size else "1",), why=f"{use.op} key lengths")
    return ConsumerFinding(kind="ones", why=f"{use.op} mask")


@rule(("com.microsoft::GroupQueryAttention", 5), ("com.microsoft::GroupQueryAttention", 6))
def _lengths_of_group_query(use: Use, flow: Dataflow) -> ConsumerFinding | None:
    past = axis_size(input_shape(use, flow, 3), 2)
    new = axis_size(input_shape(use, flow, 0), 1)
    if past is None or new is None:
        return None
    total = f"{quote(past)} + {quote(new)}"
    if use.index == 5:
        return ConsumerFinding(values=(f"{total} - 1",), why="GroupQueryAttention seqlens_k")
    return ConsumerFinding(values=(total,), why="GroupQueryAttention total_sequence_length")


@rule(("RoiAlign", 2), ("com.microsoft::CropAndResize", 2))
def _batch_indices(use: Use, flow: Dataflow) -> ConsumerFinding | None:
    size = axis_size(input_shape(use, flow, 0), 0)
    return below(size, use.op, f"{input_name(use, 0)}, axis 0")


@rule(("Div", 1), ("Mod", 1))
def _divisor(use: Use, _flow: Dataflow) -> ConsumerFinding | None:
    if not use.reads_integers:
        return None
    # An integer division by zero kills the process (SIGFPE).
    return ConsumerFinding(low=1, high=9, why=f"{use.op} divisor, not zero")


def _counts_up(numbers: np.ndarray) -> bool:
    """Whether a constant holds 0, 1, 2, …: what is compared with it becomes one-hot."""
    flat = numbers.reshape(-1)
    whole = flat.dtype.kind in "iu" and flat.size > 2
    return whole and all(int(number) == place for place, number in enumerate(flat))


@rule(("Equal", 0), ("Equal", 1))
def _compared(use: Use, flow: Dataflow) -> ConsumerFinding | None:
    """A scalar that is compared with a constant is a switch: take the value it is compared with.

    Text that is compared with a constant is sometimes that text, whatever its shape.
    """
    shape = input_shape(use, flow, use.index)
    other = flow.constant(use.scope, input_name(use, 1 - use.index))
    if other is not None and use.reads_integers and _counts_up(other):
        return below(other.size, "Equal", f"{input_name(use, 1 - use.index)}, one place each")
    if other is None or other.size != 1:
        return None
    value = other.reshape(-1)[0]
    if other.dtype.kind in "OSU":
        text = value.decode() if isinstance(value, bytes) else str(value)
        return ConsumerFinding(choices=(text, "something else"), why=f"Equal to {text!r}")
    if other.dtype.kind in "iu" and shape in ((), (1,)):
        return ConsumerFinding(values=(str(int(value)),), why=f"Equal to {int(value)}")
    return None


@rule(("Unsqueeze", 1))
def _new_axes(use: Use, flow: Dataflow) -> ConsumerFinding | None:
    length = axis_size(input_shape(use, flow, 1), 0)
    count = length if isinstance(length, int) and use.whole else 1
    return ConsumerFinding(values=tuple(map(str, range(count))), length=count, why="Unsqueeze axes")


always(
    ConsumerFinding(values=("0",), why="position in the sequence"),
    ("SequenceAt", 1),
    ("SequenceInsert", 2),
    ("SequenceErase", 1),
)
always(ConsumerFinding(low=0, high=7, why="BitShift amount"), ("BitShift", 1))
always(ConsumerFinding(values=("1",), why="If condition: the first branch"), ("If", 0))
always(ConsumerFinding(values=("4",), why="Loop trip count"), ("Loop", 0))
always(ConsumerFinding(values=("1",), why="Loop condition"), ("Loop", 1))
always(ConsumerFinding(values=("0",), why="Dropout ratio"), ("Dropout", 1))
always(ConsumerFinding(values=("0",), why="Dropout training mode off"), ("Dropout", 2))
always(ConsumerFinding(values=("0",), why="Range start", is_guess=True), ("Range", 0))
always(ConsumerFinding(values=("1",), why="Range step", is_guess=True), ("Range", 2))
always(ConsumerFinding(values=("0",), why="axis"), ("CumSum", 1), ("CumProd", 1), ("Trilu", 1))
always(
    ConsumerFinding(values=("-2",), why="DFT axis: the last before real and imaginary"), ("DFT", 2)
)
always(
    ConsumerFinding(values=("10",), why="NonMaxSuppression boxes per class"),
    ("NonMaxSuppression", 2),
)
always(
    ConsumerFinding(values=("0.5",), why="NonMaxSuppression overlap threshold"),
    ("NonMaxSuppression", 3),
)
always(
    ConsumerFinding(values=("0.1",), why="NonMaxSuppression score threshold"),
    ("NonMaxSuppression", 4),
)
always(ConsumerFinding(low=0, high=1, why="condition"), ("Where", 0), ("Compress", 1))


@rule(("Range", 1))
def _range_limit(use: Use, flow: Dataflow) -> ConsumerFinding | None:
    """A few steps, and no more than the table has rows that the counted numbers index."""
    limit = 16
    for counted in flow.uses(use.node.output[0], 1, scope=use.scope):
        if RULES.get((counted.op, counted.index)) is index_into_axis:
            bound = index_into_axis(counted, flow)
            if bound is not None and bound.high is not None:
                limit = min(limit, int((bound.high - counted.offset) / (counted.scale or 1)) + 1)
    return ConsumerFinding(values=(str(max(limit, 1)),), why="Range limit", is_guess=True)


# A box whose corners are the wrong way round has a negative size, which overflows in there.
always(ConsumerFinding(values=("0", "0", "8", "8"), why="RoiAlign boxes"), ("RoiAlign", 1))
always(
    ConsumerFinding(values=("0", "0", "0", "8", "8"), why="MaxRoiPool image and box"),
    ("MaxRoiPool", 1),
)
always(
    ConsumerFinding(values=("0", "0", "1", "1"), why="CropAndResize boxes: the whole image"),
    ("com.microsoft::CropAndResize", 1),
)


@rule(("Slice", 1))
def _starts(use: Use, flow: Dataflow) -> ConsumerFinding | None:
    return ConsumerFinding(values=("0",), length=_slice_length(use, flow), why="Slice starts")


@rule(("Slice", 4))
def _steps(use: Use, flow: Dataflow) -> ConsumerFinding | None:
    return ConsumerFinding(values=("1",), length=_slice_length(use, flow), why="Slice steps")


@rule(("Slice", 2))
def _ends(use: Use, flow: Dataflow) -> ConsumerFinding | None:
    return ConsumerFinding(values=(str(_FAR),), length=_slice_length(use, flow), why="Slice ends")


@rule(("Slice", 3))
def _axes(use: Use, flow: Dataflow) -> ConsumerFinding | None:
    length = _slice_length(use, flow)
    values = tuple(str(axis) for axis in range(length or 1))
    return ConsumerFinding(values=values, length=length, why="Slice axes")


def _slice_length(use: Use, flow: Dataflow) -> int | None:
    """How many axes are cut, from whichever of the four lists has a known length."""
    if not use.whole:
        return None
    for index in range(1, 5):
        size = axis_size(input_shape(use, flow, index), 0)
        if isinstance(size, int):
            return size
    return 1
