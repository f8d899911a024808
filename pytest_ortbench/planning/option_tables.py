"""Options that providers document, by alias: which keys there are, and which values they take.

From the documentation and the option parsers of ONNX Runtime 1.15 to 1.32 and of the plug-in
packages. Providers themselves are no help: *seen*, QNN, ggml and OpenVINO's plug-in accept any key,
and the session reads it back; QNN runs on with a performance mode that does not exist, ggml with a
device that does not exist.
"""

from __future__ import annotations

from collections.abc import Mapping

#: Kinds of values: any text, a whole number, or a switch.
ANY, WHOLE, SWITCH = "any", "whole", "switch"

#: What a value may be: one of the kinds, or one of these words, or a kind or a word.
Rule = str | tuple[str, ...]

_ARENA = ("kNextPowerOfTwo", "kSameAsRequested")

_CUDA: dict[str, Rule] = {
    "device_id": ANY,  # an index or a UUID
    "gpu_mem_limit": WHOLE,
    "arena_extend_strategy": _ARENA,
    "cudnn_conv_algo_search": ("EXHAUSTIVE", "HEURISTIC", "DEFAULT"),
    "cudnn_conv_use_max_workspace": SWITCH,
    "cudnn_conv1d_pad_to_nc1d": SWITCH,
    "do_copy_in_default_stream": SWITCH,
    "enable_cuda_graph": SWITCH,
    "enable_cudnn": SWITCH,
    "enable_skip_layer_norm_strict_mode": SWITCH,
    "fuse_conv_bias": SWITCH,
    "prefer_nhwc": SWITCH,
    "sdpa_kernel": WHOLE,
    "tunable_op_enable": SWITCH,
    "tunable_op_tuning_enable": SWITCH,
    "tunable_op_max_tuning_duration_ms": WHOLE,
    "use_ep_level_unified_stream": SWITCH,
    "use_tf32": SWITCH,
}

_TENSORRT: dict[str, Rule] = {
    "device_id": ANY,
    **dict.fromkeys(
        (
            "trt_bf16_enable",
            "trt_build_heuristics_enable",
            "trt_context_memory_sharing_enable",
            "trt_cuda_graph_enable",
            "trt_detailed_build_log",
            "trt_dla_enable",
            "trt_dump_ep_context_model",
            "trt_dump_subgraphs",
            "trt_engine_cache_enable",
            "trt_engine_decryption_enable",
            "trt_engine_hw_compatible",
            "trt_force_sequential_engine_build",
            "trt_force_timing_cache",
            "trt_fp16_enable",
            "trt_int8_enable",
            "trt_int8_use_native_calibration_table",
            "trt_layer_norm_fp32_fallback",
            "trt_load_user_initializer",
            "trt_sparsity_enable",
            "trt_timing_cache_enable",
            "trt_weight_stripped_engine_enable",
        ),
        SWITCH,
    ),
    **dict.fromkeys(
        (
            "trt_auxiliary_streams",
            "trt_builder_optimization_level",
            "trt_dla_core",
            "trt_ep_context_embed_mode",
            "trt_max_partition_iterations",
            "trt_max_workspace_size",
            "trt_min_subgraph_size",
        ),
        WHOLE,
    ),
    **dict.fromkeys(
        (
            "trt_engine_cache_path",
            "trt_engine_cache_prefix",
            "trt_engine_decryption_lib_path",
            "trt_ep_context_file_path",
            "trt_extra_plugin_lib_paths",
            "trt_int8_calibration_table_name",
            "trt_onnx_model_folder_path",
            "trt_op_types_to_exclude",
            "trt_preview_features",
            "trt_profile_max_shapes",
            "trt_profile_min_shapes",
            "trt_profile_opt_shapes",
            "trt_tactic_sources",
            "trt_timing_cache_path",
        ),
        ANY,
    ),
}

_RTX: dict[str, Rule] = {
    "device_id": ANY,
    "enable_cuda_graph": SWITCH,
    "nv_cuda_graph_enable": SWITCH,
    "nv_detailed_build_log": SWITCH,
    "nv_dump_subgraphs": SWITCH,
    "nv_max_shared_mem_size": WHOLE,
    "nv_max_workspace_size": WHOLE,
    "nv_multi_profile_enable": SWITCH,
    "nv_op_types_to_exclude": ANY,
    "nv_profile_max_shapes": ANY,
    "nv_profile_min_shapes": ANY,
    "nv_profile_opt_shapes": ANY,
    "nv_runtime_cache_path": ANY,
    "nv_use_external_data_initializer": SWITCH,
    "nv_weight_streaming_budget": ANY,
}

