"""Small models, and a real session to run them in with the inputs that we resolve."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime as ort
from onnx import TensorProto, helper, numpy_helper

from pytest_ortbench.core.model import Model, TensorInfo, ValueHint
from pytest_ortbench.models.graph import read_model
from pytest_ortbench.planning.feeds import resolve_inputs
from pytest_ortbench.worker.inputs import make_feeds

FLOAT, INT64, INT32 = TensorProto.FLOAT, TensorProto.INT64, TensorProto.INT32
BOOL, STRING, UINT8 = TensorProto.BOOL, TensorProto.STRING, TensorProto.UINT8

Sizes = Sequence[int | str | None] | None


def value(name: str, shape: Sizes, kind: int = FLOAT) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, kind, shape)


def weight(name: str, *shape: int, low: float = -1.0, high: float = 1.0) -> onnx.TensorProto:
    generator = np.random.default_rng(len(name))
    return numpy_helper.from_array(generator.uniform(low, high, shape).astype(np.float32), name)


def constant(name: str, values: object, dtype: str = "int64") -> onnx.TensorProto:
    return numpy_helper.from_array(np.array(values, dtype=dtype), name)


def node(
    op: str, inputs: Sequence[str], outputs: Sequence[str], **attributes: Any
) -> onnx.NodeProto:
    return helper.make_node(op, inputs, outputs, **attributes)


def model(
    nodes: Sequence[onnx.NodeProto],
    inputs: Sequence[onnx.ValueInfoProto],
    outputs: Sequence[onnx.ValueInfoProto],
    weights: Sequence[onnx.TensorProto] = (),
    *,
    opsets: Mapping[str, int] | None = None,
    ir_version: int = 8,
) -> onnx.ModelProto:
    graph = helper.make_graph(nodes, "g", inputs, outputs, weights)
    imports = [helper.make_opsetid(*item) for item in (opsets or {"": 17}).items()]
    return helper.make_model(graph, opset_imports=imports, ir_version=ir_version)


def relu(shape: Sizes = ("N", 4), kind: int = FLOAT) -> onnx.ModelProto:
    return model([node("Relu", ["x"], ["y"])], [value("x", shape, kind)], [value("y", None, kind)])


def read(proto: onnx.ModelProto, folder: Path, name: str = "m") -> Model:
    path = folder / f"{name}.onnx"
    onnx.save(proto, path)
    return read_model(path, name=name, source="file")


def input_of(found: Model, name: str) -> TensorInfo:
    return next(info for info in found.inputs if info.name == name)


def hint_of(found: Model, name: str) -> ValueHint:
    hint = input_of(found, name).hint
    assert hint is not None
    return hint


def run(
    found: Model,
    *,
    batch: int | None = 1,
    dims: Mapping[str, int] | None = None,
    inputs_path: Path | None = None,
) -> tuple[dict[str, Any], list[Any]]:
    """Resolve, draw and run a model on ONNX Runtime; returns its feeds and its outputs."""
    specs = resolve_inputs(found, batch=batch, dims=dims or {}, inputs_path=inputs_path)
    feeds = make_feeds(specs, seed=0)
    options = ort.SessionOptions()
    options.log_severity_level = 3
    session = ort.InferenceSession(found.path, options, providers=["CPUExecutionProvider"])
    return feeds, session.run(None, feeds)
