"""Boosted trees of XGBoost, exported by onnxmltools."""

from __future__ import annotations

from pytest_ortbench.engines.engine_kind import EngineKind

ENGINE = EngineKind(
    alias="xgboost",
    title="XGBoost",
    target="pytest_ortbench.engines.xgboost.worker:XgBoostModel",
    is_framework=True,
    distributions=("xgboost", "scikit-learn"),
    models=("xgboost",),
    exporter="pytest_ortbench.engines.xgboost.export:export_xgboost",
    exporter_distributions=("onnxmltools", "skl2onnx"),
)
