"""Variables of the environment that decide which devices and drivers a process finds."""

from __future__ import annotations

from collections.abc import Mapping

#: Those that name the manifests of Vulkan's drivers in place of the installed ones, the one that
#: wins first.
MANIFEST_VARIABLES = ("VK_DRIVER_FILES", "VK_ICD_FILENAMES")

DEVICE_VARIABLES = (
    "CUDA_VISIBLE_DEVICES",
    "CUDA_DEVICE_ORDER",
    "HIP_VISIBLE_DEVICES",
    "ROCR_VISIBLE_DEVICES",
    "ZE_AFFINITY_MASK",
    *MANIFEST_VARIABLES,
    "VK_ADD_DRIVER_FILES",
    "VK_LOADER_DRIVERS_SELECT",
    "VK_LOADER_DRIVERS_DISABLE",
    "GGML_VK_VISIBLE_DEVICES",
    "ONNXRUNTIME_GGML_LIBRARY",
)


def device_variables(environment: Mapping[str, str]) -> dict[str, str]:
    """Return those that are set; set and empty is not unset: it may hide every device."""
    return {name: environment[name] for name in DEVICE_VARIABLES if name in environment}
