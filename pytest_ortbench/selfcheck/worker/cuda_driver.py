"""CUDA's driver as far as a self-check needs it: a stream, events, waiting, memory.

The driver is there wherever CUDA runs, and its handles are those of the runtime library that ONNX
Runtime uses: both work in the primary context of the device.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable

#: Of a stream: it does not wait for the default one, as those of ONNX Runtime don't.
_NON_BLOCKING = 1


class NoCudaDriver(Exception):
    """The driver is not there, or refused a call; the text says which."""


class CudaDriver:
    """The driver, with the primary context of a device made current.

    Args:
        ordinal: CUDA's number of the device.

    Raises:
        NoCudaDriver: if there is no driver or no such device.
    """

    def __init__(self, ordinal: int) -> None:
        name = "nvcuda.dll" if sys.platform == "win32" else "libcuda.so.1"
        try:
            self._library = ctypes.CDLL(name)
        except OSError as error:
            raise NoCudaDriver(f"CUDA's driver ({name}) can't be loaded: {error}") from error
        device, context = ctypes.c_int(), ctypes.c_void_p()
        self._call("cuInit", ctypes.c_uint(0))
        self._call("cuDeviceGet", ctypes.byref(device), ctypes.c_int(ordinal))
        self._call("cuDevicePrimaryCtxRetain", ctypes.byref(context), device)
        self._call("cuCtxSetCurrent", context)

    def stream(self) -> int:
        """Return a new stream, which lasts as long as the process."""
        made = ctypes.c_void_p()
        self._call("cuStreamCreate", ctypes.byref(made), ctypes.c_uint(_NON_BLOCKING))
        return int(made.value or 0)

    def synchronise(self) -> None:
        """Wait until everything that was started in the context is done."""
        self._call("cuCtxSynchronize")

    def between_events_ns(self, stream: int, work: Callable[[], object]) -> int:
        """Return the time of the device between two events on a stream, around some work."""
        first, last = self._event(), self._event()
        on = ctypes.c_void_p(stream)
        self._call("cuEventRecord", first, on)
        work()
        self._call("cuEventRecord", last, on)
        self._call("cuEventSynchronize", last)
        elapsed_ms = ctypes.c_float()
        self._call("cuEventElapsedTime", ctypes.byref(elapsed_ms), first, last)
        self._call("cuEventDestroy_v2", first)
        self._call("cuEventDestroy_v2", last)
        return round(elapsed_ms.value * 1e6)

    def take(self, size: int) -> int:
        """Take memory of the device, and return its address."""
        address = ctypes.c_uint64()
        self._call("cuMemAlloc_v2", ctypes.byref(address), ctypes.c_size_t(size))
        return int(address.value)

    def give_back(self, address: int) -> None:
        """Give back what :meth:`take` took."""
        self._call("cuMemFree_v2", ctypes.c_uint64(address))

    def _event(self) -> ctypes.c_void_p:
        made = ctypes.c_void_p()
        self._call("cuEventCreate", ctypes.byref(made), ctypes.c_uint(0))
        return made

    def _call(self, name: str, *arguments: object) -> None:
        try:
            status = self._library[name](*arguments)
        except AttributeError as error:
            raise NoCudaDriver(f"CUDA's driver has no {name}") from error
        if status:
            raise NoCudaDriver(f"{name} of CUDA's driver failed with {status}")
