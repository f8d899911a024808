"""Code of the user's: files are loaded, functions called, and whatever they raise has a place."""

from __future__ import annotations

import importlib.util
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

from pytest_ortbench.core.errors import WorkerError
from pytest_ortbench.core.failures import case_error

#: What the modules are called whose classes need no module: those of the user's files join them.
_BARE = {"builtins"}


def load_file(path: Path) -> ModuleType:
    """Run a Python file as a module; what lies beside it can be imported by it.

    Raises:
        WorkerError: if it can't be read, or raises.
    """
    name = f"ortbench_stages_{path.stem}"
    _BARE.add(name)
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None or not path.is_file():
        if path.exists():
            is_folder = path.is_dir()
            raise stage_error(
                f"{path} is {'a folder' if is_folder else 'not a Python file'}",
                "Name a Python file in it" if is_folder else "Name a file that ends in .py",
            )
        raise stage_error(
            f"{path} does not exist where this case is measured",
            "If that is a container or another machine, copy the file to this path there. If not, "
            "correct the path",
        )
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    # As for a script: first, so that a module beside it wins over an installed one.
    sys.path.insert(0, str(path.parent))
    call(path, path.name, spec.loader.exec_module, module)
    return module


def call(path: Path, name: str, function: Callable[..., Any], *arguments: object) -> Any:
    """Call a function of the user's.

    Args:
        path: The user's file.
        name: What is called, for the message.
        function: It.
        arguments: What it is given.

    Raises:
        WorkerError: with the place in the user's file, if it raises.
    """
    try:
        return function(*arguments)
    except (Exception, SystemExit) as error:
        raise failed(path, name, error) from error


def class_of(value: object) -> str:
    """Return the class of a value, for people: a class of the user's file or of Python is bare."""
    kind = type(value)
    bare = kind.__module__ in _BARE
    return kind.__qualname__ if bare else f"{kind.__module__}.{kind.__qualname__}"


def failed(path: Path, name: str, error: BaseException) -> WorkerError:
    """Say where the user's code went wrong, on one line."""
    line = _line(path, error)
    at = f"{path.name}:{line}: " if line else ""
    message = " ".join(str(error).split())
    return stage_error(
        f"{at}{name} raised {type(error).__name__}{f': {message}' if message else ''}",
        f"Correct {path}",
    )


def _line(path: Path, error: BaseException) -> int | None:
    """The innermost line of the user's own file."""
    if isinstance(error, SyntaxError) and error.filename == str(path):
        return error.lineno
    lines = [
        frame.lineno
        for frame in traceback.extract_tb(error.__traceback__)
        if frame.filename == str(path)
    ]
    return lines[-1] if lines else None


def stage_error(message: str, hint: str = "") -> WorkerError:
    """A failure of the user's code."""
    return case_error(message, hint, kind="error", phase="stages")
