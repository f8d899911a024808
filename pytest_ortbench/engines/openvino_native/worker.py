"""OpenVINO by its own package: one compiled model, and one request for each session."""

from __future__ import annotations

import re
import threading
from collections.abc import Mapping, Sequence
from typing import Any

from pytest_ortbench.core.errors import says
from pytest_ortbench.engines.seam import (
    NUMPY_TYPES,
    Engine,
    EngineRefusal,
    EngineTask,
    Inference,
    require_types,
    without_engine,
)

#: What it is called in --ort-providers.
_ALIAS = "openvino-native"
#: Property of the devices that compute with threads of the host.
_THREADS = "INFERENCE_NUM_THREADS"
#: Properties of a device that stand apart where the model is compiled for several.
_OF_DEVICES = "DEVICE_PROPERTIES"
#: What is read back beside the options that were given.
_READ = (
    _THREADS,
    "PERFORMANCE_HINT",
    "INFERENCE_PRECISION_HINT",
    "NUM_STREAMS",
    "EXECUTION_DEVICES",
)
#: Its own names of element types, by the texts of those in Python.
_SHORT = {"float32": "f32", "float16": "f16", "bfloat16": "bf16", "dynamic": "dynamic"}
_LACKING = re.compile(r"No conversion rule found for operations: (.+)")
_PLACE = re.compile(r"^(Exception from |Check '.*' failed at |While validating )")
#: How it says that a device, or a library of a device, is not there.
_NO_DEVICE = re.compile(r"Cannot load library|is not registered|device id|No available devices")


class OpenVino(Engine):
    """A model that OpenVINO compiled for one of its devices."""

    _library: Any = None  # the package has no types for what is used here
    _core: Any = None
    _compiled: Any = None

    def load(self) -> str:
        """Import ``openvino``, and return its version."""
        import openvino  # the measured thing itself, so its import is timed

        self._library = openvino
        self._core = openvino.Core()
        return str(openvino.get_version())

    def compile(self) -> int | None:
        """Read the file at the sizes of the case, and compile it for the device."""
        require_types(self.task, "OpenVINO", NUMPY_TYPES, alias=_ALIAS)
        device = self.task.device or "CPU"
        try:
            settings = self._settings(device)
            model = self._core.read_model(self.task.path)
            shapes = [list(item.shape or ()) for item in self.task.inputs]
            # By their places: an input that nothing reads has lost its name by now.
            model.reshape(dict(zip(model.inputs, shapes, strict=True)))
            self._compiled = self._core.compile_model(model, device, settings)
        except (RuntimeError, ValueError) as error:
            raise refusal_from(str(error), self.task) from error
        return None

    def open(self) -> Inference:
        """Make a request, and return what fills it, runs it, and reads its outputs.

        Each thread that calls it has a request of its own, since one carries out one at a time.
        """
        own = threading.local()
        own.request = self._compiled.create_infer_request()
        # *Seen*: arrays in a list take 4 % longer than in a dictionary at inferences of 1.5 ms.
        keys = [
            (item.name, item.name if item.name in port.get_names() else place)
            for place, (item, port) in enumerate(
                zip(self.task.inputs, self._compiled.inputs, strict=True)
            )
        ]
        places = range(len(self.task.outputs))

        def infer(feeds: Mapping[str, Any]) -> Sequence[Any]:
            try:
                request = own.request
            except AttributeError:  # the first inference of a further thread
                request = own.request = self._compiled.create_infer_request()
            try:
                # Places tell outputs apart whose tensor is one, and which then share all names.
                arrays = {key: feeds[name] for name, key in keys}
                results = request.infer(arrays, share_inputs=True)
            except RuntimeError as error:
                raise refusal_from(str(error), self.task) from error
            return [results[place] for place in places]

        return infer

    def in_force(self) -> dict[str, str]:
        """Return the settings that the compiled model reads back."""
        known = self._compiled.get_property("SUPPORTED_PROPERTIES")
        wanted = dict.fromkeys((*_READ, *self.task.options))
        return {
            key: as_option(self._compiled.get_property(key), self.task.options.get(key, ""))
            for key in wanted
            if key in known
        }

    def close(self) -> None:
        """Let go of the compiled model."""
        self._compiled = None

    def _settings(self, device: str) -> dict[str, Any]:
        settings: dict[str, Any] = {"PERFORMANCE_HINT": "LATENCY", **self.task.options}
        kind, _, listed = device.partition(":")
        if _THREADS in self._core.get_property(kind, "SUPPORTED_PROPERTIES"):
            settings.setdefault(_THREADS, self.task.threads)
        elif "CPU" in (listed or kind).split(",") or kind == "AUTO":
            # A list of devices takes no threads itself, and hands them to the one that has some.
            settings[_OF_DEVICES] = {"CPU": {_THREADS: self.task.threads}}
        return settings


def as_option(value: Any, given: str) -> str:
    """Return a property as it is written among options.

    Args:
        value: What OpenVINO reads back.
        given: The option as it was given, which is returned where it means the same.
    """
    if isinstance(value, bool):
        is_given = given.upper() in (("YES", "TRUE", "1", "ON") if value else ("NO", "FALSE", "0"))
        return given if is_given else ("YES" if value else "NO")
    if isinstance(value, (list, tuple, set, frozenset)):
        return ",".join(sorted(str(part) for part in value))
    text = re.sub(r"^<Type: '(.*)'>$", r"\1", str(value))
    text = re.sub(r"^[A-Z]\w+\.(?=[A-Z_]+$)", "", text)
    short = _SHORT.get(text, text)
    return given if given.casefold() == short.casefold() else short


def refusal_from(text: str, task: EngineTask) -> EngineRefusal:
    """Return the refusal that a message of OpenVINO tells, in one line.

    Args:
        text: The message: where it was raised, then the cause.
        task: What was to run.
    """
    lines = [line.strip(" -") for line in text.splitlines() if line.strip()]
    causes = [line for line in lines if not _PLACE.match(line)] or lines or [""]
    lacking = _LACKING.search(text)
    if lacking is not None:
        return EngineRefusal(
            f"OpenVINO lacks the operator {lacking[1].strip()}. {says('It', causes[-1])}",
            hint=without_engine(_ALIAS),
        )
    if _NO_DEVICE.search(text):
        return EngineRefusal(
            f"OpenVINO can't use the device {task.device or 'CPU'}. {says('It', causes[-1])}",
            kind="unavailable",
            hint=f"To measure on the CPU, write --ort-providers={_ALIAS}:CPU. To measure on "
            f"{task.device or 'CPU'}, install its driver",
        )
    hint = without_engine(_ALIAS)
    if task.options:
        named = ", ".join(f"{key}={value}" for key, value in task.options.items())
        leave = without_engine(_ALIAS, "leave")
        hint = (
            f"If this is about an option ({named}), correct it in --ort-provider-option. If not, "
            f"{leave}"
        )
    return EngineRefusal(f"OpenVINO can't run the model. {says('It', causes[-1])}", hint=hint)
