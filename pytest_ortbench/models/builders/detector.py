"""A one-stage detector of nano size: partial stages, a two-way pyramid, a distributional head.

Three levels of strides 8, 16 and 32 share no weights. Each cell gives 80 class scores and its
distances to the four sides of a box, every distance as the mean of a distribution over 16 bins
(X. Li et al., "Generalized Focal Loss", NeurIPS 2020). Non-maximum suppression is left to the
caller, as in the exports that people deploy.
"""

from __future__ import annotations

from fractions import Fraction

from pytest_ortbench.models.builders.convnet import (
    RAISED,
    SWISHED,
    FeatureMap,
    Moments,
    concatenation,
    convolution,
    image,
    projection,
)
from pytest_ortbench.models.builders.graph_writer import GraphWriter

_CLASSES = 80
_BINS = 16

#: A score before the sigmoid, on average: most cells see nothing.
_SCORE_CENTRE = -4

#: Maximum of a 5x5 window over SWISHED maps, once, twice and three times; found by running it.
_WINDOW_MAXIMA = (Moments(2280, 360), Moments(2760, 278), Moments(3020, 234))


def detector_n(writer: GraphWriter) -> None:
    """Images [batch, 3, height, width], multiples of 32, to boxes and scores of every cell.

    ``boxes`` [batch, cells, 4] holds left, top, right and bottom in pixels, ``scores``
    [batch, cells, 80] probabilities.
    """
    levels = _pyramid(writer, *_backbone(writer, image(writer, "height", "width", size=640)))
    boxes, scores = [], []
    for stride, level in zip((8, 16, 32), levels, strict=True):
        with writer.scope(f"head{stride}"):
            boxes.append(_boxes(writer, level, stride))
            scores.append(_scores(writer, level))
    writer.node("Concat", *boxes, axis=1, whole_name="boxes")
    logits = writer.node("Concat", *scores, axis=1, out="scores/out")
    writer.node("Sigmoid", logits, whole_name="scores")
    writer.output("boxes", "float", ["batch", "cells", 4])
    writer.output("scores", "float", ["batch", "cells", _CLASSES])


def _backbone(writer: GraphWriter, source: FeatureMap) -> tuple[FeatureMap, FeatureMap, FeatureMap]:
    """Maps of strides 8, 16 and 32."""
    trunk = _layer(writer, source, 16, name="stem", kernel=3, stride=2)
    maps = []
    for channels, depth in ((32, 1), (64, 2), (128, 2), (256, 1)):
        with writer.scope(f"backbone{channels}"):
            trunk = _layer(writer, trunk, channels, name="down", kernel=3, stride=2)
            trunk = _partial_stage(writer, trunk, channels, depth, residual=True)
        maps.append(trunk)
    return maps[1], maps[2], _spatial_pooling(writer, trunk)


def _pyramid(
    writer: GraphWriter, fine: FeatureMap, middle: FeatureMap, coarse: FeatureMap
) -> tuple[FeatureMap, FeatureMap, FeatureMap]:
    """Mix the levels, from coarse to fine and back."""
    with writer.scope("up16"):
        joined = concatenation(writer, _enlarged(writer, coarse), middle)
        middle = _partial_stage(writer, joined, 128, 1, residual=False)
    with writer.scope("up8"):
        joined = concatenation(writer, _enlarged(writer, middle), fine)
        fine = _partial_stage(writer, joined, 64, 1, residual=False)
    with writer.scope("down16"):
        reduced = _layer(writer, fine, 64, name="down", kernel=3, stride=2)
        joined = concatenation(writer, reduced, middle)
        middle = _partial_stage(writer, joined, 128, 1, residual=False)
    with writer.scope("down32"):
        reduced = _layer(writer, middle, 128, name="down", kernel=3, stride=2)
        joined = concatenation(writer, reduced, coarse)
        coarse = _partial_stage(writer, joined, 256, 1, residual=False)
    return fine, middle, coarse


def _layer(
    writer: GraphWriter,
    source: FeatureMap,
    channels: int,
    *,
    name: str,
    kernel: int,
    stride: int = 1,
) -> FeatureMap:
    """Convolution, normalisation and x·sigmoid(x)."""
    normalised = convolution(
        writer, source, channels, name=name, kernel=kernel, stride=stride, moments=RAISED
    )
    gate = writer.node("Sigmoid", normalised.name)
    return normalised.like(writer.node("Mul", normalised.name, gate), SWISHED)


