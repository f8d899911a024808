"""What consumers say about the axes of an input: sizes that weights fix, and which is the batch."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pytest_ortbench.models.consumers import attribute, input_shape
from pytest_ortbench.models.dataflow import Dataflow, Use

if TYPE_CHECKING:
    import onnx

_RECURRENT = frozenset({"LSTM", "GRU", "RNN", "com.microsoft::DynamicQuantizeLSTM"})
_PER_CHANNEL = frozenset({"BatchNormalization", "InstanceNormalization", "PRelu"})
_ELEMENTWISE = frozenset({"Add", "Sub", "Mul", "Div"})
_CONVOLUTIONS = frozenset(
    {"Conv", "ConvTranspose", "ConvInteger", "QLinearConv", "com.microsoft::FusedConv"}
)


@dataclass(frozen=True, slots=True, kw_only=True)
class AxisFact:
    """What one consumer says about one axis of an input.

    Attributes:
        axis: Axis of the input.
        size: Its size, ``None`` if only its role is known.
        is_batch: Whether the consumer reads it as the batch.
        is_length: Whether the consumer appends along it.
    """

    axis: int
    size: int | None = None
    is_batch: bool = False
    is_length: bool = False


def axis_facts(uses: Iterable[Use], flow: Dataflow) -> Iterator[AxisFact]:
    """Yield what the consumers of an input say about its axes, as far as its layout is kept."""
    for use in uses:
        if use.axes is None:
            continue
        for axis, size, is_batch in _facts(use, flow, len(use.axes)):
            if -len(use.axes) <= axis < len(use.axes):
                yield AxisFact(axis=use.axes[axis], size=size, is_batch=is_batch)


_Fact = tuple[int, int | None, bool]


def _facts(use: Use, flow: Dataflow, rank: int) -> Iterator[_Fact]:
    op = use.op
    if op in _RECURRENT:
        yield from _recurrent(use, flow)
    elif op in _CONVOLUTIONS and use.index == 0:
        yield from _convolution(use, flow)
    elif op in ("MatMul", "com.microsoft::FusedMatMul", "MatMulInteger"):
        yield from _product(use, flow, rank)
    elif op in ("Gemm", "com.microsoft::FusedGemm"):
        yield from _general_product(use, flow)
    elif op in _PER_CHANNEL and use.index == 0:
        yield from _sized(1, flow.shape(use.scope, use.node.input[1]), -1 if op != "PRelu" else 0)
    elif op in ("LayerNormalization", "RMSNormalization") and use.index == 0:
        yield from _sized(-1, flow.shape(use.scope, use.node.input[1]), -1)
    elif op == "com.microsoft::MatMulNBits" and use.index == 0:
        yield -1, attribute(use.node, "K", 0) or None, False
    elif op in _ELEMENTWISE:
        yield from _elementwise(use, flow, rank)
    elif op.startswith("ai.onnx.ml::") and use.index == 0:
        yield from _features(use, rank)


def _sized(axis: int, shape: object, index: int) -> Iterator[_Fact]:
    """The axis has the size that stands at ``index`` of a weight's shape, if that is a number."""
    if isinstance(shape, tuple) and -len(shape) <= index < len(shape):
        size = shape[index]
        if isinstance(size, int) and size > 0:
            yield axis, size, False


def _recurrent(use: Use, flow: Dataflow) -> Iterator[_Fact]:
    batch_first = bool(attribute(use.node, "layout", 0))
    weights, recurrence = input_shape(use, flow, 1), input_shape(use, flow, 2)
    if use.index == 0:
        yield (0 if batch_first else 1), None, True
        yield from _sized(2, weights, -1)
    elif use.index == 4:
        yield 0, None, True
    elif use.index in (5, 6):
        yield (0 if batch_first else 1), None, True
        yield from _sized(1 if batch_first else 0, recurrence, 0)
        yield from _sized(2, recurrence, -1)


