"""The interpreter of TensorFlow Lite runs a file of its own."""

from __future__ import annotations

import importlib.metadata
from collections.abc import Mapping, Sequence
from pathlib import Path
from threading import Lock
from typing import Any

from pytest_ortbench.core.errors import first_line, says
from pytest_ortbench.engines.entry import LoadedSource
from pytest_ortbench.engines.seam import Engine, EngineRefusal, Inference

_PACKAGE = "ai-edge-litert"
_XNNPACK, _THREADS = "xnnpack", "threads_running"
#: Where Linux lists the threads of a process.
_TASKS = Path("/proc/self/task")


def load_tflite(path: Path) -> LoadedSource:
    """Return the path: the file is data, which the exporter and the interpreter read."""
    return LoadedSource(path=path, model=path)


class TensorFlowLite(Engine):
    """A ``.tflite`` file in an interpreter; each further session has an interpreter of its own."""

    _library: Any = None  # the package has no types
    _threads: int | None = None

    def load(self) -> str:
        """Import the interpreter, and return the version of its package."""
        from ai_edge_litert import interpreter  # the measured thing itself, so it is timed

        self._library = interpreter
        return importlib.metadata.version(_PACKAGE)

    def open(self) -> Inference:
        """Read the file, size its tensors, and return what fills, runs and reads them."""
        source = self.task.required_source()
        before = _threads_now()
        try:
            interpreter = self._interpreter(source.path)
            names = signature_names(interpreter)
            inputs = [
                (
                    item.name,
                    _index(interpreter.get_input_details(), names, item.name, self.task.path),
                )
                for item in self.task.inputs
            ]
            outputs = [
                _index(interpreter.get_output_details(), names, item.name, self.task.path)
                for item in self.task.outputs
            ]
            self._resize(interpreter, dict(inputs))
            interpreter.allocate_tensors()
        except (RuntimeError, ValueError) as error:
            raise EngineRefusal(_told(error)) from error
        if before is not None and self._threads is None:
            self._threads = 1 + (_threads_now() or before) - before
        fill, invoke, read = interpreter.set_tensor, interpreter.invoke, interpreter.get_tensor
        lock = Lock()  # an interpreter serves one caller at a time; it costs some 50 ns

        def infer(feeds: Mapping[str, Any]) -> Sequence[Any]:
            with lock:
                for name, index in inputs:
                    fill(index, feeds[name])
                invoke()
                return [read(index) for index in outputs]

        return infer

    def in_force(self) -> dict[str, str]:
        """Return how many threads the interpreter runs on, and whether XNNPACK is there.

        It reads its number of threads back to nobody, so those are counted that it started.
        """
        read = {_XNNPACK: "0" if self._is_plain else "1"}
        return read if self._threads is None else {**read, _THREADS: str(self._threads)}

    def close(self) -> None:
        """Do nothing: an interpreter ends with what runs it."""

    @property
    def _is_plain(self) -> bool:
        return self.task.options.get(_XNNPACK, "1") in {"0", "false", "False"}

    def _interpreter(self, path: str) -> Any:
        kinds = self._library.OpResolverType
        return self._library.Interpreter(
            model_path=path,
            num_threads=self.task.threads,
            experimental_op_resolver_type=kinds.BUILTIN_WITHOUT_DEFAULT_DELEGATES
            if self._is_plain
            else kinds.AUTO,
        )

    def _resize(self, interpreter: Any, indices: Mapping[str, int]) -> None:
        held = {item["index"]: tuple(item["shape"]) for item in interpreter.get_input_details()}
        for item in self.task.inputs:
            index = indices[item.name]
            if item.shape is not None and held[index] != item.shape:
                interpreter.resize_tensor_input(index, list(item.shape))


def signature_names(interpreter: Any) -> dict[str, str]:
    """Return what the one signature of a file calls its tensors, by their names in the graph.

    Empty for a file with none or several, whose tensors keep the names of the graph.

    Args:
        interpreter: Of TensorFlow Lite.
    """
    signatures = interpreter.get_signature_list()
    if len(signatures) != 1:
        return {}
    runner = interpreter.get_signature_runner(next(iter(signatures)))
    details = {**runner.get_output_details(), **runner.get_input_details()}
    names = {str(detail["name"]): str(name) for name, detail in details.items()}
    return names if len(names) == len(set(names.values())) == len(details) else {}


def _index(
    details: Sequence[Mapping[str, Any]], names: Mapping[str, str], wanted: str, exported: Path
) -> int:
    for detail in details:
        if wanted in (names.get(detail["name"]), detail["name"]):
            return int(detail["index"])
    raise EngineRefusal(
        "the TensorFlow Lite file has changed since it was exported to ONNX: it no longer contains "
        f"the tensor {wanted!r}",
        hint=f"Delete the old export {exported}, and run again",
    )


def _threads_now() -> int | None:
    """Number of threads of this process, ``None`` where the system does not list them."""
    return sum(1 for _ in _TASKS.iterdir()) if _TASKS.is_dir() else None


def _told(error: BaseException) -> str:
    return f"TensorFlow Lite can't load the file. {says('It', first_line(error))}"
