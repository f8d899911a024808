"""Tiny models: enough work to see whether a provider takes any, in a few hundred bytes each.

A convolution and a matrix product, in float and as QDQ forms (between QuantizeLinear and
DequantizeLinear), since some accelerators take quantised graphs only.

They are of operator set 11 and IR version 6, which every runtime that we support knows. Serialised
here since the measured interpreter need not have ``onnx``; the tests rebuild them from their parts.
"""

from __future__ import annotations

import base64
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np


@dataclass(frozen=True, slots=True, kw_only=True)
class TinyModel:
    """One model with one input ``x`` of float32.

    Attributes:
        name: What it computes.
        content: The serialised model.
        shape: Shape of its input.
    """

    name: str
    content: bytes
    shape: tuple[int, ...]


#: Conv of 1x2x6x6 with 3 kernels of 2x3x3, padded.
CONVOLUTION = TinyModel(
    name="convolution",
    content=base64.b64decode(
        "CAYSADrWAgoiCgF4CgF3EgF5IgRDb252KhEKBHBhZHNAAUABQAFAAaABBxILY29udm9sdXRpb24q6AEIAwgCCAMI"
        "AxABQgF3StgBAADAvgAAgL4AAAC+AAAAAAAAAD4AAIA+AADAPgAAwL4AAIC+AAAAvgAAAAAAAAA+AACAPgAAwD4A"
        "AMC+AACAvgAAAL4AAAAAAAAAPgAAgD4AAMA+AADAvgAAgL4AAAC+AAAAAAAAAD4AAIA+AADAPgAAwL4AAIC+AAAA"
        "vgAAAAAAAAA+AACAPgAAwD4AAMC+AACAvgAAAL4AAAAAAAAAPgAAgD4AAMA+AADAvgAAgL4AAAC+AAAAAAAAAD4A"
        "AIA+AADAPgAAwL4AAIC+AAAAvgAAAAAAAAA+WhsKAXgSFgoUCAESEAoCCAEKAggCCgIIBgoCCAZiGwoBeRIWChQI"
        "ARIQCgIIAQoCCAMKAggGCgIIBkIECgAQCw=="
    ),
    shape=(1, 2, 6, 6),
)
#: MatMul of 2x8 with 8x4.
MATRIX_PRODUCT = TinyModel(
    name="matrix product",
    content=base64.b64decode(
        "CAYSADrcAQoRCgF4CgF3EgF5IgZNYXRNdWwSDm1hdHJpeC1wcm9kdWN0KowBCAgIBBABQgF3SoABAAAAvwAAgL4A"
        "AAAAAACAPgAAAD8AAAC/AACAvgAAAAAAAIA+AAAAPwAAAL8AAIC+AAAAAAAAgD4AAAA/AAAAvwAAgL4AAAAAAACA"
        "PgAAAD8AAAC/AACAvgAAAAAAAIA+AAAAPwAAAL8AAIC+AAAAAAAAgD4AAAA/AAAAvwAAgL5aEwoBeBIOCgwIARII"
        "CgIIAgoCCAhiEwoBeRIOCgwIARIICgIIAgoCCARCBAoAEAs="
    ),
    shape=(2, 8),
)
#: The same convolution of values in steps of 1/128, with weights in steps of 1/64.
QUANTISED_CONVOLUTION = TinyModel(
    name="quantised convolution",
    content=base64.b64decode(
        "CAYSADq1AwofCgF4CgJ4cwoCeHoSAnhxIg5RdWFudGl6ZUxpbmVhcgoiCgJ4cQoCeHMKAnh6EgJ4ZCIQRGVxdWFu"
        "dGl6ZUxpbmVhcgohCgF3CgJ3cwoCd3oSAndkIhBEZXF1YW50aXplTGluZWFyCiQKAnhkCgJ3ZBIBciIEQ29udioR"
        "CgRwYWRzQAFAAUABQAGgAQcKHwoBcgoCeXMKAnl6EgJycSIOUXVhbnRpemVMaW5lYXIKIQoCcnEKAnlzCgJ5ehIB"
        "eSIQRGVxdWFudGl6ZUxpbmVhchIVcXVhbnRpc2VkLWNvbnZvbHV0aW9uKgwQAUICeHNKBAAAADwqCRACQgJ4ekoB"
        "gCoMEAFCAndzSgQAAIA8KgkQA0ICd3pKAQAqDBABQgJ5c0oEAAAAPSoJEAJCAnl6SgGAKkUIAwgCCAMIAxADQgF3"
        "SjbQ4PAAECAw0ODwABAgMNDg8AAQIDDQ4PAAECAw0ODwABAgMNDg8AAQIDDQ4PAAECAw0ODwABBaGwoBeBIWChQI"
        "ARIQCgIIAQoCCAIKAggGCgIIBmIbCgF5EhYKFAgBEhAKAggBCgIIAwoCCAYKAggGQgQKABAL"
    ),
    shape=(1, 2, 6, 6),
)
#: The same matrix product, likewise.
QUANTISED_MATRIX_PRODUCT = TinyModel(
    name="quantised matrix product",
    content=base64.b64decode(
        "CAYSADr9AgofCgF4CgJ4cwoCeHoSAnhxIg5RdWFudGl6ZUxpbmVhcgoiCgJ4cQoCeHMKAnh6EgJ4ZCIQRGVxdWFu"
        "dGl6ZUxpbmVhcgohCgF3CgJ3cwoCd3oSAndkIhBEZXF1YW50aXplTGluZWFyChMKAnhkCgJ3ZBIBciIGTWF0TXVs"
        "Ch8KAXIKAnlzCgJ5ehICcnEiDlF1YW50aXplTGluZWFyCiEKAnJxCgJ5cwoCeXoSAXkiEERlcXVhbnRpemVMaW5l"
        "YXISGHF1YW50aXNlZC1tYXRyaXgtcHJvZHVjdCoMEAFCAnhzSgQAAAA8KgkQAkICeHpKAYAqDBABQgJ3c0oEAACA"
        "PCoJEANCAnd6SgEAKgwQAUICeXNKBAAAAD0qCRACQgJ5ekoBgCorCAgIBBADQgF3SiDg8AAQIODwABAg4PAAECDg"
        "8AAQIODwABAg4PAAECDg8FoTCgF4Eg4KDAgBEggKAggCCgIICGITCgF5Eg4KDAgBEggKAggCCgIIBEIECgAQCw=="
    ),
    shape=(2, 8),
)
TINY_MODELS = (CONVOLUTION, MATRIX_PRODUCT)
QUANTISED_MODELS = (QUANTISED_CONVOLUTION, QUANTISED_MATRIX_PRODUCT)


def tiny_feeds(model: TinyModel) -> dict[str, np.ndarray]:
    """Return the input of a tiny model."""
    import numpy as np  # comes with ONNX Runtime

    count = 1
    for size in model.shape:
        count *= size
    values = np.linspace(-1.0, 1.0, count, dtype=np.float32)
    return {"x": values.reshape(model.shape)}
