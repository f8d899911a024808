"""Shared libraries that the loader did not find, and the product that each one belongs to."""

from __future__ import annotations

import re


def missing_library(text: str) -> str:
    """Return the shared library that could not be opened, empty if none is named.

    The innermost one counts: the provider's own library is there, what it needs is not.
    """
    names = re.findall(r"([\w.+-]+\.(?:so|dylib)[\w.]*): cannot open shared object file", text)
    names += re.findall(r"[Ll]ibrary not loaded: \S*?([\w.+-]+\.dylib)", text)
    # Windows names what is missing last: "…_cuda.dll" which depends on "cublasLt64_12.dll" which …
    names += re.findall(r'"[^"]*?([\w.+-]+\.dll)" which is missing', text)
    return names[-1] if names else ""


def implied_by(library: str) -> str:
    """Say which product and major version a library name stands for, empty if unknown."""
    match = re.match(r"lib([A-Za-z_]+?)(?:Lt|_\w+)?\.so\.(\d+)", library) or re.match(
        r"([A-Za-z]+?)(?:Lt)?(?:_[a-z]+)*(?:64)?_(\d+)\.dll", library
    )
    if match is None:
        return ""
    stem, major = match.group(1).lower(), match.group(2)
    if stem == "cudnn":
        return f"cuDNN {major}"
    if stem in ("nvinfer", "nvonnxparser"):
        return f"TensorRT {major}"
    if stem == "cufft":
        # cuFFT counts one behind: CUDA 11 has 10, CUDA 12 has 11, CUDA 13 has 12.
        return f"CUDA {int(major) + 1}"
    if stem in ("cublas", "cudart", "nvrtc"):
        return f"CUDA {major}"
    if stem == "cuda":
        return "the NVIDIA driver"
    if stem == "vulkan":
        return "the loader of Vulkan's drivers"
    return ""
