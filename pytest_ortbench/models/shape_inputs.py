"""Rules for inputs that are themselves shapes: values that fit the data and allocate little."""

from __future__ import annotations

from pytest_ortbench.models.consumers import attribute, axis_size, input_shape, rule
from pytest_ortbench.models.dataflow import Dataflow, Use
from pytest_ortbench.models.findings import ConsumerFinding
from pytest_ortbench.models.shape_inference import Shape
from pytest_ortbench.models.symbols import quote

#: Size of an axis that nothing else decides: enough to see, too little to hurt.
_SMALL_SIZE = 4


def declared_length(use: Use, flow: Dataflow) -> int | None:
    """Return the number of elements of the shape, if the model fixes it."""
    size = axis_size(input_shape(use, flow, use.index), 0)
    return size if isinstance(size, int) else None


def declared_output(use: Use, flow: Dataflow) -> Shape | None:
    """Return the shape that the model declares for the result, if it is known in every axis."""
    shape = flow.shape(use.scope, use.node.output[0])
    if shape is None or any(size is None for size in shape):
        return None
    return shape


@rule(("Reshape", 1))
def _reshape(use: Use, flow: Dataflow) -> ConsumerFinding | None:
    why = f"Reshape({use.node.input[0]})"
    if not use.whole:
        return ConsumerFinding(values=("-1",), why=why)
    data = input_shape(use, flow, 0)
    target = known_sizes(declared_output(use, flow))
    length = declared_length(use, flow)
    if target is not None and length in (None, len(target)):
        return ConsumerFinding(values=target, length=len(target), why=why)
    rank = length or (len(data) if data else 1)
    copied = min(rank - 1, len(data) - 1 if data else 0)  # 0 copies the size of that axis
    values = ("0",) * copied + ("-1",) + ("1",) * (rank - copied - 1)
    return ConsumerFinding(values=values, length=rank, why=why)


def known_sizes(shape: Shape | None) -> tuple[str, ...] | None:
    """Return a shape that holds numbers only: a symbol that inference made up has no size."""
    if shape is None or not all(isinstance(size, int) for size in shape):
        return None
    return tuple(str(size) for size in shape)


@rule(("Expand", 1))
def _expand(use: Use, flow: Dataflow) -> ConsumerFinding | None:
    why = f"Expand({use.node.input[0]})"
    data = input_shape(use, flow, 0)
    if not use.whole or data is None:
        return ConsumerFinding(values=("1",), why=why)
    declared = known_sizes(declared_output(use, flow))
    if declared is not None:
        return ConsumerFinding(values=declared, length=len(declared), why=why)
    length = declared_length(use, flow) or len(data)
    # Ones broadcast against anything; leading axes are the new ones.
    sizes = ("2",) * max(length - len(data), 0) + ("1",) * min(length, len(data))
    return ConsumerFinding(values=sizes, length=length, why=why)


@rule(("ConstantOfShape", 0))
def _constant_of_shape(use: Use, flow: Dataflow) -> ConsumerFinding | None:
    declared = known_sizes(declared_output(use, flow)) if use.whole else None
    if declared is not None:
        return ConsumerFinding(values=declared, length=len(declared), why="ConstantOfShape")
    length = declared_length(use, flow) or 2
    return ConsumerFinding(values=(str(_SMALL_SIZE),), length=length, why="ConstantOfShape")


@rule(("Tile", 1))
def _tile(use: Use, flow: Dataflow) -> ConsumerFinding | None:
    data = input_shape(use, flow, 0)
    length = len(data) if data is not None and use.whole else None
    return ConsumerFinding(values=("1",), length=length, why="Tile repeats")


@rule(("Pad", 1))
def _pad(use: Use, flow: Dataflow) -> ConsumerFinding | None:
    data = input_shape(use, flow, 0)
    axes = axis_size(input_shape(use, flow, 3), 0)
    count = axes if isinstance(axes, int) else None if data is None else len(data)
    length = 2 * count if count is not None and use.whole else None
    return ConsumerFinding(values=("0",), length=length, why="Pad amounts")


@rule(("Pad", 3))
def _padded_axes(use: Use, flow: Dataflow) -> ConsumerFinding | None:
    length = declared_length(use, flow) or 1
    return ConsumerFinding(values=tuple(map(str, range(length))), length=length, why="Pad axes")


@rule(("Squeeze", 1))
def _squeeze_axes(use: Use, flow: Dataflow) -> ConsumerFinding | None:
    data = input_shape(use, flow, 0) or ()
    ones = tuple(str(axis) for axis, size in enumerate(data) if size == 1)
    length = declared_length(use, flow)
    values = ones[:length] or ("0",)
    return ConsumerFinding(values=values, length=len(values), why="Squeeze axes of size 1")


def _reduced_axes(use: Use, flow: Dataflow) -> ConsumerFinding | None:
    length = declared_length(use, flow) or 1
    values = tuple(str(-1 - axis) for axis in range(length))
    return ConsumerFinding(values=values, length=length, why=f"{use.op} axes")


for _operator in ("Sum", "Mean", "Max", "Min", "Prod", "L1", "L2", "LogSum", "LogSumExp"):
    rule((f"Reduce{_operator}", 1))(_reduced_axes)
rule(("ReduceSumSquare", 1))(_reduced_axes)


@rule(("Split", 1))
def _split_sizes(use: Use, flow: Dataflow) -> ConsumerFinding | None:
    return _even_parts(use, flow, len(use.node.output))


@rule(("SplitToSequence", 1))
def _sizes_in_sequence(use: Use, flow: Dataflow) -> ConsumerFinding | None:
    """One size for all parts, half of the axis, or a size for each of so many parts."""
    if input_shape(use, flow, 1) != ():
        return _even_parts(use, flow, declared_length(use, flow) or 1)
    size = axis_size(input_shape(use, flow, 0), attribute(use.node, "axis", 0))
    if isinstance(size, int):
        half = str(max(size // 2, 1))
    else:
        half = f"max(1, {quote(size)} // 2)" if size else "1"
    return ConsumerFinding(values=(half,), why="SplitToSequence: parts of half the axis")


def _even_parts(use: Use, flow: Dataflow, parts: int) -> ConsumerFinding:
    axis = attribute(use.node, "axis", 0)
    size = axis_size(input_shape(use, flow, 0), axis)
    why = f"{use.op}({use.node.input[0]}, axis {axis}) into {parts}"
    if isinstance(size, int):
        share, rest = divmod(size, parts)
        values = tuple(str(share + (1 if part < rest else 0)) for part in range(parts))
    elif size:
        text = quote(size)
        first = f"{text} // {parts}"
        values = (first,) * (parts - 1) + (f"{text} - {parts - 1} * ({first})",)
    else:
        values = ("1",)
    return ConsumerFinding(values=values, length=parts, why=why)


@rule(("CenterCropPad", 1))
def _small_shape(use: Use, flow: Dataflow) -> ConsumerFinding | None:
    return ConsumerFinding(
        values=(str(_SMALL_SIZE),), length=declared_length(use, flow), why=f"{use.op} size"
    )


@rule(
    ("HannWindow", 0),
    ("HammingWindow", 0),
    ("BlackmanWindow", 0),
    ("DFT", 1),
    ("STFT", 3),
)
def _window_length(use: Use, _flow: Dataflow) -> ConsumerFinding | None:
    return ConsumerFinding(values=("16",), why=f"{use.op} length")


@rule(("STFT", 1))
def _frame_step(_use: Use, _flow: Dataflow) -> ConsumerFinding | None:
    return ConsumerFinding(values=("8",), why="STFT frame step")
