"""Session config entries that ONNX Runtime documents, and the values that mean something to it.

ONNX Runtime takes any key with any value, reads both back, and drops what it does not know: a
switch that is set to ``true`` stays off. From ``onnxruntime_session_options_config_keys.h`` of
versions 1.15 to 1.24.
"""

from __future__ import annotations

from collections.abc import Mapping

#: Whether threads of an operator spin while they wait.
SPINNING = "session.intra_op.allow_spinning"

#: Forbids the CPU for nodes that a provider does not take.
NO_CPU = "session.disable_cpu_ep_fallback"

#: Forbids providers to compile anything while a session is created.
NO_COMPILE = "session.disable_model_compile"

#: Takes subnormal numbers for zero, which is quick everywhere.
DENORMAL_AS_ZERO = "session.set_denormal_as_zero"

#: Lets a session take the allocators of the environment.
ENVIRONMENT_ALLOCATORS = "session.use_env_allocators"

_SWITCH = ("0", "1")

#: Values by key; an empty tuple stands for any text.
DOCUMENTED: Mapping[str, tuple[str, ...]] = {
    **dict.fromkeys(
        (
            "ep.context_embed_mode",
            "ep.context_enable",
            "ep.share_ep_contexts",
            "ep.stop_share_ep_contexts",
            "mlas.enable_gemm_fastmath_arm64_bfloat16",
            "optimization.enable_cast_chain_elimination",
            "optimization.enable_gelu_approximation",
            "session.allow_released_opsets_only",
            "session.disable_aot_function_inlining",
            NO_CPU,
            "session.disable_double_qdq_remover",
            NO_COMPILE,
            "session.disable_prepacking",
            "session.disable_quant_qdq",
            "session.enable_dq_matmulnbits_fusion",
            "session.enable_quant_qdq_cleanup",
            "session.force_spinning_stop",
            "session.inter_op.allow_spinning",
            SPINNING,
            "session.qdqisint8allowed",
            "session.record_ep_graph_assignment_info",
            "session.save_external_prepacked_constant_initializers",
            DENORMAL_AS_ZERO,
            "session.strict_shape_type_inference",
            "session.use_device_allocator_for_initializers",
            ENVIRONMENT_ALLOCATORS,
            "session.use_ort_model_bytes_directly",
            "session.use_ort_model_bytes_for_initializers",
            "session.x64quantprecision",
        ),
        _SWITCH,
    ),
    **dict.fromkeys(
        (
            "ep.context_file_path",
            "ep.context_model_external_initializers_file_name",
            "ep.context_node_name_prefix",
            "optimization.disable_specified_optimizers",
            "session.collect_node_memory_stats_to_file",
            "session.dynamic_block_base",
            "session.intra_op_thread_affinities",
            "session.model_external_initializers_file_folder_path",
            "session.node_partition_config_file",
            "session.optimized_model_external_initializers_file_name",
            "session.optimized_model_external_initializers_min_size_in_bytes",
            "session.qdq_matmulnbits_block_size",
            "session.resource_cuda_partitioning_settings",
        ),
        (),
    ),
    "optimization.minimal_build_optimizations": ("", "save", "apply"),
    "session.debug_layout_transformation": _SWITCH,
    "session.graph_optimizations_loop_level": ("0", "1", "2"),
    "session.load_model_format": ("ONNX", "ORT"),
    "session.qdq_matmulnbits_accuracy_level": ("0", "1", "2", "3", "4"),
    "session.save_model_format": ("ONNX", "ORT"),
}


def is_documented(key: str, value: str) -> bool:
    """Whether this value of this key means something to an ONNX Runtime that knows the key."""
    values = DOCUMENTED.get(key)
    return values is not None and (not values or value in values)
