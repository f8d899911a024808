"""Lets ONNX Runtime's CPU provider stand in for TensorRT's and CUDA's, in the order that is asked.

A session computes on the CPU. Its profile and its graph assignment say of each node that the first
provider ran it, in the order of the session, that takes such an operator. TensorRT takes products
of matrices, CUDA everything but ``Hardmax``; the CPU takes what is left, or all that reaches it.

``STAND_IN_BROKEN`` names a provider that has no session.
"""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import json
import os
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

TENSORRT, CUDA, CPU = "TensorrtExecutionProvider", "CUDAExecutionProvider", "CPUExecutionProvider"


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
            super().__init__(model, sess_options, providers=[CPU], **rest)

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
