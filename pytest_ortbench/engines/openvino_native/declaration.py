"""OpenVINO by its own package, without ONNX Runtime around it."""

from __future__ import annotations

from pytest_ortbench.engines.engine_kind import EngineKind

ENGINE = EngineKind(
    alias="openvino-native",
    title="OpenVINO",
    target="pytest_ortbench.engines.openvino_native.worker:OpenVino",
    distributions=("openvino",),
    takes_device=True,
    options={
        "PERFORMANCE_HINT": "LATENCY or THROUGHPUT; LATENCY by default, since one caller waits",
        "INFERENCE_PRECISION_HINT": "the type it computes in: f32, bf16 or f16",
        "EXECUTION_MODE_HINT": "PERFORMANCE or ACCURACY",
        "NUM_STREAMS": "how many inferences it runs in parallel",
        "ENABLE_CPU_PINNING": "YES or NO: whether its threads stay on their CPUs",
        "ENABLE_HYPER_THREADING": "YES or NO: whether it uses both threads of a core",
        "DYNAMIC_QUANTIZATION_GROUP_SIZE": "size of the groups in which it quantises activations; "
        "0 for never",
    },
)
