"""IREE: compiles the ONNX file ahead, and runs what came of it."""

from __future__ import annotations

from pytest_ortbench.engines.engine_kind import EngineKind

ENGINE = EngineKind(
    alias="iree",
    title="IREE",
    target="pytest_ortbench.engines.iree.worker:Iree",
    distributions=("'iree-base-compiler[onnx]'", "iree-base-runtime"),
    takes_device=True,
    options={
        "iree-opt-level": "O0, O1, O2 or O3, as iree-compile has them",
        "iree-llvmcpu-target-cpu": "the CPU to compile for; host by default",
        "iree-vulkan-target": "the Vulkan device to compile for",
    },
)
