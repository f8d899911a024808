"""Whether the first filters over a picture read pixels of 0 to 255: by how small their weights are.

A network that was trained on such pixels has weights a hundred times smaller in its first filters
than one trained on pixels of 0 to 1. A normalisation behind them, or the bias that it was folded
into, tells how large their results are.
"""

from __future__ import annotations

from collections import deque
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_ortbench.core.model import TensorInfo, ValueHint

if TYPE_CHECKING:
    import numpy as np
    import onnx
    from numpy.typing import NDArray

#: Operators that hand a picture's values on as they are.
_MOVES = frozenset(
    {
        *("Identity", "Cast", "Reshape", "Unsqueeze", "Squeeze", "Slice", "Transpose", "Pad"),
        *("Concat", "Split", "Gather", "Resize", "Upsample", "SpaceToDepth"),
    }
)
_FILTERS = frozenset({"Conv", "FusedConv"})
#: Operators that are passed, at most, and weights of one filter bank that are looked at.
_MOST_STEPS, _MOST_WEIGHTS = 100, 1 << 18
#: The strongest filter of such pixels is weaker than this, and than what the biases add: with
#: pixels of 0 to 1 no picture would show. Real ones: 0.02 and 0.1, those of 0 to 1 above 0.5.
_WEAKEST = 0.2
#: Results deviate by so many times the sum of a filter's weights, at least; by no more than about
#: 2.6 times where pixels were scaled to deviate by 1.
_LEAST_DEVIATION = 4.0
#: Filters with a smaller share of the largest sum are dead.
_DEAD = 0.01


def byte_pixels(proto: onnx.ModelProto, info: TensorInfo, folder: Path) -> ValueHint | None:
    """Return pixels of 0 to 255, ``None`` where the weights do not show that an input holds them.

    Args:
        proto: The model, with its weights; external ones may be unloaded.
        info: One of its inputs.
        folder: Where its external data lies; checked already.
    """
    if len(info.shape or ()) != 4:
        return None
    graph = proto.graph
    weights = {tensor.name: tensor for tensor in graph.initializer}
    for node in graph.node:
        if node.op_type == "Constant" and not node.domain:
            weights.update(
                (node.output[0], item.t) for item in node.attribute if item.name == "value"
            )
    for node in _first_filters(graph, info.name):
        if _reads_bytes(node, graph, weights, folder):
            why = f"pixels from 0 to 255, by the small weights of {node.op_type} {node.output[0]!r}"
            return ValueHint(kind="uniform", low=0.0, high=255.0, why=why)
    return None


def _first_filters(graph: onnx.GraphProto, name: str) -> list[onnx.NodeProto]:
    """Filters that read an input behind nothing but what moves it."""
    readers: dict[str, list[onnx.NodeProto]] = {}
    for node in graph.node:
        for read in set(node.input):
            readers.setdefault(read, []).append(node)
    filters: list[onnx.NodeProto] = []
    pending, seen = deque([name]), {name}
    while pending and len(seen) <= _MOST_STEPS:
        value = pending.popleft()
        for node in readers.get(value, ()):
            if node.op_type in _FILTERS and node.input[0] == value:
                filters.append(node)
            elif node.op_type in _MOVES and (node.input[0] == value or node.op_type == "Concat"):
                pending.extend(set(node.output) - seen)
                seen.update(node.output)
    return filters


def _reads_bytes(
    node: onnx.NodeProto,
    graph: onnx.GraphProto,
    weights: dict[str, onnx.TensorProto],
    folder: Path,
) -> bool:
    import numpy as np

    filters = _array(weights.get(node.input[1]), folder)
    if filters is None or filters.ndim != 4 or not filters.size:
        return False
    rows = filters.reshape(filters.shape[0], -1)
    normalised = next(
        (
            other
            for other in graph.node
            if other.op_type == "BatchNormalization" and other.input[0] == node.output[0]
        ),
        None,
    )
    if normalised is not None:
        variance = _array(weights.get(normalised.input[4]), folder)
        sums = np.abs(rows).sum(1)
        alive = sums > _DEAD * sums.max(initial=0.0)
        if variance is None or variance.shape != sums.shape or not alive.any():
            return False
        deviations = np.sqrt(np.maximum(variance[alive], 0)) / sums[alive]
        return bool(deviations.max() >= _LEAST_DEVIATION)
    bias = _array(weights.get(node.input[2]), folder) if len(node.input) > 2 else None
    if bias is None or not bias.size:
        return False
    strongest = float(np.sqrt((rows**2).sum(1)).max())
    return strongest < min(_WEAKEST, float(np.median(np.abs(bias))))


def _array(tensor: onnx.TensorProto | None, folder: Path) -> NDArray[np.float64] | None:
    """The numbers of a weight; ``None`` for large ones and those that are no real numbers."""
    from math import prod

    import numpy as np
    from onnx import numpy_helper

    if tensor is None or prod(tensor.dims) > _MOST_WEIGHTS:
        return None
    try:
        array = numpy_helper.to_array(tensor, base_dir=str(folder))
    except (ValueError, TypeError, KeyError, OSError):
        return None  # data that does not fit its own shape: the runtime will say so
    return (
        array.astype(np.float64) if array.dtype.kind == "f" and np.isfinite(array).all() else None
    )
