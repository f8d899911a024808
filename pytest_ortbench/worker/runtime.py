"""The interpreter that measures: ONNX Runtime imported and timed, and facts about both."""

from __future__ import annotations

import contextlib
import io
import os
import platform
import re
import sys
import time
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import TextIO

from pytest_ortbench.core.cpus import CpuAllowance, allowance
from pytest_ortbench.core.device_variables import device_variables
from pytest_ortbench.core.measurement import RuntimeInfo
from pytest_ortbench.core.namesakes import namesake_of
from pytest_ortbench.worker.gpus import gpus

#: Distributions whose name starts alike but which bring no runtime, no provider and no engine.
_NOT_RUNTIMES = re.compile(r"onnxruntime[-_](extensions|tools|easy)")
#: What the names of distributions begin with that drive ONNX Runtime, and do not bring it.
_DRIVER = "onnxruntime-genai"
#: Folder or file of a distribution's metadata: name and version.
_METADATA = re.compile(
    r"((?:onnxruntime|ort[-_]nightly)[\w.]*?(?:-[a-z]\w*)*)-(\d[^-]*)(?:-py[\d.]+)?"
    r"\.(?:dist|egg)-info",
    re.IGNORECASE,
)


#: What numpy 2 prints when a module asks for the interface of numpy 1. Importing ONNX Runtime may
#: succeed all the same, and then its first session ends the process with SIGSEGV.
_BUILT_FOR_NUMPY_1 = "compiled using NumPy 1.x cannot be run"


class NumpyMismatch(ImportError):
    """ONNX Runtime was built for another major version of numpy than the one that is there."""


class HiddenLibrary(ImportError):
    """Something else is imported under the name of ONNX Runtime or numpy."""


class BrokenRuntime(ImportError):
    """The package ``onnxruntime`` can be imported but has no ``InferenceSession``."""


@cache
def allowed() -> CpuAllowance:
    """What this process may use, asked before ONNX Runtime is imported.

    Libraries of OpenMP that come with numpy may bind the thread that loads them to one CPU.
    """
    return allowance()


@cache
def load() -> tuple[ModuleType, int]:
    """Import ONNX Runtime.

    Returns:
        The module and the nanoseconds that the first import took, numpy's import included.

    Raises:
        HiddenLibrary: if something of a project has the name of ONNX Runtime or numpy.
        BrokenRuntime: if two distributions overwrote each other and one was removed since.
        NumpyMismatch: if it was built for numpy 1 and this is numpy 2.
        ImportError: if it is not there.
    """
    allowed()
    heard = _Listening(sys.stderr)
    started = time.perf_counter_ns()
    try:
        with contextlib.redirect_stderr(heard):
            import onnxruntime  # the measured thing itself, so its import is timed
    except (AttributeError, ImportError, SystemError) as error:
        if _BUILT_FOR_NUMPY_1 in heard.getvalue():
            raise _numpy_mismatch() from error
        _refuse_namesakes(f" (importing it: {error})")
        raise
    elapsed = time.perf_counter_ns() - started
    if _BUILT_FOR_NUMPY_1 in heard.getvalue():
        raise _numpy_mismatch()
    if not hasattr(onnxruntime, "InferenceSession"):
        _refuse_namesakes()
        raise BrokenRuntime(
            f"the package onnxruntime in {list(getattr(onnxruntime, '__path__', []))} "
            "has no InferenceSession"
        )
    return onnxruntime, elapsed


def _refuse_namesakes(what_came: str = "") -> None:
    hidden = namesake_of("onnxruntime", "numpy")
    if hidden:
        raise HiddenLibrary(hidden + what_came)


class _Listening(io.StringIO):
    """Passes on what is written, and keeps it."""

    def __init__(self, through: TextIO) -> None:
        super().__init__()
        self._through = through

    def write(self, text: str) -> int:
        self._through.write(text)
        return super().write(text)


def _numpy_mismatch() -> NumpyMismatch:
    import numpy  # it is there: it was numpy that complained

    brought = {
        name: version for name, version in distributions().items() if not name.startswith(_DRIVER)
    }
    versions = ", ".join(f"{name} {version}" for name, version in brought.items())
    return NumpyMismatch(
        f"{versions or 'ONNX Runtime'} was built for numpy 1, and numpy {numpy.__version__} is here"
    )


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
        host=platform.node(),
        variables=device_variables(os.environ),
    )


@cache
def distributions() -> dict[str, str]:
    """Return the installed distributions that bring ONNX Runtime, a provider, or what drives it.

    More than one that brings the package ``onnxruntime`` itself is a broken environment: they
    overwrite each other's files. The names of their metadata folders are read, as
    :mod:`importlib.metadata` does it; importing that takes as long as all of this package.
    """
    versions: dict[str, str] = {}
    for folder in sys.path:
        try:
            entries = [entry.name for entry in Path(folder).iterdir()]
        except OSError:  # no folder, or a zip file
            continue
        for entry in entries:
            match = _METADATA.fullmatch(entry)
            if match is not None and not _NOT_RUNTIMES.match(entry):
                # The first one on the path is the one that is imported.
                versions.setdefault(match.group(1).replace("_", "-").lower(), match.group(2))
    return dict(sorted(versions.items()))


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
