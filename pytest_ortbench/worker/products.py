"""A product with the identity: what of float32 is kept by whatever multiplies it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pytest_ortbench.core.mantissa import kept_bits, mantissa_steps
from pytest_ortbench.worker.model_writer import Node, Value, write_model

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

#: Names of the input and of the output.
INPUT, OUTPUT = "x", "y"
#: Rows and width of the product: multiples of what kernels for matrices take at once.
SHAPE = (64, 128)
_OPSET = 13


def identity_product() -> tuple[bytes, dict[str, NDArray[np.float32]]]:
    """Return an ONNX file that multiplies its input with the identity, and what it is fed.

    Each value that is fed needs one more bit than the one before it.
    """
    import numpy as np  # comes with ONNX Runtime and with every engine

    model = write_model(
        [Node(op="MatMul", inputs=(INPUT, "identity"), output=OUTPUT)],
        [Value(name=INPUT, element="float", shape=SHAPE)],
        [Value(name=OUTPUT, element="float", shape=SHAPE)],
        {"identity": ("float", np.eye(SHAPE[1], dtype=np.float32))},
        opset=_OPSET,
    )
    column = np.array(mantissa_steps(SHAPE[0]), dtype=np.float32)
    return model, {INPUT: np.repeat(column[:, None], SHAPE[1], axis=1)}


def bits_in(product: Any) -> int | None:
    """Return how many bits of the mantissa came out of the model as they went in.

    Args:
        product: Its output, an array of numpy.
    """
    return kept_bits([float(value) for value in product[:, 0]])
