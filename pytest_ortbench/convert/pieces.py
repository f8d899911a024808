"""The quantiser's arithmetic in pieces, so that one huge weight does not take five times its size.

``quantize_nparray`` divides, rounds and shifts the whole array at once, each into an array of its
own in float32. *Seen*: a weight of 0.54 GB took 3.2 GB. It works element by element, so a large
array with one scale gives the same bits piece by piece.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

#: Elements at a time; smaller arrays are left to the tool as they are.
_PIECE = 1 << 24


@contextmanager
def bounded_memory() -> Iterator[None]:
    """Let ONNX Runtime's quantiser work in pieces while this lasts.

    A version of ONNX Runtime that has no such function is left as it is.
    """
    from onnxruntime.quantization import quant_utils

    original = getattr(quant_utils, "quantize_nparray", None)
    if original is None:
        yield
        return

    def in_pieces(
        kind: Any, values: Any, scale: Any, zero_point: Any, *rest: Any, **more: Any
    ) -> Any:
        import numpy as np

        if getattr(values, "size", 0) <= _PIECE or np.size(scale) != 1 or np.size(zero_point) != 1:
            return original(kind, values, scale, zero_point, *rest, **more)
        flat = values.reshape(-1)
        first = original(kind, flat[:_PIECE], scale, zero_point, *rest, **more)
        result = np.empty(flat.shape, dtype=first.dtype)
        result[:_PIECE] = first
        for start in range(_PIECE, flat.size, _PIECE):
            piece = flat[start : start + _PIECE]
            result[start : start + _PIECE] = original(kind, piece, scale, zero_point, *rest, **more)
        return result.reshape(values.shape)

    quant_utils.quantize_nparray = in_pieces
    try:
        yield
    finally:
        quant_utils.quantize_nparray = original
