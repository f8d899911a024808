"""What is wrong with labelled data: one clear message."""

from __future__ import annotations

from pytest_ortbench.core.errors import WorkerError
from pytest_ortbench.core.outcome import Failure


def bad_data(message: str, hint: str = "") -> WorkerError:
    """Return an error about the user's data, to be raised."""
    return WorkerError(Failure(kind="error", phase="task", message=message, hint=hint))
