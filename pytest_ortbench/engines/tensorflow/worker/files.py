"""Files of TensorFlow: a Keras file is loaded in its safe mode, a SavedModel is a program."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from pytest_ortbench.core.errors import first_line, says
from pytest_ortbench.engines.entry import LoadedSource
from pytest_ortbench.engines.seam import EngineRefusal


def imported() -> Any:
    """Return the package ``tensorflow``, imported without its messages of progress.

    Raises:
        ImportError: if it is not installed.
    """
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
    os.environ.setdefault("KERAS_BACKEND", "tensorflow")
    import tensorflow  # the measured thing itself, so its import is timed

    return tensorflow


def load_saved(path: Path) -> LoadedSource:
    """Return what a Keras file or the folder of a SavedModel holds.

    Raises:
        EngineRefusal: if it can't be loaded, or not without running code that it holds.
        ImportError: if TensorFlow is not installed.
    """
    tensorflow = imported()
    if path.is_dir():
        try:
            return LoadedSource(path=path, model=tensorflow.saved_model.load(str(path)))
        except (OSError, ValueError, tensorflow.errors.OpError) as error:
            raise EngineRefusal(
                f"TensorFlow can't load the folder {str(path)!r} as a SavedModel. "
                f"{sentence_said(error)}",
                hint="If the folder was copied or downloaded, copy all of it again. If a script "
                "made it, save the model again with tensorflow.saved_model.save",
            ) from error
    import keras

    try:
        model = keras.saving.load_model(path, safe_mode=True, compile=False)
    except (OSError, TypeError, ValueError) as error:
        raise EngineRefusal(
            f"Keras can't load {str(path)!r}. {sentence_said(error)}",
            hint="Keras files are read in safe mode, without the classes of your project. If the "
            "model has Lambda layers or custom classes, measure a function that returns the model, "
            "e.g. net.py:build. If not, copy or save the file again",
        ) from error
    return LoadedSource(path=path, model=model)


#: The next step where tf2onnx can't convert something.
OTHER_TOOL = "If you can't, export the model with another tool, and measure that ONNX file"
OTHER_EXPORT = f"Change what tf2onnx names in the model. {OTHER_TOOL}"


def sentence_said(error: BaseException) -> str:
    """Return the first sentence of an error as its words; Keras has a configuration follow."""
    return says("It", first_line(error).partition(". ")[0])