def _partial_stage(
    writer: GraphWriter, source: FeatureMap, channels: int, depth: int, *, residual: bool
) -> FeatureMap:
    """Half of the channels pass ``depth`` bottlenecks; all that came about is merged."""
    half = channels // 2
    entry = _layer(writer, source, channels, name="entry", kernel=1)
    names = writer.nodes(
        "Split", entry.name, writer.integers(half, half), names=("kept", "worked"), axis=1
    )
    collected = [FeatureMap(name, entry.size, ((half, SWISHED),)) for name in names]
    for index in range(depth):
        with writer.scope(f"bottleneck{index}"):
            before = collected[-1]
            inner = _layer(writer, before, half, name="conv1", kernel=3)
            after = _layer(writer, inner, half, name="conv2", kernel=3)
            if residual:
                ((_, moments),) = before.parts
                total = writer.node("Add", before.name, after.name, out="out")
                after = after.like(total, moments + SWISHED)
            collected.append(after)
    return _layer(writer, concatenation(writer, *collected), channels, name="merge", kernel=1)


def _spatial_pooling(writer: GraphWriter, source: FeatureMap) -> FeatureMap:
    """Join maxima over windows of 5, 9 and 13 cells, by pooling thrice."""
    with writer.scope("pooling"):
        entry = _layer(writer, source, source.channels // 2, name="entry", kernel=1)
        collected = [entry]
        for index, moments in enumerate(_WINDOW_MAXIMA):
            pooled = writer.node(
                "MaxPool",
                collected[-1].name,
                out=f"maximum{index}/out",
                kernel_shape=[5, 5],
                strides=[1, 1],
                pads=[2] * 4,
            )
            collected.append(entry.like(pooled, moments))
        joined = concatenation(writer, *collected)
        return _layer(writer, joined, source.channels, name="merge", kernel=1)


def _enlarged(writer: GraphWriter, source: FeatureMap) -> FeatureMap:
    """Every cell twice along both axes."""
    return source.like(
        writer.node(
            "Resize",
            source.name,
            "",
            writer.numbers([1.0, 1.0, 2.0, 2.0]),
            mode="nearest",
            coordinate_transformation_mode="asymmetric",
            nearest_mode="floor",
        ),
        size=2 * source.size,
    )


def _branch(writer: GraphWriter, level: FeatureMap, width: int) -> FeatureMap:
    hidden = _layer(writer, level, width, name="conv1", kernel=3)
    return _layer(writer, hidden, width, name="conv2", kernel=3)


def _boxes(writer: GraphWriter, level: FeatureMap, stride: int) -> str:
    """Sides [batch, cells, 4] in pixels."""
    with writer.scope("boxes"):
        branch = _branch(writer, level, 4 * _BINS)
        raw = projection(writer, branch, 4 * _BINS, name="bins", variance=Fraction(2))
        rows = writer.node("Reshape", raw, writer.integers(0, 4, _BINS, -1))
        cells = writer.node("Transpose", rows, perm=[0, 3, 1, 2], out="bins/out")
        weights = writer.node("Softmax", cells, axis=-1)
        bins = writer.numbers([float(index) for index in range(_BINS)])
        near, far = writer.nodes(
            "Split",
            writer.node("MatMul", weights, bins),
            writer.integers(2, 2),
            names=("left_top", "right_bottom"),
            axis=-1,
        )
        centres = _centres(writer, level)
        sides = writer.node(
            "Concat",
            writer.node("Sub", centres, near),
            writer.node("Add", centres, far),
            axis=-1,
        )
        return writer.node("Mul", sides, writer.number(float(stride)))


def _scores(writer: GraphWriter, level: FeatureMap) -> str:
    """Logits [batch, cells, classes]."""
    with writer.scope("scores"):
        branch = _branch(writer, level, _CLASSES)
        raw = projection(
            writer,
            branch,
            _CLASSES,
            name="classes",
            variance=Fraction(1),
            centre=_SCORE_CENTRE,
        )
        flat = writer.node("Reshape", raw, writer.integers(0, _CLASSES, -1))
        return writer.node("Transpose", flat, perm=[0, 2, 1])


def _centres(writer: GraphWriter, level: FeatureMap) -> str:
    """Centres [cells, 2] of the cells, x before y, in cells; follows the size of the map."""
    shape = writer.node("Shape", level.name)
    height = writer.node("Gather", shape, writer.integer(2))
    width = writer.node("Gather", shape, writer.integer(3))
    count = writer.node("Mul", height, width)
    index = writer.node("Range", writer.integer(0), count, writer.integer(1))
    last = writer.integers(1)
    column = writer.node("Unsqueeze", writer.node("Mod", index, width), last)
    row = writer.node("Unsqueeze", writer.node("Div", index, width), last)
    corners = writer.node("Concat", column, row, axis=1)
    return writer.node("Add", writer.node("Cast", corners, to=1), writer.number(0.5))
