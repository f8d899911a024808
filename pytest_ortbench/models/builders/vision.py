"""Networks that read images, and the canary, which is a small piece of one."""

from __future__ import annotations

from fractions import Fraction

from pytest_ortbench.models.builders.convnet import (
    NORMALISED,
    RAISED,
    RECTIFIED,
    RESIDUAL,
    FeatureMap,
    Moments,
    classifier,
    concatenation,
    convolution,
    image,
    projection,
    upsampling,
)
from pytest_ortbench.models.builders.graph_writer import GraphWriter
from pytest_ortbench.models.builders.transformer import (
    feed_forward,
    layer_norm,
    length_of,
    self_attention,
    shape_vector,
)

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
    """Images [batch, 3, 224, 224] to logits [batch, 1000]; 3,504,872 parameters.

    MobileNetV2 (M. Sandler et al., CVPR 2018): inverted residuals with linear bottlenecks.
    """
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


#: Bottleneck width, blocks and stride of each stage; a stage puts out four times its width.
_RESNET_STAGES = ((64, 3, 1), (128, 4, 2), (256, 6, 2), (512, 3, 2))

#: What follows the pooled stem, and the n-th block of a stage. A sum of a rectified and a normal
#: variable has no closed form once rectified: found by running the network once.
_POOLED_STEM = Moments(2000, 366)
_RESIDUAL_SUMS = (
    Moments(721, 583),
    Moments(748, 573),
    Moments(769, 573),
    Moments(788, 577),
    Moments(805, 582),
    Moments(821, 590),
)


