"""What a runtime has: its built-in providers, the plug-ins found beside it, and their devices."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_ortbench.core.measurement import RuntimeInfo
from pytest_ortbench.core.provider_kinds import OPENVINO
from pytest_ortbench.worker.gpus import visible_gpus
from pytest_ortbench.worker.plugins import (
    Plugin,
    PluginMissing,
    built_in,
    devices,
    distinct,
    hardware_of,
    is_bundled,
    is_plugged_in,
    plugins,
)
from pytest_ortbench.worker.runtime import describe, load
from pytest_ortbench.worker.session import preload
from pytest_ortbench.worker.state import WorkerState

if TYPE_CHECKING:
    from pytest_ortbench.schema.runtime_questions import Inspect

CUDA = "CUDAExecutionProvider"
QNN = "QNNExecutionProvider"
#: Providers that number NVIDIA GPUs as CUDA does.
_CUDA = (CUDA, "TensorrtExecutionProvider")

#: Backends of QNN that compute, by the stem of their library. The others (Saver, Ir) write down
#: what was to be computed: *seen*, QNN's saver takes every node and returns whatever lay there.
_QNN_BACKENDS = {"htp": "QnnHtp", "gpu": "QnnGpu", "cpu": "QnnCpu"}


def describe_interpreter(question: Inspect, state: WorkerState) -> RuntimeInfo:
    """Describe this interpreter, with the plug-ins that are found if they are asked for."""
    state.enter("import")
    info = describe()
    if not question.load_plugins:
        return info
    state.enter("plug-ins")
    return inspect(question.plugins)


def describe_measured() -> RuntimeInfo:
    """Return what this interpreter is, with the plug-ins that were registered in it."""
    info = describe()
    plugged = [name for name in info.available_providers if is_plugged_in(name)]
    return replace(
        info,
        available_providers=built_in(),
        plugin_providers=tuple(sorted({*info.plugin_providers, *plugged})),
        provider_devices={name: hardware_of(name) for name in plugged},
    )


def inspect(configured: Mapping[str, str]) -> RuntimeInfo:
    """Return what this interpreter is, with every plug-in that it could use.

    Each plug-in is loaded, so that it says which devices it has; a plug-in that kills the process
    takes the inspection with it, whose failure then names the phase.

    Args:
        configured: Libraries of plug-ins that the project has configured, by full name.
    """
    if is_bundled(CUDA):
        preload(CUDA)
    offered = built_in()
    plugged, problems = plugins(configured)
    labels: dict[str, tuple[str, ...]] = {}
    usable: list[str] = []
    for name, plugin in sorted(plugged.items()):
        if name in offered:
            # The one that is compiled in is used; the library would only replace it by name.
            continue
        try:
            labels[name] = _labels_of_plugin(plugin)
        except PluginMissing as error:
            problems[name] = str(error)
        else:
            usable.append(name)
    for name in offered:
        own = _labels_of_built_in(name)
        if own:
            labels[name] = own
    return replace(
        describe(),
        available_providers=offered,
        plugin_providers=tuple(usable),
        plugin_libraries={name: plugin.library for name, plugin in sorted(plugged.items())},
        plugin_problems=problems,
        provider_devices=labels,
    )


def _labels_of_plugin(plugin: Plugin) -> tuple[str, ...]:
    offered = devices(plugin)
    if plugin.name == QNN:
        return _qnn_backends(Path(plugin.library).parent)
    if plugin.name == OPENVINO:
        return tuple(label.upper() for label in distinct(offered))
    return distinct(offered)


def _labels_of_built_in(name: str) -> tuple[str, ...]:
    """Devices of a provider that is compiled in, as far as it tells."""
    ort, _ = load()
    if name == QNN:
        return _qnn_backends(Path(ort.__path__[0]) / "capi")
    if name == OPENVINO:
        state = importlib.import_module("onnxruntime.capi._pybind_state")
        ask = getattr(state, "get_available_openvino_device_ids", None)
        return tuple(str(device) for device in ask()) if ask is not None else ()
    if name in _CUDA:
        # Equal GPUs give equal numbers; only another model is another case.
        models: dict[str, str] = {}
        for gpu in visible_gpus():
            models.setdefault(gpu.name, str(gpu.ordinal))
        return tuple(models.values())
    return ()


def _qnn_backends(folder: Path) -> tuple[str, ...]:
    return tuple(
        device
        for device, stem in _QNN_BACKENDS.items()
        if any((folder / name).is_file() for name in (f"lib{stem}.so", f"{stem}.dll"))
    )
