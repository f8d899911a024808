"""OpenVINO by its own package: one compiled model, and one request for each session."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pytest_ortbench.engines.seam import Engine, EngineRefusal, Inference

#: Property of the devices that compute with threads of the host.
_THREADS = "INFERENCE_NUM_THREADS"


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
        device = self.task.device or "CPU"
        settings: dict[str, Any] = {"PERFORMANCE_HINT": "LATENCY", **self.task.options}
        try:
            if _THREADS in self._core.get_property(device, "SUPPORTED_PROPERTIES"):
                settings.setdefault(_THREADS, self.task.threads)
            model = self._core.read_model(self.task.path)
            model.reshape({item.name: list(item.shape or ()) for item in self.task.inputs})
            self._compiled = self._core.compile_model(model, device, settings)
        except RuntimeError as error:
            raise EngineRefusal(_first_line(error)) from error
        return None

    def open(self) -> Inference:
        """Make a request, and return what fills it, runs it, and reads its outputs."""
        request = self._compiled.create_infer_request()
        names = [item.name for item in self.task.outputs]

        def infer(feeds: Mapping[str, Any]) -> Sequence[Any]:
            results = request.infer(feeds, share_inputs=True)
            return [results[name] for name in names]

        return infer

    def in_force(self) -> dict[str, str]:
        """Return the settings that the compiled model reads back."""
        known = self._compiled.get_property("SUPPORTED_PROPERTIES")
        wanted = (_THREADS, "PERFORMANCE_HINT", "INFERENCE_PRECISION_HINT")
        return {key: str(self._compiled.get_property(key)) for key in wanted if key in known}

    def close(self) -> None:
        """Let go of the compiled model."""
        self._compiled = None


def _first_line(error: RuntimeError) -> str:
    """The line of OpenVINO's message that says what it lacks: the last one is the cause."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[-1] if lines else type(error).__name__
