"""Lets ONNX Runtime's CPU provider stand in for TensorRT's and CUDA's, in the order that is asked.

A session computes on the CPU. Its profile and its graph assignment say of each node that the first
provider ran it, in the order of the session, that takes such an operator. TensorRT takes products
of matrices, CUDA everything but ``Hardmax``; the CPU takes what is left, or all that reaches it.

``STAND_IN_BROKEN`` names a provider that has no session.

``STAND_IN_SEARCHES`` names a file that gets a line for each search for the fastest kernels, which
takes ``STAND_IN_SEARCH_S``: of CUDA in a session's first run, where cuDNN or TunableOp is told to;
of TensorRT while an engine is built, unless the level is 0 or its timing cache has the kernels. A
line is what searches, the model's name and the number of runs before. An engine is a file that
later sessions load.
"""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import json
import os
import sys
import time
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

TENSORRT, CUDA, CPU = "TensorrtExecutionProvider", "CUDAExecutionProvider", "CPUExecutionProvider"


def search(searcher: str, model: object, runs: int) -> None:
    """Search for the fastest kernels, and leave a line about it."""
    record = os.environ.get("STAND_IN_SEARCHES")
    if record and isinstance(model, str):
        time.sleep(float(os.environ["STAND_IN_SEARCH_S"]))
        with Path(record).open("a", encoding="utf-8") as file:
            file.write(f"{searcher} {Path(model).name} {runs}\n")


def searches(options: dict[str, str]) -> bool:
    """Whether CUDA is told to search, by cuDNN or by TunableOp."""
    return (
        options.get("cudnn_conv_algo_search") == "EXHAUSTIVE"
        or options.get("tunable_op_tuning_enable") == "1"
    )


def build(options: dict[str, str], model: object) -> None:
    """Load TensorRT's engine, or build one and keep it, with the times of its kernels."""
    kept = options.get("trt_engine_cache_path") if isinstance(model, str) else None
    engine = Path(kept, "graph.engine") if kept else None
    if engine is not None and engine.exists():
        return
    cache = options.get("trt_timing_cache_path")
    timed = Path(cache, "kernels.timing") if cache and isinstance(model, str) else None
    if options.get("trt_builder_optimization_level", "3") != "0":
        if timed is None or not timed.exists():
            search(TENSORRT, model, 0)
        if timed is not None:
            timed.touch()
    if engine is not None:
        engine.touch()


def takes(provider: str, operator: str) -> bool:
    """Whether a provider has a kernel for an operator."""
    if provider == TENSORRT:
        return operator in ("MatMul", "FusedMatMul", "Gemm")
    return provider == CPU or operator != "Hardmax"


def change(ort: Any) -> None:
    """Put the stand-in into the package."""
    plain: Any = ort.InferenceSession

    class InferenceSession(plain):  # type: ignore[misc]  # the package has no types
        def __init__(
            self, model: Any, sess_options: Any = None, providers: Any = None, **rest: Any
        ) -> None:
            self.given = dict(providers or [(CPU, {})])
            if os.environ.get("STAND_IN_BROKEN") in self.given:
                raise RuntimeError("no CUDA-capable device is detected")
            if TENSORRT in self.given:
                build(self.given[TENSORRT], model)
            super().__init__(model, sess_options, providers=[CPU], **rest)
            self.model, self.runs = model, 0

        def run(self, *arguments: Any, **named: Any) -> Any:
            if searches(self.given.get(CUDA, {})) and not self.runs:
                search(CUDA, self.model, self.runs)
            self.runs += 1
            return super().run(*arguments, **named)

        def get_providers(self) -> list[str]:
            return list(dict.fromkeys((*self.given, CPU)))

        def get_provider_options(self) -> dict[str, dict[str, str]]:
            known = {"device_id": "0", "trt_fp16_enable": "0", "use_tf32": "1"}
            return {name: {**known, **options} if options or name != CPU else {}
                    for name, options in self.given.items()}  # fmt: skip

        def chosen(self, operator: str) -> str:
            return next(name for name in self.get_providers() if takes(name, operator))

        def end_profiling(self) -> str:
            path = Path(super().end_profiling())
            events = json.loads(path.read_text(encoding="utf-8"))
            for event in events:
                facts = event.get("args", {})
                if facts.get("provider") == CPU:
                    facts["provider"] = self.chosen(facts["op_name"])
            path.write_text(json.dumps(events), encoding="utf-8")
            return str(path)

        def get_provider_graph_assignment_info(self) -> list[Any]:
            nodes = [
                node
                for part in super().get_provider_graph_assignment_info()
                for node in part.get_nodes()
            ]
            return [
                SimpleNamespace(
                    ep_name=self.chosen(node.op_type), get_nodes=lambda node=node: [node]
                )
                for node in nodes
            ]

    ort.InferenceSession = InferenceSession
    ort.get_available_providers = lambda: [TENSORRT, CUDA, CPU]
    ort.preload_dlls = lambda *_, **__: None


class Loader(importlib.abc.Loader):
    """The loader of the package, and the change behind it."""

    def __init__(self, loader: Any) -> None:
        self._loader = loader

    def create_module(self, spec: Any) -> Any:
        return self._loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        self._loader.exec_module(module)
        change(module)


class Finder(importlib.abc.MetaPathFinder):
    """Finds the package where it is."""

    def find_spec(self, name: str, path: Any, target: Any = None) -> Any:
        del target
        if name != "onnxruntime":
            return None
        spec = importlib.machinery.PathFinder.find_spec(name, path)
        if spec is not None:
            spec.loader = Loader(spec.loader)
        return spec


sys.meta_path.insert(0, Finder())