def _convolution(use: Use, flow: Dataflow) -> Iterator[_Fact]:
    weight = input_shape(use, flow, 3 if use.op == "QLinearConv" else 1)
    yield 0, None, True
    if not weight or len(weight) < 2:
        return
    if use.op == "ConvTranspose":
        yield from _sized(1, weight, 0)
    elif isinstance(weight[1], int):
        yield 1, weight[1] * max(attribute(use.node, "group", 1), 1), False


def _product(use: Use, flow: Dataflow, rank: int) -> Iterator[_Fact]:
    other = input_shape(use, flow, 1 - use.index) if use.index < 2 else None
    if not other or rank == 0:
        return
    if use.index == 0:
        yield from _sized(-1, other, -2 if len(other) > 1 else 0)
    else:
        yield from _sized(-2 if rank > 1 else 0, other, -1)


def _general_product(use: Use, flow: Dataflow) -> Iterator[_Fact]:
    if use.index == 0:
        axis = 0 if attribute(use.node, "transA", 0) else 1
        index = 1 if attribute(use.node, "transB", 0) else 0
        yield from _sized(axis, input_shape(use, flow, 1), index)
        if axis == 1:
            yield 0, None, True


def _elementwise(use: Use, flow: Dataflow, rank: int) -> Iterator[_Fact]:
    """A constant of more than one element fixes the axes that it is broadcast along."""
    name = use.node.input[1 - use.index] if len(use.node.input) == 2 else ""
    if name not in use.scope.constants:
        return
    shape = flow.shape(use.scope, name) or ()
    for axis in range(-min(len(shape), rank), 0):
        size = shape[axis]
        if isinstance(size, int) and size > 1:
            yield axis, size, False


def _features(use: Use, rank: int) -> Iterator[_Fact]:
    """Number of columns that a classical model reads."""
    count = _feature_count(use.node)
    if count and rank:
        yield -1, count, False
        if rank == 2:
            yield 0, None, True


def _scaler(node: onnx.NodeProto) -> int:
    length = max(len(_numbers(node, "offset")), len(_numbers(node, "scale")))
    return length if length > 1 else 0


def _imputer(node: onnx.NodeProto) -> int:
    floats = _numbers(node, "imputed_value_floats")
    length = len(floats or _numbers(node, "imputed_value_int64s"))
    return length if length > 1 else 0


def _linear_classifier(node: onnx.NodeProto) -> int:
    intercepts = len(_numbers(node, "intercepts")) or 1
    return len(_numbers(node, "coefficients")) // intercepts


def _linear_regressor(node: onnx.NodeProto) -> int:
    return len(_numbers(node, "coefficients")) // max(attribute(node, "targets", 1), 1)


def _support_vectors(node: onnx.NodeProto) -> int:
    counts = _numbers(node, "vectors_per_class")
    total = int(sum(counts)) or attribute(node, "n_supports", 0)
    return len(_numbers(node, "support_vectors")) // total if total else 0


def _trees(node: onnx.NodeProto) -> int:
    features = _numbers(node, "nodes_featureids")
    return int(max(features)) + 1 if features else 0


_COLUMNS: dict[str, Callable[[onnx.NodeProto], int]] = {
    "Scaler": _scaler,
    "Imputer": _imputer,
    "LinearClassifier": _linear_classifier,
    "LinearRegressor": _linear_regressor,
    "SVMClassifier": _support_vectors,
    "SVMRegressor": _support_vectors,
    "TreeEnsembleClassifier": _trees,
    "TreeEnsembleRegressor": _trees,
    "TreeEnsemble": _trees,
}


def _feature_count(node: onnx.NodeProto) -> int:
    count = _COLUMNS.get(node.op_type)
    return count(node) if count is not None else 0


def _numbers(node: onnx.NodeProto, name: str) -> tuple[float, ...]:
    for item in node.attribute:
        if item.name == name:
            return tuple(item.floats) or tuple(item.ints)
    return ()
