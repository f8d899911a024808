"""What an image is looked at for: by how the outputs grow with its sides, and by its windows.

A walk gives every open side a large prime, so that the size of an output tells what it was made of:
as large as the side (a map), a part of it (columns of a line), or as both sides multiplied (boxes).
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import TYPE_CHECKING

from pytest_ortbench.models.axes.values import (
    LARGEST_WRITTEN,
    Axes,
    TracedValue,
    is_open,
    plain,
    size_of,
)

if TYPE_CHECKING:
    import onnx

#: Channels of images.
_CHANNELS = (1, 3, 4)
#: A line of text is fed at such heights; what is higher is a picture.
_HIGHEST_LINE = 64
#: A map is not more than so many times smaller than its image, or larger.
_COARSEST, _FINEST = 8, 1.5
#: Detectors divide the sides by 32 at most, so they give at least this part of all places.
_COARSEST_PLACES = 64**2
#: A window as large as its step: it cuts an image into the patches of a transformer.
_PATCH = 8
#: Steps of the maps in which detectors look for boxes, and how many they expect at one place.
_STRIDES = ((8, 16, 32), (8, 16, 32, 64), (8, 16, 32, 64, 128), (4, 8, 16, 32), (16, 32))
_MOST_BOXES = 9
_MAP_STEPS = (8, 16, 32, 64)
_WINDOWS = frozenset({"Conv", "MaxPool", "AveragePool"})


def sides_of(axes: Axes) -> tuple[int, int] | None:
    """Return the places of height and width in the axes of an input, ``None`` if it is no image."""
    if len(axes) != 4:
        return None
    if size_of(axes[1]) in _CHANNELS:
        return 2, 3
    return (1, 2) if size_of(axes[3]) in _CHANNELS else None


def with_channels(graph: onnx.GraphProto, name: str, axes: Axes | None) -> Axes | None:
    """Return the axes of an input, with the channels that a window reads where they are open."""
    if axes is None or len(axes) != 4 or not is_open(axes[1]):
        return axes
    weights = {tensor.name: list(tensor.dims) for tensor in graph.initializer}
    for node in graph.node:
        if node.op_type == "Conv" and node.input[:1] == [name]:
            window = weights.get((*node.input, "")[1], [])
            known = len(window) == 4 and window[1] > 0
            return (axes[0], plain(window[1]), *axes[2:]) if known else axes
    return axes


def image_kind(
    graph: onnx.GraphProto, axes: Axes, outputs: Sequence[tuple[str, TracedValue]]
) -> tuple[str, str]:
    """Return a key of :data:`~pytest_ortbench.core.model.IMAGE_KINDS`, and what shows it.

    Both are empty where the graph does not show it.

    Args:
        graph: The main graph.
        axes: Those of the image.
        outputs: What it gives.
    """
    places = sides_of(axes)
    if places is None:
        return "", ""
    height, width = (size_of(axes[place]) for place in places)
    known = [(name, [size_of(axis) for axis in value.axes or ()]) for name, value in outputs]
    open_height, open_width = (is_open(axes[place]) for place in places)
    if not open_width:
        declared = [(name, sizes or _declared(graph, name)) for name, sizes in known]
        fixed = None if open_height else _fixed_boxes(graph, height, width, declared)
        return fixed or ("", "")
    line = _line(graph, height, width, known)
    if line[0] or not open_height:
        return line
    boxes = _boxes(graph, height, width, known)
    if boxes is None and any(down > 1 for _, down, _ in _steps(graph)):
        # Filters alone also give a map, of an image of any size.
        return _map(height, width, known) or ("", "")
    return boxes or ("", "")


_Known = Sequence[tuple[str, Sequence[int]]]


def _declared(graph: onnx.GraphProto, name: str) -> list[int]:
    """Sizes that the model states for an output, 0 for those it leaves open."""
    output = next(output for output in graph.output if output.name == name)
    return [dimension.dim_value for dimension in output.type.tensor_type.shape.dim]


def _line(graph: onnx.GraphProto, height: int, width: int, outputs: _Known) -> tuple[str, str]:
    """Of a line the height is halved more often than the width, or fixed to a few pixels."""
    columns = [
        name
        for name, sizes in outputs
        if len(sizes) == 3 and any(width / 64 <= size <= width for size in sizes)
    ]
    uneven = next((name for name, down, across in _steps(graph) if down > across), "")
    if height <= _HIGHEST_LINE and columns:
        return "line", f"output {columns[0]!r} has its columns"
    if uneven and columns:
        return "line", f"{uneven} halves the height alone"
    scores = bool(outputs) and all(0 < len(sizes) <= 2 for _, sizes in outputs)
    if uneven and scores:
        return "turned line", f"{uneven} halves the height alone"
    return "", ""


def _steps(graph: onnx.GraphProto) -> list[tuple[str, int, int]]:
    """Windows with their steps down and across."""
    found = []
    for node in graph.node:
        if node.op_type in _WINDOWS:
            steps = _numbers(node, "strides")
            if len(steps) == 2:
                found.append((f"{node.op_type} {node.output[0]!r}", steps[0], steps[1]))
    return found


def _numbers(node: onnx.NodeProto, name: str) -> list[int]:
    return next((list(item.ints) for item in node.attribute if item.name == name), [])


def _boxes(
    graph: onnx.GraphProto, height: int, width: int, outputs: _Known
) -> tuple[str, str] | None:
    chosen = _chosen(graph)
    if chosen is not None or _cuts_patches(graph):
        return chosen
    for name, sizes in outputs:
        if any(size >= height * width / _COARSEST_PLACES for size in sizes):
            return "boxes", f"output {name!r} has all positions of the image on one axis"
        if len(sizes) == 3 and sizes[2] in (4, 6) and 10 <= sizes[1] <= LARGEST_WRITTEN:
            return "boxes", f"output {name!r} has {sizes[2]} numbers a box"
    scales = {height // sizes[2] for _, sizes in outputs if len(sizes) == 4 and sizes[2] > 0}
    if len({scale for scale in scales if 2 < scale <= _HIGHEST_LINE}) > 1:
        return "boxes", "its outputs are maps of several scales"
    return None


def _chosen(graph: onnx.GraphProto) -> tuple[str, str] | None:
    chosen = next((node for node in graph.node if node.op_type == "NonMaxSuppression"), None)
    return None if chosen is None else ("boxes", f"NonMaxSuppression {chosen.output[0]!r}")


def _fixed_boxes(
    graph: onnx.GraphProto, height: int, width: int, outputs: _Known
) -> tuple[str, str] | None:
    """Sides that are fixed are no numbers of their own, so sizes have to fit them exactly."""
    chosen = _chosen(graph)
    if chosen is not None or _cuts_patches(graph):
        return chosen
    places = {
        boxes * sum(-(-height // step) * -(-width // step) for step in steps)
        for steps in _STRIDES
        for boxes in range(1, _MOST_BOXES + 1)
    }
    for name, sizes in outputs:
        if len(sizes) == 3 and places & set(sizes[1:]):
            return "boxes", f"output {name!r} has all positions of the image on one axis"
    maps = {
        step
        for _, sizes in outputs
        for step in _MAP_STEPS
        if len(sizes) in (4, 5) and _has_map(sizes[1:], height, width, step)
    }
    return ("boxes", "its outputs are maps of several scales") if len(maps) > 1 else None


def _has_map(sizes: Sequence[int], height: int, width: int, step: int) -> bool:
    """Whether the sides of an image, divided by a step, stand side by side."""
    pairs = itertools.pairwise(sizes)
    return any(down * step == height and across * step == width for down, across in pairs)


def _cuts_patches(graph: onnx.GraphProto) -> bool:
    """Whether windows stand side by side, as large as the patches of a transformer."""
    shapes = {tensor.name: list(tensor.dims)[2:] for tensor in graph.initializer}
    for node in graph.node:
        steps = _numbers(node, "strides") if node.op_type == "Conv" else []
        window = _numbers(node, "kernel_shape") or shapes.get((*node.input, "", "")[1], [])
        if len(steps) == 2 and min(steps) >= _PATCH and steps == window:
            return True
    return False


def _map(height: int, width: int, outputs: _Known) -> tuple[str, str] | None:
    maps = [
        (name, sizes)
        for name, sizes in outputs
        if len(sizes) >= 3
        and any(_as_large(size, height) for size in sizes[1:])
        and any(_as_large(size, width) for size in sizes[2:])
    ]
    if not maps:
        return None
    name, sizes = maps[0]
    single = len(maps) == 1 and len(sizes) == 4 and 1 in (sizes[1], sizes[3])
    if single:
        return "page", f"output {name!r} is a map of one channel"
    return "map", f"output {name!r} is a map"


def _as_large(size: int, side: int) -> bool:
    return side / _COARSEST * 0.99 <= size <= side * _FINEST
