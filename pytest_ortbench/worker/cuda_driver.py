"""Which GPU CUDA means by a number, asked of CUDA itself.

``CUDA_VISIBLE_DEVICES`` and ``CUDA_DEVICE_ORDER`` are read by the driver, once a process. Without
the latter the fastest GPU is the first one, and what is fastest only the driver knows.
"""

from __future__ import annotations

import ctypes
import sys

_UUID_BYTES = 16


def uuid_of(ordinal: int) -> str:
    """Return the UUID of CUDA's device number ``ordinal``, without ``GPU-`` or ``MIG-``.

    Nothing is left behind but an initialised driver: no context, no memory on the device.

    Returns:
        ``8f6d3f1c-…``; empty where there is no driver, or it has no such device.
    """
    try:
        driver = ctypes.CDLL("nvcuda.dll" if sys.platform == "win32" else "libcuda.so.1")
        # The second version tells slices of a device from the device; drivers since 11.4 have it.
        newest = hasattr(driver, "cuDeviceGetUuid_v2")
        read = driver["cuDeviceGetUuid_v2" if newest else "cuDeviceGetUuid"]
        device, raw = ctypes.c_int(), (ctypes.c_ubyte * _UUID_BYTES)()
        steps = (
            lambda: driver.cuInit(0),
            lambda: driver.cuDeviceGet(ctypes.byref(device), ordinal),
            lambda: read(raw, device),
        )
        if any(step() for step in steps):  # type: ignore[no-untyped-call]  # ctypes has none
            return ""
    except (OSError, AttributeError):
        return ""
    digits = bytes(raw).hex()
    return "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]))
