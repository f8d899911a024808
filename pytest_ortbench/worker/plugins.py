"""Providers that are plugged into ONNX Runtime: found, registered, and their devices chosen.

A package follows the convention if it offers ``get_library_path()`` and ``get_ep_names()`` or
``get_ep_name()``; onnxruntime-ggml spells them ``library_path()`` and ``EP_NAME``, and nxrt-ep-cpu
has no word for the latter. Other libraries are named by the project's configuration.

*Seen*: once a library is registered, ``get_available_providers()`` of 1.30 lists its provider too,
although a session takes it by its devices only; and a session reads back whatever options were
given to such a provider, known to it or not.
"""

from __future__ import annotations

import importlib
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

from pytest_ortbench.core.case import Provider
from pytest_ortbench.core.provider_kinds import BY_NAME, CPU
from pytest_ortbench.worker.runtime import load

if TYPE_CHECKING:
    from onnxruntime import OrtEpDevice

#: Packages beside ONNX Runtime that bring no provider.
_NO_PLUGIN = re.compile(r"onnxruntime_(extensions|genai|tools|easy|training|libs)")
_MODULE = re.compile(r"onnxruntime_[a-z0-9_]+|nxrt_ep_[a-z0-9_]+")
#: Packages that do not say what their provider is called: *seen* in 0.1.0.dev6.
_UNNAMED = {"nxrt_ep_cpu": "cpu_ep"}


class ProviderMissing(Exception):
    """The runtime does not have the asked provider at all."""


