"""Rules for inputs that say how an image is resized, unpooled, unfolded or sampled."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

from pytest_ortbench.models.consumers import axis_size, input_shape, rule
from pytest_ortbench.models.dataflow import Dataflow, Use
from pytest_ortbench.models.findings import ConsumerFinding
from pytest_ortbench.models.shape_inference import Shape
from pytest_ortbench.models.shape_inputs import declared_length, declared_output, known_sizes
from pytest_ortbench.models.symbols import quote

#: Spatial size where nothing else decides.
_SMALL_IMAGE = 32
#: Channels of a sampled image where nothing else decides.
_CHANNELS = 3


def _texts(shape: Shape) -> tuple[str, ...]:
    return tuple("1" if size is None else quote(size) for size in shape)


def integers(use: Use, name: str) -> list[int]:
    """Return an attribute that is a list of integers, empty where it is left out."""
    return next((list(item.ints) for item in use.node.attribute if item.name == name), [])


def _of_axes(use: Use, values: Sequence[str], rank: int) -> tuple[str, ...]:
    """What Resize takes of one value an axis: those of the axes that it names."""
    axes = integers(use, "axes")
    return tuple(values[axis % rank] for axis in axes) if axes else tuple(values)


@rule(("Resize", 3))
def _resize_sizes(use: Use, flow: Dataflow) -> ConsumerFinding | None:
    data = input_shape(use, flow, 0)
    declared = known_sizes(declared_output(use, flow))
    if not use.whole or not data:
        return ConsumerFinding(values=(str(_SMALL_IMAGE),), why="Resize sizes", is_guess=True)
    values = declared or (
        *_texts(data[:2]),
        *(f"2 * {quote(size)}" if size else str(_SMALL_IMAGE) for size in data[2:]),
    )
    if len(values) != len(data):
        return None
    taken = _of_axes(use, values, len(data))
    why = f"Resize({use.node.input[0]})"
    return ConsumerFinding(values=taken, length=len(taken), why=why, is_guess=not declared)


@rule(("Resize", 2), ("Upsample", 1))
def _resize_scales(use: Use, flow: Dataflow) -> ConsumerFinding | None:
    data = input_shape(use, flow, 0)
    if not data or not use.whole:
        return ConsumerFinding(values=("1",), why=f"{use.op} scales")
    values = ("1",) * min(len(data), 2) + ("2",) * max(len(data) - 2, 0)
    taken = _of_axes(use, values, len(data))
    return ConsumerFinding(values=taken, length=len(taken), why=f"{use.op} scales")


@rule(("Resize", 1))
def _resize_region(use: Use, flow: Dataflow) -> ConsumerFinding | None:
    if len(use.node.input) == 2:  # operator set 10: the scales stand there
        return _resize_scales(use, flow)
    data = input_shape(use, flow, 0)
    if data is None:
        return None
    count = len(integers(use, "axes")) or len(data)
    values = ("0",) * count + ("1",) * count
    return ConsumerFinding(values=values, length=len(values), why="Resize region: all of it")


@rule(("MaxUnpool", 2))
def _unpooled_shape(use: Use, flow: Dataflow) -> ConsumerFinding | None:
    """The shape that is declared, else the one that was pooled."""
    data = input_shape(use, flow, 0)
    declared = known_sizes(declared_output(use, flow))
    if not use.whole or not data or len(data) < 3:
        return None
    kernel, strides, pads = (integers(use, name) for name in ("kernel_shape", "strides", "pads"))
    count = len(data) - 2
    strides, pads = strides or [1] * count, pads or [0] * 2 * count
    if len(kernel) != count:
        return None
    spatial = ["1"] * count
    for axis, size in enumerate(data[2:]):
        if size:
            less = pads[axis] + pads[axis + count]
            spatial[axis] = f"({quote(size)} - 1) * {strides[axis]} + {kernel[axis]} - {less}"
    values = declared or (*_texts(data[:2]), *spatial)
    return ConsumerFinding(values=values, length=len(values), why="MaxUnpool output shape")


@rule(("AffineGrid", 1))
def _sampled_size(use: Use, flow: Dataflow) -> ConsumerFinding | None:
    """As many images as there are transforms; two or three spatial axes."""
    transforms = input_shape(use, flow, 0)
    rows = axis_size(transforms, -2)
    spatial = rows if isinstance(rows, int) else (declared_length(use, flow) or 4) - 2
    images = axis_size(transforms, 0)
    grid = known_sizes(declared_output(use, flow))
    sizes = grid[1:-1] if grid and len(grid) == spatial + 2 else (str(_SMALL_IMAGE),) * spatial
    first = "1" if images is None else quote(images)
    values = (first, str(_CHANNELS), *sizes)
    return ConsumerFinding(values=values, length=len(values), why="AffineGrid size")


@rule(("Col2Im", 1), ("Col2Im", 2))
def _unfolded(use: Use, flow: Dataflow) -> ConsumerFinding | None:
    """Image and block that fit the columns: their number, and the positions of the block.

    Where no size is declared the block is one pixel, and the image one line of all positions.
    """
    columns = input_shape(use, flow, 0)
    declared = flow.shape(use.scope, use.node.output[0])
    image: Sequence[str] | None = None
    block: Sequence[str] | None = None
    if declared is not None and columns is not None and len(columns) == 3:
        numbers = [size for size in declared[1:] if isinstance(size, int)]
        if len(numbers) == len(declared) - 1 and isinstance(columns[1], int):
            blocks = _fitting_block(use, numbers, columns)
            if blocks is not None:
                image, block = [str(size) for size in numbers[1:]], [str(size) for size in blocks]
    if image is None or block is None:
        rank = len(integers(use, "strides")) or declared_length(use, flow) or 2
        last = axis_size(columns, 2)
        positions = "1" if last is None else quote(last)
        pads, strides = _windows(use, rank)[:2]
        taken = pads[-1] + pads[rank - 1]
        image = ["1"] * (rank - 1) + [f"max(1, ({positions} - 1) * {strides[-1]} + 1 - {taken})"]
        block = ["1"] * rank
    values = tuple(image if use.index == 1 else block)
    return ConsumerFinding(values=values, length=len(values), why="Col2Im image and block")


def _windows(use: Use, rank: int) -> tuple[list[int], list[int], list[int]]:
    """Pads, strides and dilations of a Col2Im."""
    return (
        integers(use, "pads") or [0] * 2 * rank,
        integers(use, "strides") or [1] * rank,
        integers(use, "dilations") or [1] * rank,
    )


def _fitting_block(use: Use, sizes: Sequence[int], columns: Shape) -> tuple[int, ...] | None:
    """The first block whose volume and positions are those of the columns."""
    channels, *image = sizes
    volume, positions = columns[1], columns[2]
    if not isinstance(volume, int) or not channels or volume % channels:
        return None
    volume //= channels
    rank = len(image)
    pads, strides, dilations = _windows(use, rank)
    if len(pads) != 2 * rank or len(strides) != rank or len(dilations) != rank:
        return None
    padded = [size + pads[axis] + pads[axis + rank] for axis, size in enumerate(image)]
    divisors = [size for size in range(1, min(volume, max(padded)) + 1) if volume % size == 0]
    for block in itertools.product(divisors, repeat=rank):
        if math.prod(block) != volume:
            continue
        steps = [
            (padded[axis] - dilations[axis] * (size - 1) - 1) // strides[axis] + 1
            for axis, size in enumerate(block)
        ]
        if min(steps) >= 1 and (not isinstance(positions, int) or math.prod(steps) == positions):
            return block
    return None
