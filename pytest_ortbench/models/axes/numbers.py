"""The few numbers that a graph computes of sizes and constants, such as targets of Reshape."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pytest_ortbench.models.axes.values import TracedValue, size_of

if TYPE_CHECKING:
    import numpy as np
    import onnx

    Array = np.ndarray[Any, Any]

#: Values with more elements than this are no sizes.
MOST = 4096

Attributes = Mapping[str, Any]


def attributes_of(node: onnx.NodeProto) -> dict[str, Any]:
    """Return the attributes of a node that are numbers, texts or tensors, by name."""
    from onnx import AttributeProto

    kinds = AttributeProto
    found: dict[str, Any] = {}
    for item in node.attribute:
        if item.type == kinds.INT:
            found[item.name] = item.i
        elif item.type == kinds.FLOAT:
            found[item.name] = item.f
        elif max(len(item.ints), len(item.floats)) > MOST:
            continue  # the leaves of trees
        elif item.type == kinds.INTS:
            found[item.name] = tuple(item.ints)
        elif item.type == kinds.FLOATS:
            found[item.name] = tuple(item.floats)
        elif item.type == kinds.STRING:
            found[item.name] = item.s.decode(errors="replace")
        elif item.type == kinds.TENSOR:
            found[item.name] = item.t
    return found


def computed(
    node: onnx.NodeProto, inputs: Sequence[TracedValue | None], attributes: Attributes
) -> Array | None:
    """Return what a node gives, where its inputs are known numbers or it asks for sizes.

    Args:
        node: The node.
        inputs: What it reads, ``None`` for what is left out.
        attributes: Its attributes.
    """
    import numpy as np

    if node.op_type in ("Shape", "Size") and inputs and inputs[0] is not None:
        axes = inputs[0].axes
        if axes is None:
            return None
        sizes = np.array([size_of(axis) for axis in axes], dtype=object)
        if node.op_type == "Size":
            return np.array(sizes.prod() if len(sizes) else 1, dtype=object)
        return sizes[attributes.get("start", 0) : attributes.get("end")]
    rule = _RULES.get(node.op_type)
    if rule is None:
        return None
    arrays: list[Array | None] = []
    for value in inputs:
        if value is not None and value.numbers is None:
            return None
        arrays.append(None if value is None else value.numbers)
    try:
        with np.errstate(all="ignore"):
            result = np.asarray(rule(arrays, attributes))
    except (ArithmeticError, ValueError, TypeError, IndexError, KeyError):
        return None  # the numbers don't fit each other at these sizes
    return result if result.size <= MOST else None


def _exact(array: Array) -> Array:
    """Whole numbers as those of Python, so that no product of large sizes wraps round."""
    return array.astype(object) if array.dtype.kind in "iu" else array


def _axes(arrays: Sequence[Array | None], attributes: Attributes) -> tuple[int, ...] | None:
    second = arrays[1] if len(arrays) > 1 else None
    if second is not None:
        return tuple(int(axis) for axis in second.reshape(-1))
    axes = attributes.get("axes")
    return None if axes is None else tuple(axes)


def _cast(arrays: Sequence[Any], attributes: Attributes) -> Array:
    to = attributes.get("to", 0)
    array: Array = arrays[0]
    if to in (2, 3, 4, 5, 6, 7, 12, 13):
        return _whole(array)
    kind = {9: "bool", 1: "float64", 10: "float64", 11: "float64", 16: "float64"}[to]
    result: Array = array.astype(kind)
    return result


def _whole(array: Array) -> Array:
    import numpy as np

    flat = [int(number) for number in array.reshape(-1)]
    whole: Array = np.array(flat, dtype=object).reshape(array.shape)
    return whole


def _divided(arrays: Sequence[Any], _attributes: Attributes) -> Any:
    first, second = arrays
    if "f" in (first.dtype.kind, second.dtype.kind):
        return first.astype("float64") / second.astype("float64")
    return first.astype(object) // second.astype(object)


def _unsqueezed(arrays: Sequence[Any], attributes: Attributes) -> Array:
    import numpy as np

    axes = _axes(arrays, attributes) or ()
    rank = arrays[0].ndim + len(axes)
    expanded: Array = np.expand_dims(arrays[0], tuple(axis % rank for axis in axes))
    return expanded


def _squeezed(arrays: Sequence[Any], attributes: Attributes) -> Array:
    import numpy as np

    squeezed: Array = np.squeeze(arrays[0], _axes(arrays, attributes))
    return squeezed


def _sliced(arrays: Sequence[Any], attributes: Attributes) -> Array:
    data = arrays[0]
    lists = [
        None if index >= len(arrays) or arrays[index] is None else list(arrays[index].reshape(-1))
        for index in range(1, 5)
    ]
    starts, ends, axes, steps = lists
    if starts is None:
        starts, ends = list(attributes["starts"]), list(attributes["ends"])
        axes = list(attributes.get("axes", range(len(starts))))
    ends = ends or []
    cuts = [slice(None)] * data.ndim
    for place, axis in enumerate(axes or range(len(starts))):
        step = int(steps[place]) if steps else 1
        end: int | None = int(ends[place])
        if step < 0 and end is not None and end <= -data.shape[int(axis)] - 1:
            end = None
        cuts[int(axis)] = slice(int(starts[place]), end, step)
    result: Array = data[tuple(cuts)]
    return result


def _constant_of_shape(arrays: Sequence[Any], attributes: Attributes) -> Array:
    import numpy as np
    from onnx import numpy_helper

    shape = tuple(int(size) for size in arrays[0].reshape(-1))
    _refuse_large(shape)
    tensor = attributes.get("value")
    value = 0.0 if tensor is None else numpy_helper.to_array(tensor).reshape(-1)[0]
    return _exact(np.full(shape, value))


def _refuse_large(shape: Sequence[int]) -> None:
    from math import prod

    if prod(shape) > MOST or min(shape, default=0) < 0:
        raise ValueError("more numbers than sizes are")


def _counted(arrays: Sequence[Any], _attributes: Attributes) -> Array:
    import numpy as np

    start, limit, step = (array.reshape(-1)[0] for array in arrays)
    if step == 0 or (limit - start) / step > MOST:
        raise ValueError("more numbers than sizes are")
    return _exact(np.arange(start, limit, step))


def _expanded(arrays: Sequence[Any], _attributes: Attributes) -> Array:
    import numpy as np

    shape = tuple(int(size) for size in arrays[1].reshape(-1))
    _refuse_large(shape)
    return np.broadcast_to(arrays[0], np.broadcast_shapes(arrays[0].shape, shape))


def _reshaped(arrays: Sequence[Any], _attributes: Attributes) -> Array:
    sizes = [int(size) for size in arrays[1].reshape(-1)]
    sizes = [arrays[0].shape[place] if size == 0 else size for place, size in enumerate(sizes)]
    result: Array = arrays[0].reshape(sizes)
    return result


def _reduced(name: str) -> Callable[[Sequence[Any], Attributes], Any]:
    def rule(arrays: Sequence[Any], attributes: Attributes) -> Any:
        axes = _axes(arrays, attributes)
        keep = bool(attributes.get("keepdims", 1))
        return getattr(arrays[0], name)(axis=axes, keepdims=keep)

    return rule


def _with_numpy(name: str) -> Callable[[Sequence[Any], Attributes], Any]:
    def rule(arrays: Sequence[Any], _attributes: Attributes) -> Any:
        import numpy as np

        return getattr(np, name)(*arrays)

    return rule


def _rounded(name: str) -> Callable[[Sequence[Any], Attributes], Any]:
    def rule(arrays: Sequence[Any], _attributes: Attributes) -> Any:
        import numpy as np

        return getattr(np, name)(arrays[0].astype("float64"))

    return rule


def _gathered(arrays: Sequence[Any], attributes: Attributes) -> Any:
    return arrays[0].take(arrays[1].astype("int64"), axis=attributes.get("axis", 0))


def _chained(arrays: Sequence[Any], attributes: Attributes) -> Any:
    import numpy as np

    return np.concatenate([_exact(array) for array in arrays], axis=attributes.get("axis", 0))


_RULES: dict[str, Callable[[Sequence[Any], Attributes], Any]] = {
    "Identity": lambda arrays, _: arrays[0],
    "Cast": _cast,
    "Add": lambda arrays, _: _exact(arrays[0]) + _exact(arrays[1]),
    "Sub": lambda arrays, _: _exact(arrays[0]) - _exact(arrays[1]),
    "Mul": lambda arrays, _: _exact(arrays[0]) * _exact(arrays[1]),
    "Div": _divided,
    "Mod": lambda arrays, _: _exact(arrays[0]) % _exact(arrays[1]),
    "Neg": lambda arrays, _: -_exact(arrays[0]),
    "Floor": _rounded("floor"),
    "Ceil": _rounded("ceil"),
    "Round": _rounded("round"),
    "Sqrt": _rounded("sqrt"),
    "Max": lambda arrays, _: _with_numpy("maximum")(arrays, {}) if len(arrays) == 2 else arrays[0],
    "Min": lambda arrays, _: _with_numpy("minimum")(arrays, {}) if len(arrays) == 2 else arrays[0],
    "Equal": lambda arrays, _: arrays[0] == arrays[1],
    "Greater": lambda arrays, _: arrays[0] > arrays[1],
    "GreaterOrEqual": lambda arrays, _: arrays[0] >= arrays[1],
    "Less": lambda arrays, _: arrays[0] < arrays[1],
    "LessOrEqual": lambda arrays, _: arrays[0] <= arrays[1],
    "Not": lambda arrays, _: ~arrays[0].astype(bool),
    "And": lambda arrays, _: arrays[0].astype(bool) & arrays[1].astype(bool),
    "Or": lambda arrays, _: arrays[0].astype(bool) | arrays[1].astype(bool),
    "Where": lambda arrays, _: _with_numpy("where")([arrays[0].astype(bool), *arrays[1:]], {}),
    "Gather": _gathered,
    "Concat": _chained,
    "Unsqueeze": _unsqueezed,
    "Squeeze": _squeezed,
    "Slice": _sliced,
    "Reshape": _reshaped,
    "Transpose": lambda arrays, attributes: arrays[0].transpose(attributes.get("perm")),
    "ConstantOfShape": _constant_of_shape,
    "Range": _counted,
    "Expand": _expanded,
    "ReduceProd": _reduced("prod"),
    "ReduceSum": _reduced("sum"),
    "ReduceMax": _reduced("max"),
    "ReduceMin": _reduced("min"),
}
