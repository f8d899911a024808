"""ResNet-50 (K. He et al., "Deep residual learning", CVPR 2016), stride in the 3x3 convolution."""

from __future__ import annotations

from pytest_ortbench.models.builders.convnet import (
    RAISED,
    RECTIFIED,
    RESIDUAL,
    FeatureMap,
    Moments,
    classifier,
    convolution,
    image,
)
from pytest_ortbench.models.builders.graph_writer import GraphWriter

#: Bottleneck width, blocks and stride of each stage; a stage puts out four times its width.
_STAGES = ((64, 3, 1), (128, 4, 2), (256, 6, 2), (512, 3, 2))

#: What follows the pooled stem, and the n-th block of a stage. A sum of a rectified and a normal
#: variable has no closed form once rectified: found by running the network once.
_POOLED = Moments(2000, 366)
_TRUNK = (
    Moments(721, 583),
    Moments(748, 573),
    Moments(769, 573),
    Moments(788, 577),
    Moments(805, 582),
    Moments(821, 590),
)


def resnet50(writer: GraphWriter) -> None:
    """Images [batch, 3, 224, 224] to logits [batch, 1000]; 25,557,032 parameters."""
    with writer.scope("stem"):
        stem = _rectified(
            writer, image(writer, 224, 224, size=224), 64, name="conv", kernel=7, stride=2
        )
        pooled = writer.node(
            "MaxPool", stem.name, out="out", kernel_shape=[3, 3], strides=[2, 2], pads=[1] * 4
        )
    trunk = stem.like(pooled, _POOLED, size=stem.size // 2)
    for stage, (width, blocks, stride) in enumerate(_STAGES, start=1):
        for block in range(blocks):
            with writer.scope(f"stage{stage}.{block}"):
                trunk = _bottleneck(writer, trunk, width, block, stride if block == 0 else 1)
    classifier(writer, trunk, 1000)


def _bottleneck(
    writer: GraphWriter, trunk: FeatureMap, width: int, block: int, stride: int
) -> FeatureMap:
    narrow = _rectified(writer, trunk, width, name="conv1", kernel=1)
    spatial = _rectified(writer, narrow, width, name="conv2", kernel=3, stride=stride)
    wide = convolution(writer, spatial, 4 * width, name="conv3", kernel=1, moments=RESIDUAL)
    shortcut = trunk
    if block == 0:
        shortcut = convolution(
            writer, trunk, 4 * width, name="shortcut", kernel=1, stride=stride, moments=RAISED
        )
    total = writer.node("Add", wide.name, shortcut.name)
    return wide.like(writer.node("Relu", total, out="out"), _TRUNK[block])


def _rectified(
    writer: GraphWriter,
    source: FeatureMap,
    channels: int,
    *,
    name: str,
    kernel: int,
    stride: int = 1,
) -> FeatureMap:
    normalised = convolution(
        writer, source, channels, name=name, kernel=kernel, stride=stride, moments=RAISED
    )
    return normalised.like(writer.node("Relu", normalised.name), RECTIFIED)
