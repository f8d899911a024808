"""Models of scikit-learn: estimators and pipelines, exported by skl2onnx."""

from __future__ import annotations

from pytest_ortbench.engines.engine_kind import EngineKind

ENGINE = EngineKind(
    alias="sklearn",
    title="scikit-learn",
    target="pytest_ortbench.engines.sklearn.worker:SklearnModel",
    is_framework=True,
    distributions=("scikit-learn",),
    models=("sklearn",),
    exporter="pytest_ortbench.engines.sklearn.export:export_estimator",
    exporter_distributions=("skl2onnx",),
    entry_keys={
        "types": "type of an input in the ONNX file: float, double, int64, bool or string",
        "options": "options of skl2onnx, by class of estimators",
        "opset": "version of the operators, by default the latest that skl2onnx was tested with",
    },
)
