"""Cases on small real models, and interpreters whose ONNX Runtime misbehaves on purpose."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import onnx
from onnx import TensorProto, helper

from pytest_ortbench.core.case import Case, InputSpec, Provider, Runtime, Sampling
from pytest_ortbench.core.model import Model, ValueHint, Variant

CPU = Provider(alias="cpu", name="CPUExecutionProvider")


def x_input(shape: tuple[int, ...] = (2, 4), kind: str = "tensor(float)") -> InputSpec:
    """The input ``x``."""
    return InputSpec(name="x", type=kind, shape=shape, hint=ValueHint(kind="normal"))


def case_of(
    path: Path,
    *,
    provider: Provider = CPU,
    runtime: Runtime | None = None,
    inputs: tuple[InputSpec, ...] | None = None,
    timeout_s: float = 600.0,
) -> Case:
    """A case that measures the file at ``path``."""
    content = path.read_bytes() if path.is_file() else b""
    digest = hashlib.sha256(content).hexdigest()
    model = Model(name="m", path=str(path), source="file", digest=digest, size_bytes=len(content))
    return Case(
        model=model,
        variant=Variant(precision="native", path=str(path), digest=digest, size_bytes=len(content)),
        provider=provider,
        runtime=runtime or Runtime(),
        inputs=(x_input(),) if inputs is None else inputs,
        sampling=Sampling(timeout_s=timeout_s),
    )


def save(
    path: Path,
    nodes: list[onnx.NodeProto],
    *,
    kind: int = TensorProto.FLOAT,
    shape: tuple[int | str | None, ...] = (None, 4),
    weights: list[onnx.TensorProto] | None = None,
    opsets: dict[str, int] | None = None,
    ir_version: int = 8,
) -> Path:
    """Write a model from ``x`` to ``y``."""
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info("x", kind, shape)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        weights or [],
    )
    imports = [
        helper.make_opsetid(domain, version) for domain, version in (opsets or {"": 13}).items()
    ]
    model = helper.make_model(graph, opset_imports=imports)
    model.ir_version = ir_version
    path.write_bytes(model.SerializeToString())
    return path


def relu(path: Path) -> Path:
    """Write a model of one Relu."""
    return save(path, [helper.make_node("Relu", ["x"], ["y"])])


#: A package ``onnxruntime`` that does what the environment says when it comes to a phase.
_STAND_IN = """
import ctypes, os, subprocess, sys, time
__version__ = "0.0"
KEPT = []
WANTED, _, PHASE = os.environ["STAND_IN"].partition("@")

def misbehave(phase):
    if phase != PHASE:
        return
    if WANTED == "segfault":
        os.write(2, b"about to fall\\n")
        ctypes.string_at(0)
    elif WANTED == "hang":
        child = subprocess.Popen(["sleep", "600"])
        with open(os.environ["CHILD"], "w") as file:
            file.write(str(child.pid))
        time.sleep(600)
    elif WANTED == "print":
        print("chatter from Python")
        os.write(1, b"chatter from below, no line end")
    elif WANTED == "leave":
        os._exit(7)
    elif WANTED == "sys.exit":
        sys.exit(9)
    elif WANTED == "abort":
        os.write(2, b"terminate called after throwing an instance of 'std::bad_alloc'\\n")
        os.abort()
    elif WANTED == "memory":
        raise MemoryError("Unable to allocate 1.00 TiB for an array")
    elif WANTED == "raise":
        raise RuntimeError("the stand-in gives up")

misbehave("import")

class SessionOptions:
    def add_session_config_entry(self, key, value):
        pass

class GraphOptimizationLevel:
    ORT_DISABLE_ALL, ORT_ENABLE_ALL = 0, 99

class ExecutionMode:
    ORT_SEQUENTIAL, ORT_PARALLEL = 0, 1

def get_available_providers():
    return ["CPUExecutionProvider"]

class InferenceSession:
    calls = 0
    def __init__(self, model, options, providers, enable_fallback):
        misbehave("session")
    def disable_fallback(self):
        pass
    def get_providers(self):
        return ["CPUExecutionProvider"]
    def get_provider_options(self):
        return {"CPUExecutionProvider": {}}
    def get_inputs(self):
        return []
    def get_outputs(self):
        return []
    def run(self, names, feeds):
        misbehave("first" if InferenceSession.calls == 0 else "later")
        InferenceSession.calls += 1
        if WANTED == "keep":
            KEPT.append(bytearray(b"1" * 16384))
            time.sleep(0.001)
        return [feeds["x"]]
"""


def stand_in(folder: Path, behaviour: str) -> Runtime:
    """An interpreter whose ONNX Runtime misbehaves: ``segfault@session``.

    Args:
        folder: Where the package is written; the process id of a child stands in its ``child``.
        behaviour: What it does, and in which phase: ``import``, ``session``, ``first`` or
            ``later`` (every run but the first); ``keep@run``: every run keeps 16 kB.
    """
    package = folder / "stand-in" / "onnxruntime"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text(_STAND_IN)
    paths = [str(package.parent), *filter(None, [os.environ.get("PYTHONPATH")])]
    return Runtime(
        environment={
            "PYTHONPATH": os.pathsep.join(paths),
            "STAND_IN": behaviour,
            "CHILD": str(folder / "child"),
        }
    )
