"""TensorFlow Lite, which is LiteRT now: the interpreter of the package ai-edge-litert."""

from __future__ import annotations

from pytest_ortbench.engines.engine_kind import EngineKind

ENGINE = EngineKind(
    alias="tflite",
    title="TensorFlow Lite",
    target="pytest_ortbench.engines.tflite.worker:TensorFlowLite",
    is_framework=True,
    distributions=("ai-edge-litert",),
    options={"xnnpack": "0 leaves out the delegate XNNPACK, and so runs its own kernels"},
    exporter="pytest_ortbench.engines.tflite.export:export_tflite",
    exporter_distributions=("tensorflow", "tf2onnx"),
    loader="pytest_ortbench.engines.tflite.worker:load_tflite",
    source_suffixes=(".tflite",),
)
