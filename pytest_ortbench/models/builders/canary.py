"""The canary: a fixed piece of work that tells a change of the machine from one of the code.

About 1 ms on one core: 58 MFLOP of convolution and 19 of matrix product. Its bytes must never
change within a version, since history is judged on ratios to it.
"""

from __future__ import annotations

from fractions import Fraction

from pytest_ortbench.models.builders.convnet import NORMALISED, FeatureMap, convolution
from pytest_ortbench.models.builders.graph_writer import GraphWriter

_SIDE = 28
_INPUTS = 64
_CHANNELS = 64
_OUTPUTS = 192


def canary(writer: GraphWriter) -> None:
    """A map [1, 64, 28, 28] to [64, 192]; every size is fixed."""
    name = writer.input("input", "float", [1, _INPUTS, _SIDE, _SIDE])
    source = FeatureMap(name, _SIDE, ((_INPUTS, NORMALISED),))
    convolved = convolution(writer, source, _CHANNELS, name="conv", kernel=3)
    active = writer.node("Relu", convolved.name)
    rows = writer.node("Reshape", active, writer.integers(_CHANNELS, _SIDE * _SIDE))
    weight = writer.drawn("product.weight", (_SIDE * _SIDE, _OUTPUTS), Fraction(1, _SIDE * _SIDE))
    writer.node("MatMul", rows, weight, whole_name="output")
    writer.output("output", "float", [_CHANNELS, _OUTPUTS])
