"""Device-resident inputs and outputs through I/O binding."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from pytest_ortbench.core.case import Provider
from pytest_ortbench.core.element_types import STAND_INS, element_of
from pytest_ortbench.worker.device_wait import device_wait, waits_by_copy
from pytest_ortbench.worker.ort_values import numpy_has_it, value_of
from pytest_ortbench.worker.runtime import load
from pytest_ortbench.worker.session import options_for

if TYPE_CHECKING:
    from onnxruntime import InferenceSession, IOBinding

#: ONNX Runtime's name of the memory that a provider works on; everything else is bound on the CPU.
_DEVICE_TYPES = {
    "CUDAExecutionProvider": "cuda",
    "TensorrtExecutionProvider": "cuda",
    "NvTensorRTRTXExecutionProvider": "cuda",
    "ROCMExecutionProvider": "cuda",
    "MIGraphXExecutionProvider": "cuda",
    "DmlExecutionProvider": "dml",
    "CANNExecutionProvider": "cann",
}


class NotBindable(Exception):
    """An input can't be made device-resident."""


def device_of(provider: Provider) -> tuple[str, int]:
    """Return type and index of the memory in which values of a provider are made.

    What is made on the CPU and bound as an input goes to the provider's memory then, once.
    """
    device = _DEVICE_TYPES.get(provider.name, "cpu")
    index = options_for(provider).get("device_id", "0")
    return device, int(index) if device != "cpu" and index.isdigit() else 0


def output_device_of(provider: Provider) -> tuple[str, int]:
    """Return type and index of the memory that a provider's outputs are bound on.

    On the CPU each run copies them there.
    """
    wait = device_wait(provider)
    return device_of(provider) if wait is None else (wait.memory, 0)


def may_keep_outputs(provider: Provider) -> bool:
    """Return whether outputs of a provider may stay in a memory of its own; starts nothing."""
    return provider.name in _DEVICE_TYPES or waits_by_copy(provider)


def bind(session: InferenceSession, feeds: Mapping[str, object], provider: Provider) -> IOBinding:
    """Put the feeds into the provider's memory, once, and let the outputs stay there.

    Raises:
        NotBindable: for an input that is not a numeric tensor.
    """
    ort, _ = load()
    import numpy as np  # comes with ONNX Runtime

    device, index = device_of(provider)
    binding = session.io_binding()
    types = {declared.name: declared.type for declared in session.get_inputs()}
    for name, value in feeds.items():
        if not isinstance(value, np.ndarray) or value.dtype.kind in "OSU":
            raise NotBindable(
                f"input {name!r} is not a numeric tensor, so it can't be bound on a device"
            )
        element = element_of(types[name])
        if element in STAND_INS:
            # Bound once, which brings it to the provider's memory.
            binding.bind_ortvalue_input(name, value_of(ort, value, element, name=name))
            continue
        # It makes one dimension of none.
        contiguous = np.ascontiguousarray(value).reshape(value.shape)
        binding.bind_ortvalue_input(
            name, ort.OrtValue.ortvalue_from_numpy(contiguous, device, index)
        )
    outputs_on = output_device_of(provider)
    for output in session.get_outputs():
        # Allocated by ONNX Runtime, since output shapes may depend on the values. Text, sequences
        # and maps are made on the host, and a device has no memory for them.
        if output.type.startswith("tensor(") and output.type != "tensor(string)":
            binding.bind_output(output.name, *outputs_on)
        else:
            binding.bind_output(output.name, "cpu", 0)
    return binding


def has_numeric_outputs(session: InferenceSession) -> bool:
    """Whether all outputs are tensors of numbers that numpy has."""
    return all(numpy_has_it(output.type) for output in session.get_outputs())
