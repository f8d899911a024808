"""Small models that differ in their weights, for suites of many of them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

_WIDTH = 64


def save_product(path: Path, *, seed: int) -> None:
    """Write one product of matrices, with weights of its own."""
    weights = np.random.default_rng(seed).standard_normal((_WIDTH, _WIDTH), dtype=np.float32)
    graph = helper.make_graph(
        [helper.make_node("MatMul", ["x", "w"], ["y"])],
        "product",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["batch", _WIDTH])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["batch", _WIDTH])],
        [numpy_helper.from_array(weights, "w")],
    )
    opsets = [helper.make_opsetid("", 17)]
    onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=8), path)
