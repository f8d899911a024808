"""Boosted trees of LightGBM, exported by onnxmltools."""

from __future__ import annotations

from pytest_ortbench.engines.engine_kind import EngineKind

ENGINE = EngineKind(
    alias="lightgbm",
    title="LightGBM",
    target="pytest_ortbench.engines.lightgbm.worker:LightGbmModel",
    is_framework=True,
    distributions=("lightgbm", "scikit-learn"),
    models=("lightgbm",),
    exporter="pytest_ortbench.engines.lightgbm.export:export_lightgbm",
    exporter_distributions=("onnxmltools", "skl2onnx"),
)
