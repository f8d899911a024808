"""Recipes, small models and looks at what was made, for tests of conversions."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

from pytest_ortbench.core.errors import WorkerError
from pytest_ortbench.core.outcome import Failure
from pytest_ortbench.core.precision import precision_of
from pytest_ortbench.core.recipe import Conversion, Converted, Recipe
from pytest_ortbench.models.graph import read_model
from pytest_ortbench.planning.feeds import resolve_inputs
from tests.worker.graphs import serialised, value, weights

FLOAT, HALF = TensorProto.FLOAT, TensorProto.FLOAT16

FP16 = Recipe(name="fp16", base="fp16")
BF16 = Recipe(name="bf16", base="bf16")
FP32 = Recipe(name="fp32", base="fp32")
DYNAMIC = Recipe(name="int8-dynamic", base="int8-dynamic", weight_type="uint8")
STATIC = Recipe(
    name="int8-static",
    base="int8-static",
    weight_type="int8",
    activation_type="uint8",
    calibration_samples=16,
)


def conversion_of(path: Path, recipe: Recipe) -> Conversion:
    model = read_model(path, name="m", source="file")
    return Conversion(
        recipe=recipe,
        source=model.path,
        digest=model.digest,
        size_bytes=model.size_bytes,
        own_precision=precision_of(model),
        inputs=resolve_inputs(model, batch=1, dims={}),
    )


def refusal(make: Callable[..., Converted], source: bytes | Path, recipe: Recipe) -> Failure:
    with pytest.raises(WorkerError) as caught:
        make(source, recipe)
    assert caught.value.failure.phase == "convert"
    return caught.value.failure


def made(tmp_path: Path) -> onnx.ModelProto:
    return onnx.load(str(tmp_path / "out" / "model.onnx"))


def stored(model: onnx.ModelProto) -> dict[str, onnx.TensorProto]:
    return {tensor.name: tensor for tensor in model.graph.initializer}


def outputs(path: Path, feeds: dict[str, object], *, optimise: bool = True) -> list[np.ndarray]:
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    if not optimise:
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    found: list[np.ndarray] = session.run(None, feeds)
    return found


def sqnr_db(expected: np.ndarray, found: np.ndarray) -> float:
    noise = np.sum((expected.astype("float64") - found) ** 2)
    return float(10 * np.log10(np.sum(expected.astype("float64") ** 2) / noise))


def mlp(depth: int = 2, width: int = 48) -> bytes:
    """``depth`` matrix products with a Relu between them."""
    nodes, name = [], "x"
    for layer in range(depth):
        nodes.append(
            helper.make_node("MatMul", [name, f"w{layer}"], [f"h{layer}"], name=f"mm{layer}")
        )
        name = f"h{layer}"
        if layer + 1 < depth:
            nodes.append(helper.make_node("Relu", [name], [f"r{layer}"], name=f"relu{layer}"))
            name = f"r{layer}"
    return serialised(
        nodes,
        [value("x", FLOAT, ["N", width])],
        [value(name, FLOAT, ["N", width])],
        {f"w{n}": weights(width, width, seed=n, scale=width**-0.5) for n in range(depth)},
    )


def convolutions(*, opset: int = 13, normalised: bool = False) -> bytes:
    """Two convolutions; with ``normalised``, a BatchNormalization that is fused into the first."""
    nodes = [
        helper.make_node("Conv", ["x", "w0"], ["c0"], name="conv0", pads=[1, 1, 1, 1]),
        helper.make_node("Relu", ["n0" if normalised else "c0"], ["r0"], name="relu0"),
        helper.make_node("Conv", ["r0", "w1"], ["y"], name="conv1", pads=[1, 1, 1, 1]),
    ]
    tensors = {"w0": weights(8, 4, 3, 3, scale=0.2), "w1": weights(8, 8, 3, 3, seed=1, scale=0.1)}
    if normalised:
        parts = ["scale", "bias", "mean", "var"]
        nodes.insert(
            1, helper.make_node("BatchNormalization", ["c0", *parts], ["n0"], name="norm0")
        )
        tensors |= {part: np.ones(8, np.float32) for part in parts}
    return serialised(
        nodes,
        [value("x", FLOAT, ["N", 4, 12, 12])],
        [value("y", FLOAT, ["N", 8, 12, 12])],
        tensors,
        opset=opset,
    )


def resized() -> bytes:
    return serialised(
        [
            helper.make_node("Relu", ["x"], ["a"], name="relu"),
            helper.make_node("Resize", ["a", "", "s"], ["y"], name="resize", mode="nearest"),
        ],
        [value("x", FLOAT, [1, 3, 8, 8])],
        [value("y", FLOAT, [1, 3, 16, 16])],
        {"s": np.array([1, 1, 2, 2], np.float32)},
    )


def extremes() -> bytes:
    """Adds an epsilon that float16 can't hold, and multiplies by what it can't hold either."""
    return serialised(
        [
            helper.make_node("Mul", ["x", "x"], ["s"], name="square"),
            helper.make_node("Add", ["s", "eps"], ["v"], name="plus"),
            helper.make_node("Sqrt", ["v"], ["d"], name="root"),
            helper.make_node("Div", ["x", "d"], ["n"], name="norm"),
            helper.make_node("Mul", ["n", "big"], ["y"], name="scale"),
        ],
        [value("x", FLOAT, ["N", 8])],
        [value("y", FLOAT, ["N", 8])],
        {"eps": np.array(1e-12, np.float32), "big": np.array(1e6, np.float32)},
    )


def branching() -> bytes:
    """One of two products, each inside a branch."""
    inner = [
        helper.make_graph(
            [helper.make_node("MatMul", ["x", f"w{side}"], [f"o{side}"], name=f"mm{side}")],
            f"branch{side}",
            [],
            [value(f"o{side}", FLOAT, ["N", 24])],
            [numpy_helper.from_array(weights(24, 24, seed=side), f"w{side}")],
        )
        for side in range(2)
    ]
    return serialised(
        [
            helper.make_node("ReduceSum", ["x"], ["sum"], name="sum", keepdims=0),
            helper.make_node("Greater", ["sum", "zero"], ["positive"], name="gt"),
            helper.make_node(
                "If", ["positive"], ["y"], name="if", then_branch=inner[0], else_branch=inner[1]
            ),
        ],
        [value("x", FLOAT, ["N", 24])],
        [value("y", FLOAT, ["N", 24])],
        {"zero": np.array(0, np.float32)},
    )
