"""Export from TensorFlow by tf2onnx: the traced function that an application calls."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pytest_ortbench.engines.entry import LoadedSource, Made
from pytest_ortbench.engines.seam import EngineRefusal
from pytest_ortbench.engines.tensorflow.worker.conversion import write_converted
from pytest_ortbench.engines.tensorflow.worker.files import OTHER_EXPORT, imported, sentence_said
from pytest_ortbench.engines.tensorflow.worker.served import Served, traced
from pytest_ortbench.worker.exporting import versions_of

#: Distributions that decide on the file; TensorFlow comes under two names.
PACKAGES = ("tensorflow", "tensorflow-cpu", "keras", "tf2onnx", "onnx")


def export_tensorflow(loaded: LoadedSource, path: Path, _settings: Mapping[str, str]) -> Made:
    """Write the ONNX file of a Keras model, a SavedModel or a function.

    Args:
        loaded: The source.
        path: The file to write.

    Raises:
        EngineRefusal: if it can't be traced, or has operators that can't be converted.
        ImportError: if tf2onnx is not installed.
    """
    import tf2onnx

    tensorflow = imported()
    function = traced(loaded)
    try:
        graph = _converted(tensorflow, function)
    except (KeyError, RuntimeError, TypeError, ValueError) as error:
        raise EngineRefusal(
            f"tf2onnx {tf2onnx.__version__} can't convert the model. {sentence_said(error)}",
            hint=OTHER_EXPORT,
        ) from error
    write_converted(graph, path, loaded.path.name, loaded.dynamic)
    return made(_feeds(tensorflow, loaded, function))


def made(feeds: Mapping[str, Any]) -> Made:
    """Return what tf2onnx did, with the versions of all that took part."""
    versions = {name: version for name, version in versions_of(PACKAGES).items() if version}
    return Made(exporter="tf2onnx", versions=versions, feeds=feeds)


def _converted(tensorflow: Any, function: Served) -> Any:
    from tf2onnx import tf_loader
    from tf2onnx.tfonnx import process_tf_graph

    concrete = function.function
    count = len(concrete.inputs) - len(concrete.captured_inputs)
    inputs = [tensor.name for tensor in concrete.inputs[:count]]
    outputs = [tensor.name for tensor in concrete.outputs]
    frozen, tables = tf_loader.from_trackable(
        function.owner, concrete, inputs, outputs, large_model=False
    )
    with tensorflow.device("/cpu:0"), tensorflow.Graph().as_default() as graph:
        tensorflow.import_graph_def(frozen, name="")
        return process_tf_graph(
            graph,
            input_names=inputs,
            output_names=outputs,
            initialized_tables=tables,
            tensors_to_rename=dict(
                zip([*inputs, *outputs], [*function.inputs, *function.outputs], strict=True)
            ),
        )


def _feeds(tensorflow: Any, loaded: LoadedSource, function: Served) -> dict[str, Any]:
    """Return the example inputs under the names of the ONNX file."""
    if loaded.example is None:
        return {}
    example = loaded.example
    arrays = [
        item.numpy() if hasattr(item, "numpy") else item
        for item in tensorflow.nest.flatten(example)
    ]
    return dict(zip(function.inputs, arrays, strict=True))
