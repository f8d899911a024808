"""MNN: converts the ONNX file into one of its own, and runs that."""

from __future__ import annotations

from pytest_ortbench.engines.engine_kind import EngineKind

ENGINE = EngineKind(
    alias="mnn",
    title="MNN",
    target="pytest_ortbench.engines.mnn.worker:Mnn",
    distributions=("MNN",),
    options={
        "precision": "normal, high or low; high by default",
        "useGeluApproximation": "1 approximates GELU, as MNN's converter does by default; 0 "
        "(default here) computes it as in the file",
    },
)
