"""Waiting for outputs that stay on a device, where a run returns before its work is done.

``IOBinding.synchronize_outputs`` asks the providers of a session to wait. *Seen* with 1.27, and by
its sources up to 1.32: WebGPU's does nothing then. A run on bound outputs returns when its commands
are recorded, and the device computes for as long as it takes. Whatever is copied from the device
comes behind all commands that it was given before, so the copy of a few bytes waits for them.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Callable
from typing import TYPE_CHECKING

from pytest_ortbench.core.case import Provider, SessionConfig
from pytest_ortbench.core.provider_kinds import WEBGPU
from pytest_ortbench.worker.runtime import load
from pytest_ortbench.worker.session import create, session_options
from pytest_ortbench.worker.tiny import MATRIX_PRODUCT, tiny_feeds

if TYPE_CHECKING:
    from onnxruntime import InferenceSession, IOBinding

#: ONNX Runtime's name of the memory that outputs are bound on, where ``synchronize_outputs`` of the
#: provider does not wait.
_MEMORY = {WEBGPU: "webgpu"}


class DeviceWait:
    """Waits until a device has done all that it was given: copies a few bytes from it.

    Attributes:
        memory: ONNX Runtime's name of the device's memory.
        copied_bytes: What is copied.

    Args:
        session: Of a tiny model, on the device.
        binding: Its binding, with which it has run, its output on the device.
        memory: ONNX Runtime's name of the device's memory.
    """

    def __init__(self, session: InferenceSession, binding: IOBinding, memory: str) -> None:
        # *Seen*: a binding does not keep its session, without which it ends the process.
        self._session = session
        # Not the value's own ``numpy()``: *seen*, it ends the process where the device is lost.
        self._copy = binding.copy_outputs_to_cpu
        self.memory = memory
        self.copied_bytes = sum(value.tensor_size_in_bytes() for value in binding.get_outputs())

    def __call__(self) -> None:
        """Wait.

        Raises:
            Exception: what ONNX Runtime raises, where the device is lost.
        """
        self._copy()


def device_wait(provider: Provider) -> DeviceWait | None:
    """Return what waits for a provider's device.

    Returns:
        ``None`` where ``synchronize_outputs`` does, or where outputs can't be kept on the device.
    """
    if not waits_by_copy(provider):
        return None
    return _made(provider.name, provider.device, provider.library, json.dumps(provider.options))


def waits_by_copy(provider: Provider) -> bool:
    """Return whether ``synchronize_outputs`` of a provider does not wait."""
    return provider.name in _MEMORY


def waiting(binding: IOBinding, provider: Provider) -> Callable[[], object]:
    """Return what waits for the outputs of a run on a binding."""
    return device_wait(provider) or binding.synchronize_outputs


@functools.cache
def _made(name: str, device: str, library: str, options: str) -> DeviceWait | None:
    """One a process and device: sessions with the same options share their device's queue."""
    provider = Provider(
        alias=name, name=name, device=device, library=library, options=json.loads(options)
    )
    try:
        return _of(provider, _MEMORY[name])
    except Exception:  # noqa: BLE001 - native errors have no common base class
        return None


def _of(provider: Provider, memory: str) -> DeviceWait:
    ort, _ = load()
    session, _ = create(
        MATRIX_PRODUCT.content, provider, session_options(SessionConfig(), threads=1)
    )
    feeds = tiny_feeds(MATRIX_PRODUCT)
    binding = session.io_binding()
    for name, value in feeds.items():
        binding.bind_ortvalue_input(name, ort.OrtValue.ortvalue_from_numpy(value))
    [declared] = session.get_outputs()
    binding.bind_output(declared.name, memory, 0)
    session.run_with_iobinding(binding)
    # To copy an output that lies on the host waits for nothing.
    if any(value.device_name() == "cpu" for value in binding.get_outputs()):
        raise RuntimeError("the output was bound on the device and lies on the host")
    wait = DeviceWait(session, binding, memory)
    wait()
    return wait