def resnet50(writer: GraphWriter) -> None:
    """Images [batch, 3, 224, 224] to logits [batch, 1000]; 25,557,032 parameters.

    ResNet-50 (K. He et al., "Deep residual learning", CVPR 2016), stride in the 3x3 convolution.
    """
    with writer.scope("stem"):
        stem = _rectified(
            writer, image(writer, 224, 224, size=224), 64, name="conv", kernel=7, stride=2
        )
        pooled = writer.node(
            "MaxPool", stem.name, out="out", kernel_shape=[3, 3], strides=[2, 2], pads=[1] * 4
        )
    trunk = stem.like(pooled, _POOLED_STEM, size=stem.size // 2)
    for stage, (width, blocks, stride) in enumerate(_RESNET_STAGES, start=1):
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
    return wide.like(writer.node("Relu", total, out="out"), _RESIDUAL_SUMS[block])


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


_UNET_WIDTHS = (16, 32, 64, 128, 256)
_UNET_CLASSES = 4

#: Maximum of a 2x2 window over RECTIFIED maps; found by running it.
_POOLED_WINDOWS = Moments(1500, 460)


def unet(writer: GraphWriter) -> None:
    """Images [batch, 3, height, width], multiples of 16, to logits [batch, 4, height, width].

    U-Net (O. Ronneberger et al., MICCAI 2015) with padding and batch normalisation.
    """
    trunk = image(writer, "height", "width", size=256)
    skipped: list[FeatureMap] = []
    for width in _UNET_WIDTHS:
        with writer.scope(f"down{width}"):
            if skipped:
                pooled = writer.node(
                    "MaxPool", trunk.name, out="pool/out", kernel_shape=[2, 2], strides=[2, 2]
                )
                trunk = trunk.like(pooled, _POOLED_WINDOWS, size=trunk.size // 2)
            trunk = _pair(writer, trunk, width)
        skipped.append(trunk)
    for width, skip in zip(_UNET_WIDTHS[-2::-1], skipped[-2::-1], strict=True):
        with writer.scope(f"up{width}"):
            raised = upsampling(writer, trunk, width, name="raise")
            trunk = _pair(writer, concatenation(writer, skip, raised), width)
    projection(writer, trunk, _UNET_CLASSES, name="classes", whole_name="logits")
    writer.output("logits", "float", ["batch", _UNET_CLASSES, "height", "width"])


def _pair(writer: GraphWriter, source: FeatureMap, width: int) -> FeatureMap:
    """Two convolutions of kernel 3, each normalised and rectified."""
    for name in ("conv1", "conv2"):
        source = _rectified(writer, source, width, name=name, kernel=3)
    return source


_VIT_WIDTH = 768
_VIT_LAYERS = 12
_PATCH = 16
_PATCHES = (224 // _PATCH) ** 2
_VIT_CLASSES = 1000


def vit_b16(writer: GraphWriter) -> None:
    """Images [batch, 3, 224, 224] to logits [batch, 1000]; 86,567,656 parameters.

    ViT-B/16 (A. Dosovitskiy et al., ICLR 2021) at 224 x 224.
    """
    image = writer.input("image", "float", ["batch", 3, 224, 224])
    with writer.scope("patches"):
        trunk = _embedded(writer, image)
    for layer in range(_VIT_LAYERS):
        with writer.scope(f"layer{layer}"):
            trunk = _encoder_block(writer, trunk)
    normed = layer_norm(writer, trunk, _VIT_WIDTH, name="norm")
    token = writer.node("Gather", normed, writer.integer(0), axis=1)
    with writer.scope("classifier"):
        weight = writer.drawn("weight", (_VIT_WIDTH, _VIT_CLASSES), Fraction(1, _VIT_WIDTH))
        bias = writer.near("bias", _VIT_CLASSES, 0)
        writer.node("Gemm", token, weight, bias, whole_name="logits")
    writer.output("logits", "float", ["batch", _VIT_CLASSES])


def _embedded(writer: GraphWriter, image: str) -> str:
    """Patch vectors after a class token, plus positions: [batch, 197, 768]."""
    weight = writer.drawn(
        "weight", (_VIT_WIDTH, 3, _PATCH, _PATCH), Fraction(1, 3 * _PATCH * _PATCH)
    )
    convolved = writer.node(
        "Conv",
        image,
        weight,
        writer.near("bias", _VIT_WIDTH, 0),
        kernel_shape=[_PATCH, _PATCH],
        strides=[_PATCH, _PATCH],
    )
    flat = writer.node("Reshape", convolved, writer.integers(0, _VIT_WIDTH, -1))
    patches = writer.node("Transpose", flat, perm=[0, 2, 1])
    token = writer.drawn("class_token", (1, 1, _VIT_WIDTH), Fraction(1, 64))
    shape = shape_vector(
        writer, length_of(writer, image, 0), writer.integer(1), writer.integer(_VIT_WIDTH)
    )
    tokens = writer.node("Concat", writer.node("Expand", token, shape), patches, axis=1)
    places = writer.drawn("position", (1, _PATCHES + 1, _VIT_WIDTH), Fraction(1, 64))
    return writer.node("Add", tokens, places, out="out")


def _encoder_block(writer: GraphWriter, trunk: str) -> str:
    normed = layer_norm(writer, trunk, _VIT_WIDTH, name="norm1")
    # Sharp scores: an even mean over 196 patches of noise would be the same for every image.
    mixed = self_attention(writer, normed, _VIT_WIDTH, sharpness=Fraction(2), variance=Fraction(1))
    trunk = writer.node("Add", trunk, mixed, out="attention/out")
    normed = layer_norm(writer, trunk, _VIT_WIDTH, name="norm2")
    fed = feed_forward(writer, normed, _VIT_WIDTH, 4 * _VIT_WIDTH, variance=Fraction(1))
    return writer.node("Add", trunk, fed, out="out")


_CANARY_SIDE = 28
_CANARY_INPUTS = 64
_CANARY_CHANNELS = 64
_CANARY_OUTPUTS = 192


def canary(writer: GraphWriter) -> None:
    """A map [1, 64, 28, 28] to [64, 192]; every size is fixed.

    A fixed piece of work that tells a change of the machine from one of the code: about 1 ms on
    one core, 58 MFLOP of convolution and 19 of matrix product. Its bytes must never change within
    a version, since history is judged on ratios to it.
    """
    name = writer.input("input", "float", [1, _CANARY_INPUTS, _CANARY_SIDE, _CANARY_SIDE])
    source = FeatureMap(name, _CANARY_SIDE, ((_CANARY_INPUTS, NORMALISED),))
    convolved = convolution(writer, source, _CANARY_CHANNELS, name="conv", kernel=3)
    active = writer.node("Relu", convolved.name)
    rows = writer.node(
        "Reshape", active, writer.integers(_CANARY_CHANNELS, _CANARY_SIDE * _CANARY_SIDE)
    )
    weight = writer.drawn(
        "product.weight",
        (_CANARY_SIDE * _CANARY_SIDE, _CANARY_OUTPUTS),
        Fraction(1, _CANARY_SIDE * _CANARY_SIDE),
    )
    writer.node("MatMul", rows, weight, whole_name="output")
    writer.output("output", "float", [_CANARY_CHANNELS, _CANARY_OUTPUTS])
