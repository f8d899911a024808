"""What is wrong with labelled data, and what was found instead."""

from __future__ import annotations

from pytest_ortbench.core.errors import WorkerError
from pytest_ortbench.core.failures import case_error


def bad_data(message: str, hint: str = "") -> WorkerError:
    """Return an error about the user's data, to be raised."""
    return case_error(message, hint, kind="error", phase="task")


def array_words(value: object) -> str:
    """Return what an array is, in words: its type and shape; of anything else its type."""
    dtype, shape = getattr(value, "dtype", None), getattr(value, "shape", None)
    return type(value).__name__ if shape is None else f"{dtype} {list(shape)}"
