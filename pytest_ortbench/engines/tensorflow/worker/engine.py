"""TensorFlow runs the source of a model, through one traced function."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pytest_ortbench.engines.entry import LoadedSource
from pytest_ortbench.engines.seam import Engine, EngineRefusal, Inference, without_engine
from pytest_ortbench.engines.tensorflow.worker.files import imported
from pytest_ortbench.engines.tensorflow.worker.served import Served, traced
from pytest_ortbench.worker.entry import load_source

_INTRA, _INTER = "intra_op_parallelism_threads", "inter_op_parallelism_threads"
_JIT = "jit_compile"
#: Ways to write the kind of its devices that are GPUs.
_GPUS = ("GPU", "CUDA")


class TensorFlow(Engine):
    """A Keras model, a SavedModel or a function of TensorFlow."""

    _library: Any = None  # the package has no types
    _source: LoadedSource | None = None
    _served: Served | None = None
    _device: str = ""

    def load(self) -> str:
        """Import ``tensorflow``, set its threads, and return its version.

        GPUs are hidden from a case of the CPU: it would place operators there by itself.
        """
        self._library = imported()
        threading = self._library.config.threading
        threading.set_intra_op_parallelism_threads(self.task.threads)
        threading.set_inter_op_parallelism_threads(int(self.task.options.get(_INTER, "1")))
        self._device = self.task.device.upper().partition(":")[0] or "CPU"
        if self._device == "CPU":
            self._library.config.set_visible_devices([], "GPU")
        return str(self._library.__version__)

    def build(self) -> None:
        """Load the file, or have the entry function make the model."""
        self._require_device()
        self._source = load_source(self.task.required_source())

    def open(self) -> Inference:
        """Trace the function of the model, and return what runs it.

        Further sessions run the same function, as threads of an application do.
        """
        assert self._source is not None  # it was built
        if self._served is None:
            self._served = traced(self._source, jit_compile=self._jit)
        function = self._served
        taken = set(function.inputs) - {item.name for item in self.task.inputs}
        given = set(function.outputs)
        lacking = [item.name for item in self.task.outputs if item.name not in given]
        if taken or lacking:
            what = (
                f"the model of TensorFlow has the input {min(taken)!r}, which its ONNX file does "
                "not have"
                if taken
                else f"the ONNX file has the output {lacking[0]!r}, which the model of TensorFlow "
                "does not have"
            )
            raise EngineRefusal(
                what,
                hint="If the ONNX file was exported from an older model, export it again, e.g. "
                "'ortbench convert net.py:build --output=net.onnx'. If not, "
                f"{without_engine('tensorflow', 'leave')}",
            )
        order = [function.outputs.index(item.name) for item in self.task.outputs]
        constant, flatten = self._library.constant, self._library.nest.flatten
        inputs, call = function.inputs, function.call

        def infer(feeds: Mapping[str, Any]) -> Sequence[Any]:
            tensors = flatten(call([constant(feeds[name]) for name in inputs]))
            return [tensors[index].numpy() for index in order]

        return infer

    def threads(self) -> int:
        """Return the threads of one operator, as TensorFlow reads them back."""
        return int(self._library.config.threading.get_intra_op_parallelism_threads())

    def in_force(self) -> dict[str, str]:
        """Return its numbers of threads as it reads them back, and how the function is run."""
        threading = self._library.config.threading
        return {
            _INTRA: str(threading.get_intra_op_parallelism_threads()),
            _INTER: str(threading.get_inter_op_parallelism_threads()),
            _JIT: "1" if self._jit else "0",
            "function": "tf.function",
        }

    def close(self) -> None:
        """Let go of the model."""
        self._source = self._served = None

    @property
    def _jit(self) -> bool:
        return self.task.options.get(_JIT, "0") in {"1", "true", "True"}

    def _require_device(self) -> None:
        """Refuse a device that TensorFlow does not see; several of a kind can't be told apart."""
        kind = "GPU" if self._device in _GPUS else self._device
        seen = sorted({item.device_type for item in self._library.config.list_physical_devices()})
        if kind not in seen:
            raise EngineRefusal(
                f"TensorFlow finds no {kind} on this machine, only {', '.join(seen)}",
                kind="unavailable",
                hint="To measure on the CPU, write --ort-providers=tensorflow:cpu. To measure on "
                f"the {kind}, install a TensorFlow that supports it",
            )
