"""How many weights of a file are zero, and how small the file becomes when it is compressed."""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_ortbench.core.element_types import ELEMENT_NAMES
from pytest_ortbench.models.external_data import ExternalFile, offset_of
from pytest_ortbench.models.inspection import all_graphs

if TYPE_CHECKING:
    import numpy as np
    import onnx
    from numpy.typing import NDArray

#: Bits of the sign, by the element types that are counted: -0.0 is a zero.
_TYPES = {"float": ("<u4", 1), "float16": ("<u2", 1), "bfloat16": ("<u2", 1), "double": ("<u8", 1),
          "int8": ("u1", 0)}  # fmt: skip
#: Elements of one tensor that are looked at: of a larger one, so many blocks spread over it.
_BLOCK, _BLOCKS = 1 << 18, 32
#: Files beyond this are not compressed: it takes a second for every 50 MB.
_COMPRESSED_MOST = 512 << 20
_CHUNK = 1 << 20


def zero_share(proto: onnx.ModelProto, folder: Path) -> float | None:
    """Return the share of zeros among the elements of a model's weight matrices and kernels.

    Counted are stored tensors with two axes or more of a float type or ``int8``; biases and scales
    say nothing about pruning. Of a tensor of more than 8 million elements, 32 blocks are counted.

    Args:
        proto: The model; external weights may be unloaded.
        folder: Where its external data lies; checked already.

    Returns:
        Between 0 and 1; ``None`` for a model without such weights.
    """
    import numpy as np

    zeros = elements = 0.0
    for graph in all_graphs(proto):
        for tensor in graph.initializer:
            values = stored_bits(tensor, folder)
            if values is None or len(tensor.dims) < 2 or not values.size:
                continue
            shift = _TYPES[ELEMENT_NAMES[tensor.data_type]][1]
            blocks = list(blocks_of(values))
            counted = sum(block.size for block in blocks)
            empty = sum(block.size - int(np.count_nonzero(block << shift)) for block in blocks)
            zeros += values.size * (empty / counted)
            elements += values.size
    return zeros / elements if elements else None


def compressed_size(path: Path, external: Sequence[ExternalFile]) -> int | None:
    """Return the bytes of a model and its external data after zlib at its fastest level.

    Returns:
        ``None`` for more than 512 MiB, which would take too long.

    Raises:
        OSError: if a file can't be read.
    """
    paths = (path, *(file.path for file in external))
    if sum(file.stat().st_size for file in paths) > _COMPRESSED_MOST:
        return None
    total = 0
    for file in paths:
        packer = zlib.compressobj(level=1)
        with file.open("rb") as stream:
            while chunk := stream.read(_CHUNK):
                total += len(packer.compress(chunk))
        total += len(packer.flush())
    return total


def stored_bits(tensor: onnx.TensorProto, folder: Path) -> NDArray[np.unsignedinteger] | None:
    """Return the elements of a tensor as unsigned integers of their width.

    Args:
        tensor: A stored tensor.
        folder: Where external data lies; checked already.

    Returns:
        ``None`` for a type that is not counted, and for a tensor without elements.
    """
    import numpy as np
    from onnx import TensorProto

    kind = _TYPES.get(ELEMENT_NAMES.get(tensor.data_type, ""))
    if kind is None:
        return None
    if tensor.data_location == TensorProto.EXTERNAL:
        entries = {entry.key: entry.value for entry in tensor.external_data}
        count = int(np.prod(tensor.dims, dtype=np.int64))
        path = folder / entries["location"].replace("\\", "/")
        return np.memmap(path, kind[0], "r", offset_of(tensor), (count,)) if count else None
    if content := tensor.raw_data:  # a copy each time
        whole = len(content) // np.dtype(kind[0]).itemsize  # the runtime refuses a rest
        return np.frombuffer(content, kind[0], whole)
    if tensor.float_data:
        return np.asarray(tensor.float_data, "<f4").view("<u4")
    if tensor.double_data:
        return np.asarray(tensor.double_data, "<f8").view("<u8")
    return np.asarray(tensor.int32_data).astype(kind[0]) if tensor.int32_data else None


def blocks_of(values: NDArray[np.unsignedinteger]) -> Iterator[NDArray[np.unsignedinteger]]:
    """Yield the whole tensor, or of a large one blocks of equal size at equal distances.

    Args:
        values: All elements.
    """
    if values.size <= _BLOCK * _BLOCKS:
        yield values
        return
    for index in range(_BLOCKS):
        start = (values.size - _BLOCK) * index // (_BLOCKS - 1)
        yield values[start : start + _BLOCK]
