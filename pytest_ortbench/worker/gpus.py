"""NVIDIA GPUs that this interpreter's runtime could use, as facts about the machine."""

from __future__ import annotations


def gpus() -> dict[str, str]:
    """Return name and driver by UUID; empty where NVML or pynvml is not there."""
    try:
        import pynvml  # optional in a measured interpreter
    except ImportError:
        return {}
    try:
        pynvml.nvmlInit()
        driver = _text(pynvml.nvmlSystemGetDriverVersion())
        found = {}
        for index in range(pynvml.nvmlDeviceGetCount()):
            handle = pynvml.nvmlDeviceGetHandleByIndex(index)
            name = _text(pynvml.nvmlDeviceGetName(handle))
            found[_text(pynvml.nvmlDeviceGetUUID(handle))] = f"{name}, driver {driver}"
        return found
    except pynvml.NVMLError:
        return {}


def _text(value: str | bytes) -> str:
    # Old versions of pynvml return bytes.
    return value.decode() if isinstance(value, bytes) else value
