"""Operators that are defined in Python, by functions that onnxruntime-extensions calls."""

from __future__ import annotations

import sys
from functools import cache
from pathlib import Path
from types import ModuleType

from pytest_ortbench.core.errors import WorkerError, first_line, says, supply_step
from pytest_ortbench.core.failures import case_error
from pytest_ortbench.worker.user_code import load_file

#: The package whose library calls them.
PACKAGE = "onnxruntime-extensions"


@cache
def library_for(path: str) -> str:
    """Run a Python file that defines operators, and return the library that calls them.

    It runs once in a process: its operators are then known to the library for good.

    Args:
        path: The file.

    Raises:
        WorkerError: if the package is not installed, or the file can't be run or defines none.
    """
    try:
        import onnxruntime_extensions as extensions
    except ImportError as error:
        raise _failed(
            "unavailable",
            f"operators of {Path(path).name} need {PACKAGE}, which {sys.executable} can't import. "
            f"{says('Python', first_line(error))}",
            _supply(error),
        ) from error
    try:
        module = load_file(Path(path))
    except WorkerError as error:
        raise _failed("error", error.failure.message, error.failure.hint) from error
    if not _operators(module, extensions):
        raise _failed(
            "error",
            f"{Path(path).name} defines no operator",
            "Put @onnx_op(op_type=…, inputs=[…], outputs=[…]) of onnxruntime_extensions above a "
            "function",
        )
    return str(extensions.get_library_path())


def _supply(error: ImportError) -> str:
    if sys.flags.isolated and isinstance(error, ModuleNotFoundError):  # an environment that we made
        return f"Write +{PACKAGE} behind this runtime in --ort-runtimes"
    return supply_step(error, f"Run: {sys.executable} -m pip install {PACKAGE}", PACKAGE)


def _operators(module: ModuleType, extensions: ModuleType) -> list[str]:
    """Names of what the decorator made of functions of a module."""
    made = [
        value
        for value in vars(module).values()
        if type(value).__module__.startswith(f"{extensions.__name__}.")
    ]
    return [str(value.op_type) for value in made if hasattr(value, "op_type")]


def _failed(kind: str, message: str, hint: str) -> WorkerError:
    return case_error(message, hint, kind=kind, phase="session")
