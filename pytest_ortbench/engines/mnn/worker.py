"""MNN: the file converted once, and one module for each session."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from threading import Lock
from typing import Any

from pytest_ortbench.core.errors import says
from pytest_ortbench.core.own_folder import OwnFolder
from pytest_ortbench.engines.seam import (
    NUMPY_TYPES,
    Engine,
    EngineRefusal,
    Inference,
    require_types,
    without_engine,
)

#: What MNN computes the element types of ONNX in, as numpy spells it; it widens or narrows others.
_COMPUTED_IN = {
    "tensor(float)": "float32",
    "tensor(float16)": "float32",
    "tensor(double)": "float32",
    "tensor(int32)": "int32",
    "tensor(int64)": "int32",
    "tensor(int16)": "int32",
    "tensor(int8)": "int32",
    "tensor(uint16)": "int32",
    "tensor(uint8)": "int32",
    "tensor(bool)": "int32",
}
#: The converter itself: the command ``mnnconvert`` installs a package, and reports its use.
_CONVERT = "import sys, _tools; sys.exit(not _tools.mnnconvert(sys.argv))"
_GELU = "useGeluApproximation"
_LACKING = re.compile(r"These Op Not Support: *(.*)")
#: What stands before the text of a line of its log.
_STAMP = re.compile(r"^\[[\d:]+\] *[^ ]*:\d+: *")


class Mnn(Engine):
    """A model that MNN converted into its own form."""

    _nn: Any = None  # the package has no types
    _expr: Any = None
    _converted: Path | None = None
    _own: OwnFolder | None = None

    def load(self) -> str:
        """Import ``MNN``, and return its version."""
        import MNN  # the measured thing itself, so its import is timed

        self._nn, self._expr = MNN.nn, MNN.expr
        return str(MNN.version())

    def compile(self) -> int | None:
        """Convert the file in a process of its own, and return the size of what came of it."""
        require_types(self.task, "MNN", _COMPUTED_IN)
        path = self._place() / "model.mnn"
        if not path.is_file():
            making = path.with_suffix(".making")
            self._convert(making)
            making.replace(path)
        self._converted = path
        return path.stat().st_size

    def open(self) -> Inference:
        """Load the converted model, and return what feeds it and reads its outputs."""
        settings = {
            "backend": 0,
            "numThread": self.task.threads,
            "precision": self.task.options.get("precision", "high"),
        }
        names = [item.name for item in self.task.inputs]
        module = self._nn.load_module_from_file(
            str(self._converted),
            names,
            [item.name for item in self.task.outputs],
            runtime_manager=self._nn.create_runtime_manager((settings,)),
        )
        return self._inference(module)

    def close(self) -> None:
        """Let go of what was converted."""
        if self._own is not None:
            self._own.close()
            self._own = None

    def _inference(self, module: Any) -> Inference:
        const, layout, forward = self._expr.const, self._expr.NCHW, module.forward
        kinds = {"float32": self._expr.float, "int32": self._expr.int}
        computed = [(item.name, _COMPUTED_IN[item.type]) for item in self.task.inputs]
        feeding = [(name, type_, kinds[type_]) for name, type_ in computed]
        given = [NUMPY_TYPES[item.type] for item in self.task.outputs]
        # A module serves one caller at a time. Others lose nothing by waiting: *seen*, MNN holds
        # the interpreter while it computes.
        lock = Lock()

        def infer(feeds: Mapping[str, Any]) -> Sequence[Any]:
            values = [
                const(feeds[name].astype(type_, copy=False), list(feeds[name].shape), layout, kind)
                for name, type_, kind in feeding
            ]
            with lock:
                results = forward(values)
                if len(results) != len(given):
                    raise EngineRefusal(
                        "MNN returned no outputs, because an operator failed",
                        kind="error",
                        hint=without_engine("mnn"),
                    )
                # What it reads is memory of the module, which the next inference writes over.
                return [
                    result.read().astype(type_)
                    for result, type_ in zip(results, given, strict=True)
                ]

        return infer

    def _convert(self, path: Path) -> None:
        asked = self.task.options.get(_GELU, "0")
        arguments = ["mnnconvert", "-f", "ONNX", "--modelFile", str(self.task.path)]
        arguments += ["--MNNModel", str(path), "--bizCode", "MNN", f"--{_GELU}", asked]
        done = subprocess.run(
            [sys.executable, "-c", _CONVERT, *arguments[1:]],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            check=False,
        )
        if not path.is_file():
            raise EngineRefusal(conversion_refusal(done.stdout, done.returncode))

    def _place(self) -> Path:
        if self.task.folder is not None:
            return self.task.folder
        self._own = OwnFolder("mnn")
        return self._own.path


def conversion_refusal(log: str, status: int) -> str:
    """Return in one line why the converter wrote nothing.

    Args:
        log: What it printed.
        status: How its process ended; negative for a signal.
    """
    lines = [_STAMP.sub("", line).strip() for line in log.splitlines() if line.strip()]
    for line in lines:
        lacking = _LACKING.match(line)
        if lacking is not None:
            names = [name.removeprefix("ONNX::") for name in lacking[1].split()]
            word = "operator" if len(names) == 1 else "operators"
            return f"MNN lacks the {word} {', '.join(names)}. {says('It', line)}"
    if status < 0:
        return f"MNN's converter ended by signal {-status}"
    return f"MNN can't convert the model. {says('It', lines[-1] if lines else '')}"
