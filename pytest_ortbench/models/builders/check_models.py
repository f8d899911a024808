"""Models of which it is known what they must take, weigh and answer; self-checks run them.

They are no builtin models: nobody measures them, and each is written where it is needed.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

import numpy as np

from pytest_ortbench.core.whole_file import replace_file
from pytest_ortbench.models.builders.graph_writer import GraphWriter
from pytest_ortbench.models.builders.weights import scale_for, scaled

#: Width of the products, and of what goes in and out.
_WIDTH, _NARROW = 1024, 16
#: Rows and columns of the table of :func:`_weights`.
_TABLE = (32768, 256)
#: Bytes of the weights of ``weights``.
WEIGHTS_BYTES = 4 * _TABLE[0] * _TABLE[1]

#: Rows of ``mantissa`` and ``half``, and the width of their products: a multiple of what kernels
#: for matrices take at once.
PROBE_ROWS, _PROBE_WIDTH = 128, 256

#: A float16 whose square float16 can't hold: 1 + 2^-10, squared 1 + 2^-9 + 2^-20.
HALF_STEP = 2.0**-10

#: Raised when the bytes of a model change.
_VERSION = 1


def _product(writer: GraphWriter) -> None:
    """Four products in a row, 4 MFLOP for each row of the batch, on little input and output."""
    last = writer.input("input", "float", ["batch", _NARROW])
    widths = (_NARROW, _WIDTH, _WIDTH, _WIDTH, _NARROW)
    for number, (inputs, outputs) in enumerate(itertools.pairwise(widths)):
        weight = writer.drawn(f"weight{number}", (inputs, outputs), Fraction(1, inputs))
        is_last = number == len(widths) - 2
        last = writer.node("MatMul", last, weight, whole_name="output" if is_last else "")
    writer.output("output", "float", ["batch", _NARROW])


def _weights(writer: GraphWriter) -> None:
    """A table of known size of which each inference reads eight rows: no kernel repacks it."""
    ids = writer.input("ids", "int64", [8])
    draws = writer.draws("table", _TABLE)
    table = writer.parameter("table", scaled(draws, scale_for(Fraction(1))))
    writer.node("Gather", table, ids, whole_name="output", axis=0)
    writer.output("output", "float", [8, _TABLE[1]])


def _mantissa(writer: GraphWriter) -> None:
    """A product with the identity: what comes out is what the multiplication kept of its input."""
    wide = _widened(writer)
    product = writer.node("MatMul", wide, _diagonal(writer, "identity", 1.0))
    _narrowed(writer, product)


def _half(writer: GraphWriter) -> None:
    """A sum that is 0 where the product before it was rounded to float16, and 1 where it was not.

    Of the input 1 + 2^-10.
    """
    wide = _widened(writer)
    product = writer.node("MatMul", wide, _diagonal(writer, "factor", 1 + HALF_STEP))
    rest = writer.node("Sub", product, _scalar(writer, "nearest", 1 + 2 * HALF_STEP))
    for number in range(2):
        rest = writer.node("Mul", rest, _scalar(writer, f"scale{number}", 1 / HALF_STEP))
    product = writer.node("MatMul", rest, _diagonal(writer, "identity", 1.0))
    _narrowed(writer, product)


def _widened(writer: GraphWriter) -> str:
    narrow = writer.input("input", "float", [PROBE_ROWS, 1])
    return writer.node("Expand", narrow, writer.integers(PROBE_ROWS, _PROBE_WIDTH))


def _narrowed(writer: GraphWriter, wide: str) -> None:
    writer.node("ReduceMax", wide, whole_name="output", axes=[1], keepdims=1)
    writer.output("output", "float", [PROBE_ROWS, 1])


def _diagonal(writer: GraphWriter, name: str, value: float) -> str:
    return writer.parameter(name, np.eye(_PROBE_WIDTH, dtype=np.float32) * np.float32(value))


def _scalar(writer: GraphWriter, name: str, value: float) -> str:
    return writer.parameter(name, np.asarray([value], dtype=np.float32))


#: Every model by its name.
_WRITERS: dict[str, Callable[[GraphWriter], None]] = {
    "product": _product,
    "weights": _weights,
    "mantissa": _mantissa,
    "half": _half,
}


def write_check_model(name: str, folder: Path) -> Path:
    """Write a model into a folder, if it is not there yet, and return its path.

    Args:
        name: ``product``, ``weights``, ``mantissa`` or ``half``.
        folder: Where.
    """
    path = folder / f"{name}.onnx"
    if not path.exists():
        writer = GraphWriter(f"check-{name}", version=_VERSION)
        _WRITERS[name](writer)
        replace_file(path, writer.serialise())
    return path