_OPENVINO: dict[str, Rule] = {
    "device_type": ANY,  # checked as openvino:DEVICE is
    "device_id": ANY,
    "device_luid": ANY,
    "precision": ("FP32", "FP16", "ACCURACY"),
    "cache_dir": ANY,
    "num_of_threads": WHOLE,
    "num_streams": WHOLE,
    "model_priority": ("LOW", "MEDIUM", "HIGH", "DEFAULT"),
    "load_config": ANY,
    "reshape_input": ANY,
    "layout": ANY,
    "disable_dynamic_shapes": SWITCH,
    "enable_causallm": SWITCH,
    "enable_opencl_throttling": SWITCH,
    "enable_qdq_optimizer": SWITCH,
}

_QNN: dict[str, Rule] = {
    "backend_path": ANY,
    # Without the ones that compute nothing.
    "backend_type": ("htp", "gpu", "cpu", "genie"),
    "device_id": WHOLE,
    "htp_arch": WHOLE,
    "htp_graph_finalization_optimization_mode": ("0", "1", "2", "3"),
    "htp_performance_mode": (
        "default",
        "balanced",
        "burst",
        "extreme_power_saver",
        "high_performance",
        "high_power_saver",
        "low_balanced",
        "low_power_saver",
        "power_saver",
        "sustained_high_performance",
    ),
    "profiling_level": ("off", "basic", "detailed", "optrace"),
    "profiling_file_path": ANY,
    "qnn_context_priority": ("low", "normal", "normal_high", "high"),
    "soc_model": WHOLE,
    "vtcm_mb": WHOLE,
    "rpc_control_latency": WHOLE,
    "op_packages": ANY,
    "qnn_saver_path": ANY,
    "json_qnn_graph_dir": ANY,
    "dump_qnn_ir_dlc_dir": ANY,
    "qnn_ir_backend_path": ANY,
    "htp_reused_io_limit_mb": WHOLE,
    "htp_graph_splitting_num_prepare_threads": WHOLE,
    "num_graph_prepare_threads": WHOLE,
    **dict.fromkeys(
        (
            "disable_file_mapped_weights",
            "dump_json_qnn_graph",
            "dump_qnn_ir_dlc",
            "enable_htp_fp16_clamp_overflow",
            "enable_htp_fp16_precision",
            "enable_htp_graph_splitting",
            "enable_htp_monolithic_lstm",
            "enable_htp_shared_memory_allocator",
            "enable_htp_spill_fill_buffer",
            "enable_vtcm_backup_buffer_sharing",
            "extended_udma",
            "htp_bf16_enable",
            "offload_graph_io_quantization",
            "skip_qnn_version_check",
        ),
        SWITCH,
    ),
}

DAWN_BACKENDS = ("D3D12", "Vulkan", "Metal")
_WEBGPU_CACHES = ("disabled", "lazyRelease", "simple", "bucket")
_WEBGPU: dict[str, Rule] = {
    "preferredLayout": ("NCHW", "NHWC"),
    "enableGraphCapture": SWITCH,
    "enableInt64": SWITCH,
    "enableMatmulFp32Accumulation": SWITCH,
    "enablePIXCapture": SWITCH,
    "enableRobustness": SWITCH,
    "preserveDevice": SWITCH,
    "weightLoadAcceleration": ("off", "preferred", "required"),
    "sessionBufferPoolGenerations": WHOLE,
    "multiRotaryCacheConcatOffset": WHOLE,
    "kvCacheQuantizationBits": ("0", "4", "8"),
    "dawnBackendType": DAWN_BACKENDS,
    "powerPreference": ("high-performance", "low-power"),
    "deviceId": WHOLE,
    "adapterIndex": WHOLE,
    "storageBufferCacheMode": _WEBGPU_CACHES,
    "uniformBufferCacheMode": _WEBGPU_CACHES,
    "queryResolveBufferCacheMode": _WEBGPU_CACHES,
    "defaultBufferCacheMode": _WEBGPU_CACHES,
    "validationMode": ("disabled", "wgpuOnly", "basic", "full"),
    "forceCpuNodeNames": ANY,
    "maxStorageBufferBindingSize": WHOLE,
    "maxStorageBuffersPerShaderStage": WHOLE,
    "maxNumPendingDispatches": WHOLE,
}

