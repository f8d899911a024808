"""Models that only ONNX Runtime can read get their interface from a session."""

from __future__ import annotations

from pathlib import Path

from pytest_ortbench.core.errors import ModelError, WorkerError
from pytest_ortbench.core.model import Model
from pytest_ortbench.launch.launcher import Launcher
from pytest_ortbench.models.ort_file import is_ort_file, with_interface


def described(model: Model, launcher: Launcher, custom_ops: tuple[str, ...] = ()) -> Model:
    """Return the model with what it takes and gives; one that was read is returned as it is.

    Args:
        model: As resolved.
        launcher: Starts the worker that loads it.
        custom_ops: Custom operator libraries that it needs.

    Raises:
        ModelError: if it can't be loaded.
    """
    if not is_ort_file(Path(model.path)):
        return model
    try:
        found = launcher.describe(Path(model.path), custom_ops)
    except WorkerError as error:
        failure = error.failure
        raise ModelError(failure.message, place=model.path, hint=failure.hint) from error
    return with_interface(model, found.inputs, found.outputs)
