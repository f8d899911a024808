"""Session config entries: ONNX Runtime takes any key, and drops those that it does not know.

Which ones it knows is nowhere to be asked; but each stands as a constant in its library.
"""

from __future__ import annotations

import mmap
from collections.abc import Iterable
from pathlib import Path

from pytest_ortbench.worker.runtime import load

#: Beginnings of the keys that ONNX Runtime itself reads. Others belong to custom operators and
#: providers (``ep.``), whose libraries may be anywhere.
_OWN = ("session.", "optimization.")
_LIBRARIES = ("onnxruntime_pybind11_state*", "libonnxruntime.*", "onnxruntime.dll")


class EntryUnknown(Exception):
    """This ONNX Runtime does not know a session config entry, and would drop it silently."""


def require_known(keys: Iterable[str]) -> None:
    """Refuse an entry that would be dropped.

    Raises:
        EntryUnknown: for the first one.
    """
    ort, _ = load()
    own = [key for key in keys if key.startswith(_OWN)]
    if not own:
        return
    folder = Path(ort.__path__[0]) / "capi"
    libraries = [file for pattern in _LIBRARIES for file in folder.glob(pattern) if file.is_file()]
    for key in own:
        if libraries and not any(_holds(file, key) for file in libraries):
            raise EntryUnknown(
                f"ONNX Runtime {ort.__version__} does not know the session option {key!r}"
            )


def _holds(file: Path, key: str) -> bool:
    """Whether the key is a whole constant of a library: a zero ends it."""
    with file.open("rb") as stream, mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ) as data:
        return data.find(key.encode("utf-8") + b"\0") >= 0
