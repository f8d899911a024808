"""Weights that are subnormal: many CPUs compute with them many times slower."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_ortbench.core.element_types import ELEMENT_NAMES
from pytest_ortbench.core.model import SubnormalWeight
from pytest_ortbench.models.inspection import all_graphs, all_nodes
from pytest_ortbench.models.zeros import blocks_of, stored_bits

if TYPE_CHECKING:
    import numpy as np
    import onnx
    from numpy.typing import NDArray

#: Bits without the sign, and the largest subnormal among them, by element type. Values of float16
#: are left out: CPUs compute them in float32, where they are normal.
_SUBNORMAL = {
    "float": (0x7FFF_FFFF, 0x007F_FFFF),
    "bfloat16": (0x7FFF, 0x007F),
    "double": (0x7FFF_FFFF_FFFF_FFFF, 0x000F_FFFF_FFFF_FFFF),
}
#: Fewer of a tensor's values cost nothing that could be measured.
_LEAST_SHARE = 0.001
#: Most weights that are named.
_NAMED = 5


def subnormal_weights(proto: onnx.ModelProto, folder: Path) -> tuple[SubnormalWeight, ...]:
    """Return the weights that hold subnormal values, those with the most first.

    Args:
        proto: The model; external weights may be unloaded.
        folder: Where its external data lies; checked already.

    Returns:
        At most five; a weight with less than 0.1 % of such values is none.
    """
    counted = [(name, *_counted(tensor, folder)) for name, tensor in _weights(proto)]
    small = sorted((c for c in counted if c[2] >= _LEAST_SHARE), key=lambda c: -c[1])[:_NAMED]
    readers = _readers(proto) if small else {}
    return tuple(
        SubnormalWeight(
            name=name,
            node=readers.get(name, ("", ""))[0],
            op_type=readers.get(name, ("", ""))[1],
            values=values,
            value_share=share,
        )
        for name, values, share in small
    )


def _weights(proto: onnx.ModelProto) -> Iterator[tuple[str, onnx.TensorProto]]:
    for graph in all_graphs(proto):
        yield from ((tensor.name, tensor) for tensor in graph.initializer)
    for node in all_nodes(proto):
        if node.op_type == "Constant":
            yield from ((node.output[0], a.t) for a in node.attribute if a.HasField("t"))


def _counted(tensor: onnx.TensorProto, folder: Path) -> tuple[int, float]:
    """Number and share of subnormal values."""
    limits = _SUBNORMAL.get(ELEMENT_NAMES.get(tensor.data_type, ""))
    values = None if limits is None else stored_bits(tensor, folder)
    if limits is None or values is None or not values.size:
        return 0, 0.0
    blocks = list(blocks_of(values))
    share = sum(_small(block, *limits) for block in blocks) / sum(map(len, blocks))
    return round(share * values.size), share


def _small(bits: NDArray[np.unsignedinteger], mask: int, largest: int) -> int:
    import numpy as np

    # One less: zero becomes the largest number of all.
    magnitude = (bits & bits.dtype.type(mask)) - bits.dtype.type(1)
    return int(np.count_nonzero(magnitude < bits.dtype.type(largest)))


def _readers(proto: onnx.ModelProto) -> dict[str, tuple[str, str]]:
    """The first node that reads a value, by the value's name."""
    readers: dict[str, tuple[str, str]] = {}
    for node in all_nodes(proto):
        for name in node.input:
            readers.setdefault(name, (node.name or node.output[0], node.op_type))
    return readers
