"""Declares the framework ``python``: a callable of the user, compared with a named ONNX file."""

from __future__ import annotations

from pytest_ortbench.engines.engine_kind import EngineKind

ENGINE = EngineKind(
    alias="python",
    title="Python",
    target="pytest_ortbench.engines.python.worker:PythonCallable",
    is_framework=True,
    # Every class inherits from object, so that this is the framework of what has no other.
    models=("builtins",),
    exporter="pytest_ortbench.engines.python.export:export_callable",
    entry_keys={"onnx": "the ONNX file that does the same: a path, or its bytes"},
)
