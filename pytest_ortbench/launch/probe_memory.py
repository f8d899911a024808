"""What probes found out, remembered: a provider that ran yesterday is not tried again today.

An outcome belongs to the runtime and to what the machine has for it: distributions, libraries of
plug-ins, drivers, devices, and where the loader looks. If any of them changes it is tried again.
One that did not run is forgotten after minutes, since what was missing may come from anywhere.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import platform
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from pytest_ortbench.core.case import Provider, Runtime
from pytest_ortbench.core.device_variables import DEVICE_VARIABLES, MANIFEST_VARIABLES
from pytest_ortbench.core.outcome import RuntimeInfo
from pytest_ortbench.core.version import VERSION
from pytest_ortbench.launch.launcher import ProbeOutcome
from pytest_ortbench.schema.wire import Plain, WireError, from_plain, to_plain

#: How long an outcome is believed, in seconds.
USABLE_S = 30 * 24 * 3600.0
REFUSED_S = 10 * 60.0

#: Devices and drivers that come and go.
_DEVICE_NODES = ("nvidia*", "dri/*", "kfd", "accel/*", "davinci*", "dxg", "fastrpc*")
_DRIVER_FILES = ("/proc/driver/nvidia/version", "/sys/module/amdgpu/version")
_MANIFEST_FOLDERS = (
    "/usr/share/vulkan/icd.d",
    "/etc/vulkan/icd.d",
    "/usr/local/share/vulkan/icd.d",
)
#: Variables that decide which libraries and devices are found.
_VARIABLES = (
    "PATH",
    "LD_LIBRARY_PATH",
    "LD_PRELOAD",
    "DYLD_LIBRARY_PATH",
    "PYTHONPATH",
    *DEVICE_VARIABLES,
)


class Prober(Protocol):
    """Tries providers."""

    def probe(self, runtime: Runtime, candidates: Sequence[Provider]) -> list[ProbeOutcome]:
        """Say which of the providers really run there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Remembered:
    """An outcome, and when it was found out.

    Attributes:
        outcome: Whether the provider runs.
        at_s: When it was tried, seconds since the epoch.
        fresh: Whether it was tried just now.
    """

    outcome: ProbeOutcome
    at_s: float
    fresh: bool = False


class ProbeMemory:
    """Outcomes of probes, in one file a runtime.

    Args:
        folder: Where the files are kept; ``None`` keeps none.
        now: The clock, seconds since the epoch.
    """

    def __init__(self, folder: Path | None, *, now: Callable[[], float] = time.time) -> None:
        self._folder = folder
        self._now = now

    def probe(
        self,
        prober: Prober,
        runtime: Runtime,
        info: RuntimeInfo,
        candidates: Sequence[Provider],
        *,
        again: bool = False,
    ) -> list[Remembered]:
        """Say which of the providers really run there, in the order given.

        Args:
            prober: Tries those that are not remembered.
            runtime: Where.
            info: What that runtime is now.
            candidates: The providers.
            again: Try all of them, whatever is remembered.
        """
        file = self._file(runtime, info)
        known = {} if file is None or again else self._read(file)
        unknown = [candidate for candidate in candidates if _key(candidate) not in known]
        for provider in unknown:
            [outcome] = prober.probe(runtime, [provider])
            known[_key(provider)] = Remembered(outcome=outcome, at_s=self._now(), fresh=True)
        if file is not None and unknown:
            _write(file, known)
        return [known[_key(candidate)] for candidate in candidates]

    def _file(self, runtime: Runtime, info: RuntimeInfo) -> Path | None:
        if self._folder is None or not runtime.shares_files:
            # Of another machine nothing is known but what its worker says: too little.
            return None
        text = json.dumps(facts(runtime, info), sort_keys=True)
        return self._folder / f"{hashlib.sha256(text.encode()).hexdigest()[:32]}.json"

    def _read(self, file: Path) -> dict[str, Remembered]:
        """What is remembered and still believed; nothing if the file is of no use."""
        outcomes: dict[str, Remembered] = {}
        try:
            content = json.loads(file.read_text(encoding="utf-8"))
            for key, plain in content.items():
                remembered = from_plain(Remembered, {**plain, "fresh": False})
                limit = USABLE_S if remembered.outcome.usable else REFUSED_S
                if 0 <= self._now() - remembered.at_s < limit:
                    outcomes[key] = remembered
        except (OSError, ValueError, AttributeError, TypeError, WireError):
            return {}
        return outcomes


def facts(runtime: Runtime, info: RuntimeInfo) -> dict[str, Plain]:
    """Everything that an outcome depends on.

    Args:
        runtime: How the interpreter is started.
        info: What it is.
    """
    environment = {**os.environ, **runtime.environment}
    return {
        "ortbench": VERSION,
        "host": platform.node(),
        "kernel": platform.release(),
        "command": list(runtime.command),
        "isolated": runtime.isolated,
        # Set and empty is not unset: it hides every device.
        "environment": {name: environment.get(name) for name in _VARIABLES},
        "executable": info.executable,
        "python": info.python,
        "version": info.version,
        "build": info.build,
        "numpy": info.numpy,
        "distributions": dict(info.distributions),
        "providers": list(info.available_providers),
        "plugins": {
            name: [path, *_stamp(Path(path))] for name, path in info.plugin_libraries.items()
        },
        "gpus": dict(info.devices),
        "nodes": _nodes(Path("/dev")),
        "drivers": {name: _text(Path(name)) for name in _DRIVER_FILES},
        "loader": _stamp(Path("/etc/ld.so.cache")),
        "manifests": _manifests(environment),
    }


def _key(provider: Provider) -> str:
    options = json.dumps(provider.options, sort_keys=True)
    return f"{provider.label} {provider.name} {provider.library} {options}"


def _write(file: Path, known: Mapping[str, Remembered]) -> None:
    content = json.dumps({key: to_plain(value) for key, value in known.items()})
    # A cache that can't be written (read-only home, full disk) costs time, nothing else.
    with contextlib.suppress(OSError):
        file.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=file.parent, suffix=".new")
        try:
            with os.fdopen(handle, "w", encoding="utf-8") as stream:
                stream.write(content)
            Path(name).replace(file)
        except OSError:
            Path(name).unlink(missing_ok=True)
            raise


def _stamp(file: Path) -> list[Plain]:
    try:
        status = file.stat()
    except OSError:
        return []
    return [status.st_size, status.st_mtime_ns]


def _nodes(folder: Path) -> list[Plain]:
    return [*sorted(str(path) for pattern in _DEVICE_NODES for path in folder.glob(pattern))]


def _manifests(environment: Mapping[str, str]) -> list[Plain]:
    """Manifests of Vulkan's drivers, installed and named by variables."""
    named = [environment.get(name, "").split(os.pathsep) for name in MANIFEST_VARIABLES]
    files = [Path(path) for paths in named for path in paths if path]
    files += [path for folder in _MANIFEST_FOLDERS for path in sorted(Path(folder).glob("*.json"))]
    return [[str(path), *_stamp(path)] for path in files]


def _text(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return ""
