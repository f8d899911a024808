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
        "useGeluApproximation": "1 computes GELU by an approximation, as MNN's converter does "
        "where it is not told; 0 by default, which is what the file says",
    },
)
