"""MobileNetV2 (M. Sandler et al., CVPR 2018): inverted residuals with linear bottlenecks."""

from __future__ import annotations

from pytest_ortbench.models.builders.convnet import (
    RAISED,
    RECTIFIED,
    RESIDUAL,
    FeatureMap,
    classifier,
    convolution,
    image,
)
from pytest_ortbench.models.builders.graph_writer import GraphWriter

#: Expansion, output channels, blocks and stride of each stage (table 2 of the paper).
_STAGES = (
    (1, 16, 1, 1),
    (6, 24, 2, 2),
    (6, 32, 3, 2),
    (6, 64, 4, 2),
    (6, 96, 3, 1),
    (6, 160, 3, 2),
    (6, 320, 1, 1),
)


def mobilenet_v2(writer: GraphWriter) -> None:
    """Images [batch, 3, 224, 224] to logits [batch, 1000]; 3,504,872 parameters."""
    with writer.scope("stem"):
        trunk = _clipped(
            writer, image(writer, 224, 224, size=224), 32, name="conv", kernel=3, stride=2
        )
    for stage, (expansion, channels, blocks, stride) in enumerate(_STAGES, start=1):
        for block in range(blocks):
            with writer.scope(f"stage{stage}.{block}"):
                trunk = _inverted_residual(
                    writer, trunk, expansion, channels, stride if block == 0 else 1
                )
    with writer.scope("head"):
        head = _clipped(writer, trunk, 1280, name="conv", kernel=1)
    classifier(writer, head, 1000)


def _inverted_residual(
    writer: GraphWriter, trunk: FeatureMap, expansion: int, channels: int, stride: int
) -> FeatureMap:
    wide = trunk
    if expansion != 1:
        wide = _clipped(writer, trunk, expansion * trunk.channels, name="expand", kernel=1)
    filtered = _clipped(
        writer, wide, wide.channels, name="depthwise", kernel=3, stride=stride, depthwise=True
    )
    if stride != 1 or channels != trunk.channels:
        return convolution(writer, filtered, channels, name="project", kernel=1)
    narrow = convolution(writer, filtered, channels, name="project", kernel=1, moments=RESIDUAL)
    ((_, before),) = trunk.parts
    total = writer.node("Add", trunk.name, narrow.name, out="out")
    return narrow.like(total, before + RESIDUAL)


def _clipped(
    writer: GraphWriter,
    source: FeatureMap,
    channels: int,
    *,
    name: str,
    kernel: int,
    stride: int = 1,
    depthwise: bool = False,
) -> FeatureMap:
    normalised = convolution(
        writer,
        source,
        channels,
        name=name,
        kernel=kernel,
        stride=stride,
        depthwise=depthwise,
        moments=RAISED,
    )
    clipped = writer.node("Clip", normalised.name, writer.number(0.0), writer.number(6.0))
    return normalised.like(clipped, RECTIFIED)
