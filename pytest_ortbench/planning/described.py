"""Models that only ONNX Runtime can read get their interface from a session."""

from __future__ import annotations

import time
from pathlib import Path

from pytest_ortbench.core.errors import ModelError, WorkerError
from pytest_ortbench.core.model import Model
from pytest_ortbench.launch.launcher import Launcher
from pytest_ortbench.models.ort_file import is_ort_file, with_interface
from pytest_ortbench.schema.model_questions import DescribeModel

#: Loading a model to describe it.
_LOADING_S = 120.0


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
        question = DescribeModel(path=model.path, custom_ops=custom_ops)
        interface = launcher.ask(question, deadline=time.monotonic() + _LOADING_S)
    except WorkerError as error:
        failure = error.failure
        raise ModelError(failure.message, place=model.path, hint=failure.hint) from error
    return with_interface(model, interface.inputs, interface.outputs)
