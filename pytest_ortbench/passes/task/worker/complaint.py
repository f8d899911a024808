"""What is wrong with labelled data, and what was found instead."""

from __future__ import annotations

from pytest_ortbench.core.errors import WorkerError
from pytest_ortbench.core.outcome import Failure


def bad_data(message: str, hint: str = "") -> WorkerError:
    """Return an error about the user's data, to be raised."""
    return WorkerError(Failure(kind="error", phase="task", message=message, hint=hint))


def array_words(value: object) -> str:
    """Return what an array is, in words: its type and shape; of anything else its type."""
    dtype, shape = getattr(value, "dtype", None), getattr(value, "shape", None)
    return type(value).__name__ if shape is None else f"{dtype} {list(shape)}"
