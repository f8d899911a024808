"""JAX: the file as a function of JAX, compiled for the sizes of the case."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pytest_ortbench.core.errors import class_and_line, says
from pytest_ortbench.engines.seam import (
    NUMPY_TYPES,
    Engine,
    EngineRefusal,
    Inference,
    require_types,
)

#: What the client for CPUs takes for the number of CPUs, and so of its threads.
_CPUS = "PJRT_NPROC"
#: Which kinds of devices JAX looks for; a variable of JAX.
_PLATFORMS = "JAX_PLATFORMS"
#: Name of the threads that compute operators, as the system has it.
_POOL = "tf_XLAEigen"


def next_step(device: str) -> str:
    """Return the next step where JAX does not find a device.

    Args:
        device: The one that was asked for; empty for the default.
    """
    chosen = os.environ.get(_PLATFORMS, "")
    if chosen:
        return f"Unset the environment variable {_PLATFORMS}, which limits JAX to {chosen}"
    to_cpu = "To measure on the CPU, write --ort-providers=jax:cpu"
    if not device:
        return to_cpu
    return f"{to_cpu}. To measure on {device}, install JAX with support for this device"


class Jax(Engine):
    """A model that jaxonnxruntime translated and XLA compiled."""

    _jax: Any = None  # its types are those of jaxonnxruntime, which has none
    _device: Any = None
    _compiled: Any = None
    _weights: Any = None

    def load(self) -> str:
        """Tell JAX its number of threads, import it, and return its version."""
        os.environ[_CPUS] = str(self.task.threads)
        import jax  # the measured thing itself, so its import is timed
        import jaxonnxruntime.call_onnx  # comes with all operators

        # Without it an int64 of the file would be an int32.
        jax.config.update("jax_enable_x64", True)
        jaxonnxruntime.config.update("jaxort_only_allow_initializers_as_static_args", False)
        self._jax = jax
        return str(jax.__version__)

    def compile(self) -> int | None:
        """Translate the file, compile what came of it, and return the size of what was kept."""
        require_types(self.task, "JAX", NUMPY_TYPES)
        self._device = self._found_device()
        folder = self.task.folder
        if folder is not None:
            self._keep_in(folder)
        with self._jax.default_device(self._device):
            try:
                self._compile()
            except MemoryError:
                raise
            except Exception as error:
                # Its operators raise whatever JAX and numpy do.
                raise EngineRefusal(translation_refusal(error)) from error
        if folder is None:
            return None
        return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())

    def open(self) -> Inference:
        """Return what hands arrays over, runs the function, and fetches its outputs."""
        import numpy

        compiled, weights = self._compiled, self._weights
        names = [item.name for item in self.task.inputs]
        given = [NUMPY_TYPES[item.type] for item in self.task.outputs]

        def infer(feeds: Mapping[str, Any]) -> Sequence[Any]:
            results = compiled(weights, {name: feeds[name] for name in names})
            return [
                numpy.asarray(result).astype(type_, copy=False)
                for result, type_ in zip(results, given, strict=True)
            ]

        return infer

    def in_force(self) -> dict[str, str]:
        """Return the device, and how many threads for operators this process has."""
        paths = Path("/proc").glob("self/task/*/comm")
        pool = sum(path.read_text(encoding="utf-8").startswith(_POOL) for path in paths)
        read = {_CPUS: str(pool)} if pool else {}
        return {"device": f"{self._device.platform}:{self._device.id}", **read}

    def close(self) -> None:
        """Let go of the function and its weights."""
        self._compiled = self._weights = None

    def _found_device(self) -> Any:
        try:
            return self._jax.devices(self.task.device or None)[0]
        except RuntimeError as error:
            line = says("It", " ".join(str(error).split()))
            raise EngineRefusal(
                f"JAX has no device {self.task.device!r}. {line}"
                if self.task.device
                else f"JAX finds no device. {line}",
                kind="unavailable",
                hint=next_step(self.task.device),
            ) from error

    def _keep_in(self, folder: Path) -> None:
        settings = {
            "jax_compilation_cache_dir": str(folder),
            # Everything is kept, however small and however fast to compile.
            "jax_persistent_cache_min_entry_size_bytes": -1,
            "jax_persistent_cache_min_compile_time_secs": 0,
        }
        for name, value in settings.items():
            self._jax.config.update(name, value)

    def _compile(self) -> None:
        import numpy
        import onnx
        from jaxonnxruntime.call_onnx import call_onnx_model

        # It runs every operator once, to learn what depends on values.
        example = {
            item.name: numpy.ones(item.shape or (), NUMPY_TYPES[item.type])
            for item in self.task.inputs
        }
        function, weights = call_onnx_model(onnx.load(self.task.path), example)
        self._weights = self._jax.device_put(weights, self._device)
        self._compiled = self._jax.jit(function).lower(self._weights, example).compile()


def translation_refusal(error: BaseException) -> str:
    """Return in one line why a model could not be translated, with the operator.

    Args:
        error: What jaxonnxruntime or JAX raised.
    """
    said = says("It", class_and_line(error))
    operator = _operator_of(error)
    if not operator:
        return f"jaxonnxruntime can't translate the model. {said}"
    return f"jaxonnxruntime can't translate the operator {operator}. {said}"


def _operator_of(error: BaseException) -> str:
    """The operator at which an error was raised: that of the innermost node of its stack."""
    operator, place = "", error.__traceback__
    while place is not None:
        node = place.tb_frame.f_locals.get("node")
        operator = str(getattr(node, "op_type", operator))
        place = place.tb_next
    return operator
