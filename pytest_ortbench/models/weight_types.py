"""How many stored numbers a model has of each element type."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from pytest_ortbench.core.arithmetic import element_count
from pytest_ortbench.models.inspection import ELEMENT_TYPES, all_tensors

if TYPE_CHECKING:
    import onnx


def weight_types(proto: onnx.ModelProto) -> dict[str, int]:
    """Number of elements of all stored tensors by element type, in order of the type's name.

    Weights in external files are counted by their shape; nothing is loaded.
    """
    counts: Counter[str] = Counter()
    for tensor in all_tensors(proto):
        counts[ELEMENT_TYPES.get(tensor.data_type, "unknown")] += element_count(tensor.dims) or 0
    return dict(sorted(counts.items()))