_MIGRAPHX: dict[str, Rule] = {
    "device_id": WHOLE,
    "migraphx_fp16_enable": SWITCH,
    "migraphx_bf16_enable": SWITCH,
    "migraphx_fp8_enable": SWITCH,
    "migraphx_int8_enable": SWITCH,
    "migraphx_int8_calibration_table_name": ANY,
    "migraphx_int8_use_native_calibration_table": SWITCH,
    "migraphx_use_native_calibration_table": SWITCH,
    "migraphx_exhaustive_tune": SWITCH,
    "migraphx_model_cache_dir": ANY,
    "migraphx_save_compiled_model": SWITCH,
    "migraphx_save_model_path": ANY,
    "migraphx_load_compiled_model": SWITCH,
    "migraphx_load_model_path": ANY,
    "migraphx_mem_limit": WHOLE,
    "migraphx_arena_extend_strategy": _ARENA,
}

_ROCM: dict[str, Rule] = {
    "device_id": WHOLE,
    "gpu_mem_limit": WHOLE,
    "arena_extend_strategy": _ARENA,
    "miopen_conv_exhaustive_search": SWITCH,
    "miopen_conv_use_max_workspace": SWITCH,
    "do_copy_in_default_stream": SWITCH,
    "enable_hip_graph": SWITCH,
    "tunable_op_enable": SWITCH,
    "tunable_op_tuning_enable": SWITCH,
    "tunable_op_max_tuning_duration_ms": WHOLE,
}

_CANN: dict[str, Rule] = {
    "device_id": WHOLE,
    "npu_mem_limit": WHOLE,
    "arena_extend_strategy": _ARENA,
    "enable_cann_graph": SWITCH,
    "enable_cann_subgraph": SWITCH,
    "dump_graphs": SWITCH,
    "dump_om_model": SWITCH,
    "precision_mode": ANY,
    "precision_mode_v2": ANY,
    "op_select_impl_mode": ("high_precision", "high_performance"),
    "optypelist_for_implmode": ANY,
    "input_format": ANY,
    "dynamic_batch_size": ANY,
    "dynamic_image_size": ANY,
    "dynamic_dims": ANY,
}

_COREML: dict[str, Rule] = {
    "MLComputeUnits": ("ALL", "CPUOnly", "CPUAndGPU", "CPUAndNeuralEngine"),
    "ModelFormat": ("MLProgram", "NeuralNetwork"),
    "RequireStaticInputShapes": SWITCH,
    "EnableOnSubgraphs": SWITCH,
    "SpecializationStrategy": ("Default", "FastPrediction"),
    "ProfileComputePlan": SWITCH,
    "AllowLowPrecisionAccumulationOnGPU": SWITCH,
    "ModelCacheDirectory": ANY,
}

_DML: dict[str, Rule] = {
    "device_id": WHOLE,
    "performance_preference": ("default", "high_performance", "minimum_power"),
    "device_filter": ("gpu", "npu", "any"),
    "disable_metacommands": SWITCH,
    "enable_dynamic_graph_fusion": SWITCH,
    "enable_graph_serialization": SWITCH,
}

_VITISAI: dict[str, Rule] = dict.fromkeys(
    (
        "config_file",
        "cache_dir",
        "cache_key",
        "cacheDir",
        "cacheKey",
        "enable_cache_file_io_in_mem",
        "encryption_key",
        "log_level",
        "target",
        "xclbin",
        "xlnx_enable_py3_round",
        "ai_analyzer_visualization",
        "ai_analyzer_profiling",
    ),
    ANY,
)

_GGML: dict[str, Rule] = {
    "device": ("auto", "cpu", "gpu"),
    "threads": WHOLE,
    "weights": ("f16", "f32"),
    "attention": ("auto", "flash", "matmul"),
    "gpu_min_weight_mb": WHOLE,
    **dict.fromkeys(
        (
            "accel",
            "conv_transpose_cpu",
            "conv_transpose_matmul",
            "dump",
            "partial",
            "profile",
            "sticky",
        ),
        SWITCH,
    ),
}

#: Keys and values by alias. A provider that takes no options has an empty table.
TABLES: Mapping[str, Mapping[str, Rule]] = {
    "cpu": {},
    "cuda": _CUDA,
    "tensorrt": _TENSORRT,
    "nvtensorrtrtx": _RTX,
    "openvino": _OPENVINO,
    "dml": _DML,
    "coreml": _COREML,
    "qnn": _QNN,
    "webgpu": _WEBGPU,
    "migraphx": _MIGRAPHX,
    "rocm": _ROCM,
    "cann": _CANN,
    "vitisai": _VITISAI,
    "xnnpack": {"intra_op_num_threads": WHOLE},
    "acl": {"enable_fast_math": SWITCH},
    "armnn": {"use_arena": SWITCH},
    "dnnl": {"use_arena": SWITCH, "threads": WHOLE},
    "azure": {},
    "ggml": _GGML,
}
