"""ncnn: pnnx converts the ONNX file into files of ncnn's own, which it runs on the CPU."""

from __future__ import annotations

from pytest_ortbench.engines.engine_kind import EngineKind

ENGINE = EngineKind(
    alias="ncnn",
    title="ncnn",
    target="pytest_ortbench.engines.ncnn.worker:Ncnn",
    distributions=("ncnn", "onnx", "pnnx"),
    alone=("pnnx",),
    options={
        "fp16": "1 stores and computes in half precision where the CPU has it, as ncnn does by "
        "default; 0 (default here) does not",
    },
)
