"""Models that show what providers do, and cases on them measured as briefly as can be."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Protocol

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from pytest_ortbench.core.case import Runtime, Sampling
from pytest_ortbench.core.outcome import CaseResult
from pytest_ortbench.execution.execution import refused
from pytest_ortbench.execution.standard import measure
from pytest_ortbench.launch.launcher import ProcessLauncher
from pytest_ortbench.launch.probe_memory import ProbeMemory
from pytest_ortbench.planning.candidates import Candidates
from pytest_ortbench.planning.planner import Planner
from pytest_ortbench.planning.request import PlanRequest
from pytest_ortbench.runtimes.plugin_config import ConfiguredPlugin

QUICK = Sampling(time_s=0.05, workers=1, timeout_s=120.0)

#: Node, type and shape of an input or output.
Port = tuple[str, int, list[int | str]]


class Measured(Protocol):
    """Measures a model file on a provider in a runtime."""

    def __call__(
        self,
        path: Path,
        spec: str,
        runtime: Runtime,
        *,
        options: Mapping[str, str] | None = None,
        custom_ops: tuple[str, ...] = (),
        io: str = "end-to-end",
        sessions: int | None = None,
        plugins: tuple[ConfiguredPlugin, ...] = (),
    ) -> CaseResult: ...


def measured(
    launcher: ProcessLauncher,
    scratch: Path,
    reference_runtime: Runtime,
    path: Path,
    spec: str,
    runtime: Runtime,
    *,
    options: Mapping[str, str] | None = None,
    custom_ops: tuple[str, ...] = (),
    io: str = "end-to-end",
    sessions: int | None = None,
    plugins: tuple[ConfiguredPlugin, ...] = (),
) -> CaseResult:
    """Plan one case as the plugin does, and measure it with one worker."""
    planner = Planner(
        launcher,
        path.parent,
        runtimes=[runtime],
        notify=lambda _: None,
        candidates=Candidates(launcher, ProbeMemory(None), plugins),
    )
    request = PlanRequest(
        models=(str(path),),
        providers=(spec,),
        provider_options={spec.partition(":")[0]: dict(options)} if options else {},
        custom_ops=custom_ops,
        io=(io,),
        sessions=() if sessions is None else (sessions,),
        sampling=QUICK,
    )
    [planned] = planner.plan(request).entries
    if planned.refusal is not None:
        return refused(planned.case, planned.refusal)
    where = None if custom_ops else reference_runtime
    return measure(planned.case, launcher, scratch, reference_runtime=where)


def save(
    path: Path,
    nodes: list[onnx.NodeProto],
    inputs: list[Port],
    outputs: list[Port],
    weights: Mapping[str, np.ndarray] | None = None,
    *,
    opsets: Mapping[str, int] | None = None,
) -> Path:
    """Write a model of operator set 13."""
    graph = helper.make_graph(
        nodes,
        path.stem,
        [helper.make_tensor_value_info(*port) for port in inputs],
        [helper.make_tensor_value_info(*port) for port in outputs],
        [numpy_helper.from_array(value, name) for name, value in (weights or {}).items()],
    )
    imports = {"": 13, **(opsets or {})}
    model = helper.make_model(
        graph, ir_version=8, opset_imports=[helper.make_opsetid(*each) for each in imports.items()]
    )
    path.parent.mkdir(parents=True, exist_ok=True)
    onnx.save(model, path)
    return path


def drawn(*shape: int) -> np.ndarray:
    """Weights that are the same every time."""
    return np.random.default_rng(7).standard_normal(shape).astype(np.float32)


def mlp(path: Path) -> Path:
    """MatMul and Relu on [2, 16]."""
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["h"]),
        helper.make_node("Relu", ["h"], ["y"]),
    ]
    shapes = [("x", TensorProto.FLOAT, [2, 16])], [("y", TensorProto.FLOAT, [2, 8])]
    return save(path, nodes, *shapes, {"w": drawn(16, 8)})


def labels(path: Path) -> Path:
    """MatMul, ArgMax and LabelEncoder to strings, and Softmax beside them."""
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["h"]),
        helper.make_node("ArgMax", ["h"], ["class"], axis=1, keepdims=0),
        helper.make_node(
            "LabelEncoder",
            ["class"],
            ["label"],
            domain="ai.onnx.ml",
            keys_int64s=[0, 1, 2],
            values_strings=["cat", "dog", "bird"],
            default_string="?",
        ),
        helper.make_node("Softmax", ["h"], ["scores"], axis=1),
    ]
    return save(
        path,
        nodes,
        [("x", TensorProto.FLOAT, [2, 16])],
        [("label", TensorProto.STRING, [2]), ("scores", TensorProto.FLOAT, [2, 3])],
        {"w": drawn(16, 3)},
        opsets={"ai.onnx.ml": 2},
    )


def shapes_around_a_convolution(path: Path) -> Path:
    """Shape, Gather, Concat and Reshape around one Conv."""
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["c"], pads=[1, 1, 1, 1]),
        helper.make_node("Shape", ["c"], ["s"]),
        helper.make_node("Gather", ["s", "zero"], ["n"], axis=0),
        helper.make_node("Concat", ["n", "rest"], ["to"], axis=0),
        helper.make_node("Reshape", ["c", "to"], ["y"]),
    ]
    weights = {
        "w": drawn(4, 3, 3, 3),
        "zero": np.array([0], dtype=np.int64),
        "rest": np.array([-1], dtype=np.int64),
    }
    ports = [("x", TensorProto.FLOAT, ["N", 3, 8, 8])], [("y", TensorProto.FLOAT, ["N", "M"])]
    return save(path, nodes, *ports, weights)


def pooled(path: Path) -> Path:
    """Relu and GlobalAveragePool, which ggml lacks."""
    nodes = [
        helper.make_node("Relu", ["x"], ["h"]),
        helper.make_node("GlobalAveragePool", ["h"], ["y"]),
    ]
    ports = [("x", TensorProto.FLOAT, [1, 3, 8, 8])], [("y", TensorProto.FLOAT, [1, 3, 1, 1])]
    return save(path, nodes, *ports)


def quantised(path: Path) -> Path:
    """Conv, Relu and MatMul between QuantizeLinear and DequantizeLinear, as accelerators want."""
    nodes: list[onnx.NodeProto] = []
    weights: dict[str, np.ndarray] = {}

    def constant(name: str, values: np.ndarray, scale: float) -> str:
        weights[f"{name}_q"] = np.clip(np.round(values / scale), -127, 127).astype(np.int8)
        weights[f"{name}_s"] = np.float32(scale)
        weights[f"{name}_z"] = np.int8(0)
        parts = [f"{name}_{part}" for part in "qsz"]
        nodes.append(helper.make_node("DequantizeLinear", parts, [name]))
        return name

    def through(value: str, scale: float) -> str:
        weights[f"{value}_s"] = np.float32(scale)
        weights[f"{value}_z"] = np.uint8(128)
        ends = [f"{value}_s", f"{value}_z"]
        nodes.append(helper.make_node("QuantizeLinear", [value, *ends], [f"{value}_q"]))
        nodes.append(helper.make_node("DequantizeLinear", [f"{value}_q", *ends], [f"{value}_d"]))
        return f"{value}_d"

    start = through("x", 1 / 32)
    kernel = constant("kernel", drawn(4, 3, 3, 3) / 4, 1 / 64)
    nodes.append(helper.make_node("Conv", [start, kernel], ["c"], pads=[1, 1, 1, 1]))
    nodes.append(helper.make_node("Relu", [through("c", 1 / 32)], ["r"]))
    weights["to"] = np.array([1, 256], dtype=np.int64)
    nodes.append(helper.make_node("Reshape", [through("r", 1 / 32), "to"], ["f"]))
    weight = constant("weight", drawn(256, 10) / 16, 1 / 256)
    nodes.append(helper.make_node("MatMul", [through("f", 1 / 32), weight], ["m"]))
    through("m", 1 / 32)
    nodes[-1].output[0] = "y"
    ports = [("x", TensorProto.FLOAT, [1, 3, 8, 8])], [("y", TensorProto.FLOAT, [1, 10])]
    return save(path, nodes, *ports, weights)


def lowercase(path: Path) -> Path:
    """One operator of onnxruntime-extensions: strings to lower case."""
    nodes = [helper.make_node("StringLower", ["x"], ["y"], domain="ai.onnx.contrib")]
    ports = [("x", TensorProto.STRING, [3])], [("y", TensorProto.STRING, [3])]
    return save(path, nodes, *ports, opsets={"ai.onnx.contrib": 1})


def lowercase_letters(path: Path) -> Path:
    """One operator of ONNX on strings, which only the CPU has."""
    nodes = [helper.make_node("StringNormalizer", ["x"], ["y"], case_change_action="LOWER")]
    ports = [("x", TensorProto.STRING, [3])], [("y", TensorProto.STRING, [3])]
    return save(path, nodes, *ports)


def transformer(path: Path, *, layers: int = 2, width: int = 64, length: int = 32) -> Path:
    """A plain encoder on [1, length, width], without embeddings and masks."""
    heads = 4
    nodes: list[onnx.NodeProto] = []
    random = np.random.default_rng(3)
    weights: dict[str, np.ndarray] = {
        "split": np.array([1, length, heads, width // heads], dtype=np.int64),
        "join": np.array([1, length, width], dtype=np.int64),
        "scale": np.float32((width // heads) ** -0.5),
        "gamma": np.ones(width, dtype=np.float32),
        "beta": np.zeros(width, dtype=np.float32),
    }

    def weight(name: str, *shape: int) -> str:
        values = random.standard_normal(shape) * shape[0] ** -0.5
        weights[name] = values.astype(np.float32)
        return name

    def node(op: str, inputs: list[str], output: str, **attributes: object) -> str:
        nodes.append(helper.make_node(op, inputs, [output], **attributes))
        return output

    def head(prefix: str, value: str, order: list[int]) -> str:
        value = node("MatMul", [value, weight(f"{prefix}_w", width, width)], f"{prefix}_m")
        value = node("Reshape", [value, "split"], f"{prefix}_r")
        return node("Transpose", [value], f"{prefix}_t", perm=order)

    value = "x"
    for layer in range(layers):
        query = head(f"q{layer}", value, [0, 2, 1, 3])
        key = head(f"k{layer}", value, [0, 2, 3, 1])
        content = head(f"v{layer}", value, [0, 2, 1, 3])
        scores = node("MatMul", [query, key], f"scores{layer}")
        scores = node("Mul", [scores, "scale"], f"scaled{layer}")
        shares = node("Softmax", [scores], f"shares{layer}", axis=-1)
        mixed = node("MatMul", [shares, content], f"mixed{layer}")
        mixed = node("Transpose", [mixed], f"turned{layer}", perm=[0, 2, 1, 3])
        mixed = node("Reshape", [mixed, "join"], f"joined{layer}")
        mixed = node("MatMul", [mixed, weight(f"o{layer}_w", width, width)], f"out{layer}")
        mixed = node("Add", [mixed, value], f"added{layer}")
        mixed = node("LayerNormalization", [mixed, "gamma", "beta"], f"normed{layer}", axis=-1)
        inner = node("MatMul", [mixed, weight(f"f{layer}_w", width, 4 * width)], f"inner{layer}")
        inner = node("Relu", [inner], f"active{layer}")
        inner = node("MatMul", [inner, weight(f"g{layer}_w", 4 * width, width)], f"outer{layer}")
        value = node("Add", [inner, mixed], f"value{layer}")
    nodes[-1].output[0] = "y"
    shape: list[int | str] = [1, length, width]
    ports = [("x", TensorProto.FLOAT, shape)], [("y", TensorProto.FLOAT, shape)]
    return save(path, nodes, *ports, weights, opsets={"": 17})
