"""A stored tensor of ONNX's test data (``input_0.pb``): its type and shape."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from pytest_ortbench.core.element_types import ELEMENT_NAMES


@dataclass(frozen=True, slots=True, kw_only=True)
class TensorHeader:
    """Type (ONNX Runtime's spelling) and shape of a stored tensor."""

    name: str
    type: str
    shape: tuple[int, ...]


def read_tensor_header(path: Path) -> TensorHeader:
    """Read the header of a serialised ``TensorProto``.

    Raises:
        OSError: if the file can't be opened.
        ValueError: if it is no tensor.
    """
    import onnx
    from google.protobuf.message import (  # type: ignore[import-untyped, unused-ignore]
        DecodeError,
    )

    tensor = onnx.TensorProto()
    try:
        tensor.ParseFromString(path.read_bytes())
    except DecodeError as error:
        raise ValueError(f"it is not a serialised tensor: {error}") from None
    element = ELEMENT_NAMES.get(tensor.data_type)
    if element is None:
        raise ValueError("it is not a serialised tensor: it has no element type")
    return TensorHeader(name=tensor.name, type=f"tensor({element})", shape=tuple(tensor.dims))
