"""U-Net (O. Ronneberger et al., MICCAI 2015) with padding and batch normalisation."""

from __future__ import annotations

from pytest_ortbench.models.builders.convnet import (
    RAISED,
    RECTIFIED,
    FeatureMap,
    Moments,
    concatenation,
    convolution,
    image,
    projection,
    upsampling,
)
from pytest_ortbench.models.builders.graph_writer import GraphWriter

_WIDTHS = (16, 32, 64, 128, 256)
_CLASSES = 4

#: Maximum of a 2x2 window over RECTIFIED maps; found by running it.
_POOLED = Moments(1500, 460)


def unet(writer: GraphWriter) -> None:
    """Images [batch, 3, height, width], multiples of 16, to logits [batch, 4, height, width]."""
    trunk = image(writer, "height", "width", size=256)
    skipped: list[FeatureMap] = []
    for width in _WIDTHS:
        with writer.scope(f"down{width}"):
            if skipped:
                pooled = writer.node(
                    "MaxPool", trunk.name, out="pool/out", kernel_shape=[2, 2], strides=[2, 2]
                )
                trunk = trunk.like(pooled, _POOLED, size=trunk.size // 2)
            trunk = _pair(writer, trunk, width)
        skipped.append(trunk)
    for width, skip in zip(_WIDTHS[-2::-1], skipped[-2::-1], strict=True):
        with writer.scope(f"up{width}"):
            raised = upsampling(writer, trunk, width, name="raise")
            trunk = _pair(writer, concatenation(writer, skip, raised), width)
    projection(writer, trunk, _CLASSES, name="classes", whole_name="logits")
    writer.output("logits", "float", ["batch", _CLASSES, "height", "width"])


def _pair(writer: GraphWriter, source: FeatureMap, width: int) -> FeatureMap:
    """Two convolutions of kernel 3, each normalised and rectified."""
    for name in ("conv1", "conv2"):
        normalised = convolution(writer, source, width, name=name, kernel=3, moments=RAISED)
        source = normalised.like(writer.node("Relu", normalised.name), RECTIFIED)
    return source
