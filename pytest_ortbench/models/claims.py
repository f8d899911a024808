"""Compares what the tensors of a model claim to hold with the data that the file has for them.

A file of 300 bytes can claim 2^62 elements. Whatever counts, allocates or stores such a number
later on would fail far from its cause, so the claim is refused where the file is read.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_ortbench.core.arithmetic import element_count
from pytest_ortbench.core.element_types import ELEMENT_BITS, ELEMENT_NAMES
from pytest_ortbench.core.errors import ModelError
from pytest_ortbench.models.inspection import (
    all_graphs,
    all_nodes,
    op_name,
    sparse_tensors,
)

if TYPE_CHECKING:
    import onnx

#: The next step where the content of a model is wrong, whoever made it.
MAKE_AGAIN = (
    "If you fetched or copied the model, do that again. If a script made it, correct the script"
)

#: Axes of a claim that are spelt out; of more, the others are counted.
_SHOWN_AXES = 4

#: Field of a tensor that holds its elements, by element type; all other types are in
#: ``int32_data``.
_TYPED_FIELDS: dict[str, str] = {
    "float": "float_data",
    "complex64": "float_data",
    "double": "double_data",
    "complex128": "double_data",
    "int64": "int64_data",
    "uint32": "uint64_data",
    "uint64": "uint64_data",
    "string": "string_data",
}
#: Types whose elements are two entries of that field each.
_PAIRS = frozenset({"complex64", "complex128"})


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredTensor:
    """A tensor of the file and what it is to a reader: ``weight 'w'``."""

    what: str
    tensor: onnx.TensorProto


def refuse_false_claims(proto: onnx.ModelProto, path: Path) -> None:
    """Check that every tensor has the data that its sizes ask for.

    What lies in external files is compared with their sizes by
    :func:`~pytest_ortbench.models.external_data.external_files`.

    Args:
        proto: The model, weights not loaded.
        path: Its file, for messages.

    Raises:
        ModelError: for a negative size, for more elements than can be counted, and for more than
            there are data.
    """
    for graph in all_graphs(proto):
        for sparse in graph.sparse_initializer:
            _checked_count(f"sparse weight {sparse.values.name!r}", sparse.dims, path)
    for node in all_nodes(proto):
        for attribute in node.attribute:
            for sparse in sparse_tensors(attribute):
                _checked_count(f"sparse constant of {op_name(node)}", sparse.dims, path)
    for stored in _stored(proto):
        _check(stored, path)


def claimed_bytes(tensor: onnx.TensorProto) -> int:
    """Return the bytes that a tensor's sizes ask for; 0 where its type does not tell."""
    bits = ELEMENT_BITS.get(ELEMENT_NAMES.get(tensor.data_type, ""), 0)
    return ((element_count(tensor.dims) or 0) * bits + 7) // 8


def _stored(proto: onnx.ModelProto) -> Iterator[StoredTensor]:
    for graph in all_graphs(proto):
        for tensor in graph.initializer:
            yield StoredTensor(what=f"weight {tensor.name!r}", tensor=tensor)
        for sparse in graph.sparse_initializer:
            name = sparse.values.name
            yield StoredTensor(what=f"sparse weight {name!r}", tensor=sparse.values)
            yield StoredTensor(
                what=f"the list of indices of sparse weight {name!r}", tensor=sparse.indices
            )
    for node in all_nodes(proto):
        name = node.name or next(iter(node.output), "")
        what = f"the constant of node {name!r} ({op_name(node)})"
        for attribute in node.attribute:
            tensors = [attribute.t] if attribute.HasField("t") else []
            for sparse in sparse_tensors(attribute):
                tensors += [sparse.values, sparse.indices]
            for tensor in (*tensors, *attribute.tensors):
                yield StoredTensor(what=what, tensor=tensor)


def _check(stored: StoredTensor, path: Path) -> None:
    from onnx import TensorProto

    tensor = stored.tensor
    claimed = _checked_count(stored.what, tensor.dims, path)
    if tensor.data_location == TensorProto.EXTERNAL:
        return
    element = ELEMENT_NAMES.get(tensor.data_type, "")
    if tensor.HasField("raw_data"):
        needed, there, unit = claimed_bytes(tensor), len(tensor.raw_data), "bytes"
    elif element:
        there = len(getattr(tensor, _TYPED_FIELDS.get(element, "int32_data")))
        # Below eight bits an entry holds several elements.
        eighths = 16 if element in _PAIRS else min(ELEMENT_BITS.get(element, 8), 8)
        needed, unit = (claimed * eighths + 7) // 8, "values"
    else:
        return  # a type that this release does not know: the runtime may
    if there < needed:
        raise ModelError(
            f"{stored.what} ({element}, shape {spelt(tensor.dims)}) needs {needed:,} {unit}, but "
            f"the file stores only {there:,} for it",
            place=str(path),
            hint=MAKE_AGAIN,
        )


def _checked_count(what: str, dims: Sequence[int], path: Path) -> int:
    """The number of elements.

    Raises:
        ModelError: if a size is negative, or they are more than can be counted.
    """
    count = element_count(dims)
    if count is not None:
        return count
    rule = "which are more elements than 64 bits can count"
    if any(size < 0 for size in dims):
        rule = "one of which is negative"
    raise ModelError(
        f"{what} claims the sizes {spelt(dims)}, {rule}",
        place=str(path),
        hint=MAKE_AGAIN,
    )


def spelt(dims: Sequence[int]) -> str:
    """Return sizes for people: ``512 × 512``; of many, the first ones and how many there are."""
    if not dims:
        return "1"
    shown = " × ".join(f"{size}" for size in dims[:_SHOWN_AXES])
    return shown if len(dims) <= _SHOWN_AXES else f"{shown} × … ({len(dims)} axes)"