class PluginMissing(ProviderMissing):
    """A plug-in is there, but can't be loaded or offers no device here; the text says why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plugin:
    """A library that brings one provider.

    Attributes:
        name: ONNX Runtime's name of the provider.
        library: Path of the library.
    """

    name: str
    library: str


def plugins(configured: Mapping[str, str]) -> tuple[dict[str, Plugin], dict[str, str]]:
    """Look for plug-in providers in this interpreter.

    Args:
        configured: Libraries by name of their provider; they win over packages.

    Returns:
        The plug-ins by name of their provider, and what is wrong with each package that could not
        be asked, by its own name.
    """
    by_name = {name: Plugin(name=name, library=path) for name, path in configured.items()}
    problems: dict[str, str] = {}
    for module_name in _candidates():
        try:
            for plugin in _of_package(importlib.import_module(module_name)):
                by_name.setdefault(plugin.name, plugin)
        except Exception as error:  # noqa: BLE001 - a package may raise anything on import
            problems[module_name] = f"{type(error).__name__}: {error}"
    return by_name, problems


def plugin_of(provider: Provider) -> Plugin | None:
    """Return the plug-in that brings ``provider``, ``None`` if no package here does."""
    if provider.library:
        return Plugin(name=provider.name, library=provider.library)
    # What most likely has it is asked first: asking imports a package.
    kind = BY_NAME.get(provider.name)
    likely = [name.replace("-", "_") for name in kind.distributions] if kind is not None else []
    for module_name in sorted(_candidates(), key=lambda name: name not in likely):
        try:
            offered = _of_package(importlib.import_module(module_name))
        except Exception as error:
            if module_name in likely:
                raise PluginMissing(f"{module_name}: {type(error).__name__}: {error}") from error
            continue
        for plugin in offered:
            if plugin.name == provider.name:
                return plugin
    return None


def is_plugged_in(name: str) -> bool:
    """Whether a provider of this name was registered from a library."""
    return name in _registered or is_bundled(name)


def is_bundled(name: str) -> bool:
    """Whether ONNX Runtime itself brings a provider as a plug-in and registered it on import."""
    ort, _ = load()
    build = ort.get_build_info() if hasattr(ort, "get_build_info") else ""
    return name == "CUDAExecutionProvider" and "cuda-plugin-ep=" in build


def built_in() -> tuple[str, ...]:
    """Providers that are compiled into this ONNX Runtime."""
    ort, _ = load()
    return tuple(name for name in ort.get_available_providers() if name not in _registered)


def devices(plugin: Plugin) -> list[OrtEpDevice]:
    """Register a plug-in, once a process, and return the devices that it offers.

    Raises:
        PluginMissing: if it can't be loaded, or offers none.
    """
    ort, _ = load()
    if plugin.library:
        _register(plugin)
    offered = [device for device in ort.get_ep_devices() if device.ep_name == plugin.name]
    if not offered:
        names = {device.ep_name for device in ort.get_ep_devices()} - {CPU}
        others = f", only for {', '.join(sorted(names))}" if names else ""
        source = Path(plugin.library).name or "ONNX Runtime's own plug-in"
        raise PluginMissing(
            f"{source} has no device here for {plugin.name}{others}; ONNX Runtime finds "
            f"{', '.join(_hardware())}"
        )
    return offered


def hardware_of(name: str) -> tuple[str, ...]:
    """Return the labels of the devices that a registered plug-in offers, each hardware once."""
    ort, _ = load()
    return distinct([device for device in ort.get_ep_devices() if device.ep_name == name])


def choose(
    offered: Sequence[OrtEpDevice], provider: Provider, *, device: str | None = None
) -> OrtEpDevice:
    """Return the device that ``alias:DEVICE`` means.

    Args:
        offered: Devices of the provider.
        provider: With its device, empty for the first one.
        device: What its options say of the device, in place of ``provider.device``.

    Raises:
        PluginMissing: if there is none such.
    """
    asked = provider.device if device is None else device
    wanted = asked.lower()
    if not wanted or provider.alias == "ggml":  # ggml takes its device as an option
        return offered[0]
    labels = device_labels(offered)
    if provider.alias == "qnn":
        # A backend, and the hardware that it is for; the simulator runs on the CPU.
        hardware = {"htp": "npu"}.get(wanted, wanted)
        return next(
            (candidate for candidate, label in labels if label.split(".")[0] == hardware),
            offered[0],
        )
    if wanted.isdigit():
        # Its own number where it tells one: ONNX Runtime's order need not be CUDA's.
        numbers = [dict(candidate.ep_options or {}).get("device_id") for candidate in offered]
        if wanted in numbers:
            return offered[numbers.index(wanted)]
        if int(wanted) < len(offered) and not any(numbers):
            return offered[int(wanted)]
    else:
        wanted = wanted.removesuffix(".0")
        for candidate, label in labels:
            if label == wanted:
                return candidate
    raise PluginMissing(
        f"{provider.name} has no device {asked!r} here, only "
        f"{', '.join(label for _, label in labels)}"
    )


def device_labels(offered: Sequence[OrtEpDevice]) -> list[tuple[OrtEpDevice, str]]:
    """Name devices by their hardware: ``cpu``, ``gpu``, ``gpu.1``, ``npu``."""
    counts: dict[str, int] = {}
    labels = []
    for device in offered:
        kind = device.device.type.name.lower()
        number = counts.get(kind, 0)
        counts[kind] = number + 1
        labels.append((device, f"{kind}.{number}" if number else kind))
    return labels


def distinct(offered: Sequence[OrtEpDevice]) -> tuple[str, ...]:
    """Return the labels of the devices, each model of hardware once."""
    seen: dict[tuple[str, int, int], str] = {}
    for device, label in device_labels(offered):
        hardware = device.device
        seen.setdefault((hardware.type.name, hardware.vendor_id, hardware.device_id), label)
    return tuple(seen.values())


#: Names that libraries were registered for, and the libraries.
_registered: dict[str, str] = {}


def _register(plugin: Plugin) -> None:
    ort, _ = load()
    if not hasattr(ort, "register_execution_provider_library"):
        raise PluginMissing(
            f"ONNX Runtime {ort.__version__} can't load plug-in providers; 1.22 is the first that "
            "can"
        )
    if _registered.get(plugin.name) == plugin.library:
        return
    if not Path(plugin.library).is_file():
        raise PluginMissing(f"the library {plugin.library} does not exist")
    try:
        ort.register_execution_provider_library(plugin.name, plugin.library)
    except Exception as error:  # ONNX Runtime's own exceptions share no base class
        raise PluginMissing(str(error)) from error
    _registered[plugin.name] = plugin.library


@cache
def _candidates() -> tuple[str, ...]:
    """Names of packages that may bring a plug-in, by their name only; nothing is imported."""
    return tuple(sorted(set(_packages())))


def _packages() -> Iterator[str]:
    for folder in sys.path:
        try:
            entries = list(Path(folder).iterdir())
        except OSError:  # no folder, or a zip file
            continue
        for entry in entries:
            if (
                _MODULE.fullmatch(entry.name)
                and not _NO_PLUGIN.match(entry.name)
                and (entry / "__init__.py").is_file()
            ):
                yield entry.name


def _of_package(module: ModuleType) -> list[Plugin]:
    """The plug-ins of an imported package; none if it does not follow the convention."""
    path = getattr(module, "get_library_path", None) or getattr(module, "library_path", None)
    names = _names(module)
    if not callable(path) or not names:
        return []
    library = str(path())
    return [Plugin(name=name, library=library) for name in names]


def _names(module: ModuleType) -> list[str]:
    every = getattr(module, "get_ep_names", None)
    if callable(every):
        return [str(name) for name in every()]
    ask = getattr(module, "get_ep_name", None)
    if callable(ask):
        return [str(ask())]
    constant = getattr(module, "EP_NAME", _UNNAMED.get(module.__name__))
    return [constant] if isinstance(constant, str) else []


def _hardware() -> list[str]:
    """What ONNX Runtime found on this machine, as far as registered providers tell."""
    ort, _ = load()
    seen: dict[str, None] = {}
    for device in ort.get_ep_devices():
        hardware = device.device
        seen[f"{hardware.type.name} {hardware.vendor}".strip()] = None
    return list(seen) or ["no device at all"]
