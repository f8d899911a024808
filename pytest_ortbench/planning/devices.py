"""``alias:DEVICE``: which provider options select a device.

A device is checked here, before anything runs, since providers themselves are lenient: *seen*,
OpenVINO 1.24 accepts a device that does not exist and runs.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from pytest_ortbench.core.errors import UsageError, nearest
from pytest_ortbench.core.provider_kinds import KINDS, ProviderKind
from pytest_ortbench.planning.option_tables import DAWN_BACKENDS


def device_options(
    kind: ProviderKind, device: str, place: str, platform: str
) -> tuple[str, dict[str, str]]:
    """Read the device part of ``alias:DEVICE``.

    Args:
        kind: The provider.
        device: What the user wrote behind the colon.
        place: Where, for messages.
        platform: ``sys.platform`` of the machine that measures, for names of libraries.

    Returns:
        The device as ids show it, and the provider options that select it.

    Raises:
        UsageError: if the provider takes no device, or not this one.
    """
    if kind.device == "index":
        index = _index(kind, device, place)
        return index, {"device_id": index}
    if kind.device == "nvidia":
        if _GPU_UUID.fullmatch(device):
            return device, {"device_id": device}
        index = _index(kind, device, place, "an index or a UUID (GPU-…, MIG-…)")
        return index, {"device_id": index}
    if kind.device == "hardware":
        return _hardware(kind, device, place), {}
    if kind.device == "openvino":
        check_openvino(device, place)
        device = device.upper()
        return device, {"device_type": device}
    if kind.device == "dml":
        if device.lower() in ("gpu", "npu"):
            return device.lower(), {"device_filter": device.lower()}
        index = _index(kind, device, place, "gpu, npu or an index")
        return index, {"device_id": index}
    if kind.device == "qnn":
        if device.lower() in ("saver", "ir"):
            raise UsageError(
                f"qnn:{device.lower()} computes nothing and only records the graph",
                place=place,
                hint="Write qnn:htp, qnn:gpu or qnn:cpu",
            )
        return _known_device(kind, device, _qnn_libraries(platform), "backend_path", place)
    if kind.device == "coreml":
        return _known_device(kind, device, _COREML_UNITS, "MLComputeUnits", place)
    if kind.device == "ggml":
        return _known_device(kind, device, {"cpu": "cpu", "gpu": "gpu"}, "device", place)
    raise UsageError(
        f"{kind.alias!r} takes no device, but {device!r} is given",
        place=place,
        hint=f"Write {kind.alias}",
    )


_COREML_UNITS = {
    "all": "ALL",
    "cpu": "CPUOnly",
    "gpu": "CPUAndGPU",
    "npu": "CPUAndNeuralEngine",
}
#: Those that compute. *Seen*: QNN's Saver takes every node, writes down what was to be computed,
#: and returns whatever lay there.
_QNN_BACKENDS = {"htp": "QnnHtp", "cpu": "QnnCpu", "gpu": "QnnGpu"}
#: What CUDA_VISIBLE_DEVICES takes besides indices; a beginning is enough where it is unique.
_GPU_UUID = re.compile(r"(GPU|MIG)-[0-9A-Za-z-]+")
# AUTO:-GPU is OpenVINO's way to exclude a device.
_OPENVINO_FAMILIES = ("CPU", "GPU", "NPU")
_OPENVINO_DEVICE = re.compile(rf"-?({'|'.join(_OPENVINO_FAMILIES)})(\.\d+)?")
#: What stands before a device in a list of providers.
_PREFIX = "openvino:"
_OPENVINO_MODES = ("AUTO", "HETERO", "MULTI")


def _qnn_libraries(platform: str) -> dict[str, str]:
    # The path and not the newer backend_type, which old runtimes do not know.
    return {
        name: f"{stem}.dll" if platform == "win32" else f"lib{stem}.so"
        for name, stem in _QNN_BACKENDS.items()
    }


def _known_device(
    kind: ProviderKind, device: str, values: Mapping[str, str], option: str, place: str
) -> tuple[str, dict[str, str]]:
    device = device.lower()
    if device not in values:
        raise UsageError(
            f"{kind.alias!r} has no device {device!r}",
            place=place,
            hint=f"Write one of: {', '.join(f'{kind.alias}:{name}' for name in values)}",
        )
    return device, {option: values[device]}


def _index(kind: ProviderKind, device: str, place: str, rule: str = "an index") -> str:
    if not (device.isascii() and device.isdigit() and len(device) <= 4):
        raise UsageError(
            f"{device!r} is not a device of {kind.alias!r}, which takes {rule}",
            place=place,
            hint=f"Write e.g. {kind.alias}:0",
        )
    return str(int(device))


def _hardware(kind: ProviderKind, device: str, place: str) -> str:
    """Devices of a plug-in, by kind of hardware and number: ``gpu``, ``npu.1``, or an index."""
    if not re.fullmatch(r"(cpu|gpu|npu)(\.\d{1,3})?|\d{1,3}", device.lower()):
        backends = DAWN_BACKENDS if kind.alias == "webgpu" else ()
        backend = next((name for name in backends if name.lower() == device.lower()), "")
        if backend:
            raise UsageError(
                f"{device!r} is a backend of {kind.alias}, not a device",
                place=place,
                hint=f"Write {kind.alias}, and add "
                f"--ort-provider-option={kind.alias}.dawnBackendType={backend}",
            )
        raise UsageError(
            f"{kind.alias!r} has no device {device!r}",
            place=place,
            hint=f"Write {kind.alias}:gpu, {kind.alias}:gpu.1 (the second one), {kind.alias}:npu, "
            f"or a number, e.g. {kind.alias}:0",
        )
    return device.lower().removesuffix(".0")


def check_openvino(device: str, place: str, prefix: str = _PREFIX) -> None:
    """Refuse a device that OpenVINO does not have: *seen*, it accepts FOO and runs.

    Args:
        device: As it was written.
        place: Where it was written.
        prefix: What stands before it there.

    Raises:
        UsageError: if it names no device, or names it in the old way.
    """
    mode, colon, rest = device.partition(":")
    mode = mode.upper()
    if mode in _OPENVINO_MODES:
        names = rest.split(",") if colon else []
        needs_names = mode != "AUTO"
    else:
        names, needs_names = device.split(","), True
    if re.fullmatch(r"(CPU|GPU)_FP(16|32)", device.upper()):
        family, precision = device.upper().split("_")
        raise UsageError(
            f"{device!r} is the old way to name an OpenVINO device",
            place=place,
            hint=f"Write {prefix}{family} in place of {prefix}{device}, and add "
            f"--ort-provider-option=openvino.precision={precision}",
        )
    wrong = [
        name
        for name in names
        if not _OPENVINO_DEVICE.fullmatch(name.upper()) or (name[0] == "-" and mode != "AUTO")
    ]
    if needs_names and not names:
        raise UsageError(
            f"{device!r} combines several devices of OpenVINO, and none is named",
            place=place,
            hint=f"Write e.g. {prefix}{mode}:GPU,CPU",
        )
    if wrong:
        # Behind a comma of the list of providers, another provider may have been meant.
        in_list = prefix == _PREFIX and len(names) > 1
        near = nearest(wrong[0], (*(KINDS if in_list else ()), *_OPENVINO_FAMILIES))
        raise UsageError(
            f"{wrong[0] or device!r} is neither a device of OpenVINO nor a provider"
            if in_list
            else f"OpenVINO has the devices CPU, GPU and NPU, but not {wrong[0] or device!r}",
            place=place,
            hint=f"Did you mean {near!r}?" if near else f"Write one of them, e.g. {prefix}GPU",
        )
    if len(names) > 1 and mode not in _OPENVINO_MODES:
        raise UsageError(
            f"{device!r} names several devices of OpenVINO, but not how they are combined",
            place=place,
            hint=f"Write {prefix}AUTO:{device}, {prefix}HETERO:{device} or {prefix}MULTI:{device}. "
            "To measure each by itself, write "
            f"--ort-providers={','.join(f'openvino:{name}' for name in names)}",
        )
