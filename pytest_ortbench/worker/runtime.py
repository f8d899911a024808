"""The interpreter that measures: ONNX Runtime imported and timed, and facts about both."""

from __future__ import annotations

import os
import platform
import re
import sys
import time
from functools import cache
from pathlib import Path
from types import ModuleType

from pytest_ortbench.core.outcome import RuntimeInfo
from pytest_ortbench.worker.gpus import gpus

#: Distributions whose name starts alike but which bring no runtime and no provider.
_NOT_RUNTIMES = re.compile(r"onnxruntime[-_](extensions|genai|tools|easy)")
#: Folder or file of a distribution's metadata: name and version.
_METADATA = re.compile(
    r"((?:onnxruntime|ort[-_]nightly)[\w.]*?(?:-[a-z]\w*)*)-(\d[^-]*)(?:-py[\d.]+)?"
    r"\.(?:dist|egg)-info",
    re.IGNORECASE,
)


class BrokenRuntime(ImportError):
    """The package ``onnxruntime`` can be imported but has no ``InferenceSession``."""


@cache
def load() -> tuple[ModuleType, int]:
    """Import ONNX Runtime.

    Returns:
        The module and the nanoseconds that the first import took, numpy's import included.

    Raises:
        BrokenRuntime: if two distributions overwrote each other and one was removed since.
        ImportError: if it is not there, or doesn't fit this numpy.
    """
    started = time.perf_counter_ns()
    import onnxruntime  # the measured thing itself, so its import is timed

    elapsed = time.perf_counter_ns() - started
    if not hasattr(onnxruntime, "InferenceSession"):
        raise BrokenRuntime(
            f"the package onnxruntime in {list(getattr(onnxruntime, '__path__', []))} "
            "has no InferenceSession"
        )
    return onnxruntime, elapsed


def describe() -> RuntimeInfo:
    """Return what this interpreter is now; plug-in providers appear once they are registered."""
    ort, _ = load()
    import numpy  # comes with ONNX Runtime

    return RuntimeInfo(
        distributions=distributions(),
        version=ort.__version__,
        python=platform.python_version(),
        numpy=numpy.__version__,
        executable=sys.executable,
        available_providers=tuple(ort.get_available_providers()),
        plugin_providers=_plugin_providers(),
        build=_build(),
        pid=os.getpid(),
        devices=gpus() if "CUDAExecutionProvider" in ort.get_available_providers() else {},
    )


@cache
def distributions() -> dict[str, str]:
    """Return the installed distributions that bring ONNX Runtime or one of its providers.

    More than one that brings the package ``onnxruntime`` itself is a broken environment: they
    overwrite each other's files. The names of their metadata folders are read, as
    :mod:`importlib.metadata` does it; importing that takes as long as all of this package.
    """
    found: dict[str, str] = {}
    for folder in sys.path:
        try:
            entries = [entry.name for entry in Path(folder).iterdir()]
        except OSError:  # no folder, or a zip file
            continue
        for entry in entries:
            match = _METADATA.fullmatch(entry)
            if match is not None and not _NOT_RUNTIMES.match(entry):
                # The first one on the path is the one that is imported.
                found.setdefault(match.group(1).replace("_", "-").lower(), match.group(2))
    return dict(sorted(found.items()))


def _plugin_providers() -> tuple[str, ...]:
    """Providers that plug-in libraries registered, besides the built-in ones."""
    ort, _ = load()
    if not hasattr(ort, "get_ep_devices"):  # before 1.22
        return ()
    names = {device.ep_name for device in ort.get_ep_devices()}
    return tuple(sorted(names - set(ort.get_available_providers())))


def _build() -> str:
    ort, _ = load()
    return ort.get_build_info() if hasattr(ort, "get_build_info") else ""
