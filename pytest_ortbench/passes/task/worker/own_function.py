"""The function of the user's that an option names."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pytest_ortbench.core.errors import nearest
from pytest_ortbench.passes.task.worker.complaint import bad_data
from pytest_ortbench.worker.user_code import load_file


def own_function(path: Path, name: str) -> Callable[..., Any]:
    """Load a file of the user's, and return its function.

    Args:
        path: The file.
        name: What the function is called.

    Raises:
        WorkerError: if the file can't be loaded, or has no such function.
    """
    module = load_file(path)
    held = getattr(module, name, None)
    if callable(held):
        return held  # type: ignore[no-any-return]
    known = [found for found, value in vars(module).items() if inspect.isfunction(value)]
    near = nearest(name, known)
    raise bad_data(
        f"{name!r} in {path.name} is a value of type {type(held).__name__}, not a function"
        if hasattr(module, name)
        else f"{path.name} has no function {name!r}",
        f"Did you mean {near!r}?"
        if near
        else f"Name a function of the file, e.g. {path.name}:{known[0]}"
        if known
        else "Define the function at the top level of the file",
    )
