"""Convolutional layers whose normalisation is calibrated without running the network.

With running statistics of 0 and 1, a deep random network forgets its input: activations after a
ReLU have a mean, every layer adds to it, and in the end all inputs give the same class. Here each
feature map carries the moments of its channels, and a batch normalisation gets what those say of
each filter's output: mean ``Σ w·μ`` and variance ``Σ w²·σ²``, summed over integers, so that
neither order nor processor matters. Tests run the networks and hold their block outputs to
deviations from 0.1 to 10.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from pytest_ortbench.models.builders.graph_writer import GraphWriter
from pytest_ortbench.models.builders.weights import (
    MOMENT_UNIT,
    DrawScale,
    moment,
    scale_for,
    scaled,
)

_EPSILON = 2.0**-16

#: Variance of a classifier's filters: averaging over positions leaves little of the input's own,
#: and the logits shall have a deviation near 1.
_SHARPNESS = 16


@dataclass(frozen=True, slots=True)
class Moments:
    """Mean and variance of the channels of a feature map, in units of 1/1024.

    Attributes:
        mean: Of one element over positions and inputs.
        variance: Likewise.
    """

    mean: int
    variance: int

    def __add__(self, other: Moments) -> Moments:
        """Moments of the sum of two independent maps."""
        return Moments(self.mean + other.mean, self.variance + other.variance)


#: An image of N(0, 1) noise, and a layer without activation.
NORMALISED = Moments(0, 1024)

#: What goes into an activation. Around 0 a ReLU keeps half of what went wrong before it and a third
#: of what is right, so that 50 random layers drown in the rounding of int8; far above 0 it keeps
#: all of both, but also each channel's own mean, and inputs look alike. This is between the two.
RAISED = Moments(512, 1024)

#: ReLU of N(1/2, 1), in closed form; the clip of ReLU6 changes it by less than a unit.
RECTIFIED = Moments(715, 567)

#: x·sigmoid(x) of N(1/2, 1), by quadrature.
SWISHED = Moments(512, 520)

#: What a block adds to a trunk of variance about 1: little, as in trained networks.
RESIDUAL = Moments(0, 36)


@dataclass(frozen=True, slots=True)
class FeatureMap:
    """A tensor [batch, channels, height, width] and the moments of its channels.

    Attributes:
        name: Of the tensor.
        size: Height and width for which normalisations are calibrated.
        parts: Channel count and moments of each run of like channels, in channel order.
    """

    name: str
    size: int
    parts: tuple[tuple[int, Moments], ...]

    @property
    def channels(self) -> int:
        """Number of channels."""
        return sum(count for count, _ in self.parts)

    def like(
        self, name: str, moments: Moments | None = None, *, size: int | None = None
    ) -> FeatureMap:
        """Another tensor with as many channels; moments and size are the same unless given."""
        parts = ((self.channels, moments),) if moments else self.parts
        return FeatureMap(name, self.size if size is None else size, parts)


def convolution(
    writer: GraphWriter,
    source: FeatureMap,
    channels: int,
    *,
    name: str,
    kernel: int,
    stride: int = 1,
    depthwise: bool = False,
    moments: Moments = NORMALISED,
) -> FeatureMap:
    """Add ``Conv`` and ``BatchNormalization``; the result has the given moments.

    Args:
        writer: Of the graph.
        source: What is convolved.
        channels: Of the result; with ``depthwise`` the same as those of ``source``.
        name: Of the layer within the scope.
        kernel: Height and width, odd; padded so that a stride of 1 keeps the size.
        stride: Of both axes.
        depthwise: One filter a channel.
        moments: Of the result; the variance must be a square in units of 1/32.
    """
    inputs = 1 if depthwise else source.channels
    with writer.scope(name):
        draws = writer.draws("weight", (channels, inputs, kernel, kernel))
        scale = scale_for(Fraction(1, inputs * kernel * kernel))
        convolved = writer.node(
            "Conv",
            source.name,
            writer.parameter("weight", scaled(draws, scale)),
            kernel_shape=[kernel, kernel],
            strides=[stride, stride],
            pads=[kernel // 2] * 4,
            group=channels if depthwise else 1,
        )
        present = _presence(source.size, kernel, stride)
        mean, variance = _response(draws, source, present, depthwise=depthwise)
        normalised = writer.node(
            "BatchNormalization",
            convolved,
            writer.near("bn.weight", channels, math.isqrt(moments.variance) / 32),
            writer.near("bn.bias", channels, moments.mean / MOMENT_UNIT),
            writer.parameter("bn.running_mean", moment(mean, scale)),
            writer.parameter("bn.running_var", moment(variance, scale, 2)),
            epsilon=_EPSILON,
            out="out",
        )
    return FeatureMap(normalised, -(-source.size // stride), ((channels, moments),))


def projection(
    writer: GraphWriter,
    source: FeatureMap,
    channels: int,
    *,
    name: str,
    variance: Fraction = Fraction(1),
    centre: int = 0,
    whole_name: str = "",
) -> str:
    """Add a ``Conv`` of kernel 1 with a bias that sets the mean; no normalisation.

    Args:
        writer: Of the graph.
        source: What is convolved.
        channels: Of the result.
        name: Of the layer within the scope.
        variance: Of the result for a source of second moment 1.
        centre: Mean of the result.
        whole_name: Of the result, where it is a graph output.
    """
    with writer.scope(name):
        draws = writer.draws("weight", (channels, source.channels, 1, 1))
        scale = scale_for(variance / source.channels)
        return writer.node(
            "Conv",
            source.name,
            writer.parameter("weight", scaled(draws, scale)),
            writer.parameter("bias", np.float32(centre) - _mean(draws, source, scale)),
            kernel_shape=[1, 1],
            whole_name=whole_name,
        )


def upsampling(writer: GraphWriter, source: FeatureMap, channels: int, *, name: str) -> FeatureMap:
    """Add a ``ConvTranspose`` that doubles height and width; the result has mean 0, deviation 1.

    Args:
        writer: Of the graph.
        source: One run of like channels.
        channels: Of the result.
        name: Of the layer within the scope.
    """
    ((inputs, moments),) = source.parts
    with writer.scope(name):
        draws = writer.draws("weight", (inputs, channels, 2, 2))
        scale = scale_for(Fraction(MOMENT_UNIT, inputs * moments.variance))
        # The four taps of a filter land on four pixels: a bias takes away their common mean only.
        taps = np.swapaxes(draws, 0, 1).sum(axis=(2, 3), dtype=np.int64, keepdims=True)
        mean = moment(taps.sum(axis=(1, 2, 3)) * moments.mean, scale) / np.float32(4)
        upsampled = writer.node(
            "ConvTranspose",
            source.name,
            writer.parameter("weight", scaled(draws, scale)),
            writer.parameter("bias", -mean),
            kernel_shape=[2, 2],
            strides=[2, 2],
        )
    return FeatureMap(upsampled, 2 * source.size, ((channels, NORMALISED),))


def concatenation(writer: GraphWriter, *sources: FeatureMap) -> FeatureMap:
    """Add a ``Concat`` over channels."""
    name = writer.node("Concat", *(source.name for source in sources), axis=1)
    parts = tuple(part for source in sources for part in source.parts)
    return FeatureMap(name, sources[0].size, parts)


def classifier(writer: GraphWriter, source: FeatureMap, classes: int) -> None:
    """Add mean over positions, ``Flatten`` and a dense layer that ends in the output ``logits``.

    Args:
        writer: Of the graph.
        source: The last feature map.
        classes: Length of ``logits``.
    """
    pooled = writer.node("GlobalAveragePool", source.name, out="pool/out")
    flat = writer.node("Flatten", pooled, axis=1)
    with writer.scope("classifier"):
        draws = writer.draws("weight", (classes, source.channels))
        scale = scale_for(Fraction(_SHARPNESS, source.channels))
        writer.node(
            "Gemm",
            flat,
            writer.parameter("weight", scaled(draws, scale)),
            writer.parameter("bias", -_mean(draws, source, scale)),
            transB=1,
            whole_name="logits",
        )
    writer.output("logits", "float", ["batch", classes])


def image(writer: GraphWriter, height: int | str, width: int | str, *, size: int) -> FeatureMap:
    """Declare the input ``image`` [batch, 3, height, width], calibrated for N(0, 1) noise.

    Args:
        writer: Of the graph.
        height: Size or symbol.
        width: Likewise.
        size: Height and width for which normalisations are calibrated.
    """
    name = writer.input("image", "float", ["batch", 3, height, width])
    return FeatureMap(name, size, ((3, NORMALISED),))


def _mean(draws: NDArray[np.int32], source: FeatureMap, scale: DrawScale) -> NDArray[np.float32]:
    """Mean response of each filter without padding."""
    present = np.full(1, MOMENT_UNIT, dtype=np.int64)
    return moment(_response(draws, source, present, depthwise=False)[0], scale)


def _presence(size: int, kernel: int, stride: int) -> NDArray[np.int64]:
    """For each tap, the share of positions where it is not on padding, in units of 1/1024.

    Activations have a mean, so padding with zeros shifts that of small maps by a lot.
    """
    starts = np.arange(0, size, stride, dtype=np.int64)
    inside = [
        int(np.count_nonzero((starts + tap >= 0) & (starts + tap < size)))
        for tap in range(-(kernel // 2), kernel // 2 + 1)
    ]
    line = np.array(inside, dtype=np.int64)
    return (MOMENT_UNIT * np.outer(line, line) // len(starts) ** 2).reshape(-1)


def _response(
    draws: NDArray[np.int32],
    source: FeatureMap,
    present: NDArray[np.int64],
    *,
    depthwise: bool,
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Mean and variance of each filter's response, in draws (squared) times units of 1/1024.

    Positions and channels of the source are taken as independent, which random filters are on
    average.
    """
    grid = draws.reshape(*draws.shape[:2], -1)
    mean = np.zeros(len(draws), dtype=np.int64)
    variance = np.zeros(len(draws), dtype=np.int64)
    start = 0
    for count, moments in source.parts:
        # A depthwise filter belongs to one channel: there the runs split rows, not columns.
        run = slice(start, start + count)
        rows, columns = (run, slice(None)) if depthwise else (slice(None), run)
        part = grid[rows, columns]
        sums = part.sum(axis=1, dtype=np.int64) @ present // MOMENT_UNIT
        # What padding takes from the variance, the step in the mean at the border gives back.
        squares = (part * part).sum(axis=(1, 2), dtype=np.int64)
        mean[rows] += sums * moments.mean
        variance[rows] += squares * moments.variance
        start += count
    return mean, variance
