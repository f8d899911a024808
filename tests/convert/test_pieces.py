"""Work in pieces gives what it gives at once."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from onnx import TensorProto

from pytest_ortbench.convert import half, integer
from pytest_ortbench.core.recipe import Converted
from tests.worker.graphs import weights

from .conversions import FP16, mlp

pytestmark = pytest.mark.live


def test_pieces_give_the_same_bits(monkeypatch: pytest.MonkeyPatch) -> None:
    from onnxruntime.quantization import quant_utils

    values = weights(1001, seed=3)
    for kind, zero in ((TensorProto.UINT8, np.uint8(7)), (TensorProto.INT8, np.int8(0))):
        whole = quant_utils.quantize_nparray(kind, values, np.float32(0.01), zero)
        monkeypatch.setattr(integer, "_ELEMENTS_AT_A_TIME", 100)
        with integer.bounded_memory():
            parts = quant_utils.quantize_nparray(kind, values, np.float32(0.01), zero)
        assert parts.dtype == whole.dtype
        assert np.array_equal(parts, whole)


def test_rounding_in_pieces_gives_the_same_bits(
    make: Callable[..., Converted], monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = make(mlp(), FP16).digest
    monkeypatch.setattr(half, "_PIECE", 100)
    assert make(mlp(), FP16).digest == whole
