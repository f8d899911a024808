"""Export from TensorFlow Lite by tf2onnx; quantised inputs and outputs keep their type."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pytest_ortbench.engines.entry import LoadedSource, Made
from pytest_ortbench.engines.seam import EngineRefusal
from pytest_ortbench.engines.tensorflow.export import made
from pytest_ortbench.engines.tensorflow.worker.conversion import write_converted
from pytest_ortbench.engines.tensorflow.worker.files import OTHER_EXPORT, imported, sentence_said

#: Stands behind the first four bytes of a file.
_MARK = b"TFL3"


def export_tflite(loaded: LoadedSource, path: Path, _settings: Mapping[str, str]) -> Made:
    """Write the ONNX file of a ``.tflite`` file, under the names of its signature.

    Args:
        loaded: The source.
        path: The file to write.

    Raises:
        EngineRefusal: if the file can't be read, or has operators that can't be converted.
        ImportError: if TensorFlow or tf2onnx is not installed.
    """
    imported()
    import tf2onnx
    from tf2onnx.tfonnx import process_tf_graph

    data = loaded.path.read_bytes()
    if data[4:8] != _MARK:
        raise EngineRefusal(
            f"{str(loaded.path)!r} is not a TensorFlow Lite model: it lacks the mark TFL3 at its "
            "beginning",
            hint="If the file was copied or downloaded, do that again. If it has another format, "
            "name a file that tensorflow.lite.TFLiteConverter wrote",
        )
    try:
        names = names_of(data)
    except (IndexError, ValueError, struct.error) as error:
        raise EngineRefusal(
            f"the TensorFlow Lite file {str(loaded.path)!r} is truncated or damaged",
            hint="If the file was copied or downloaded, do that again. If a script made it, write "
            "it again with tensorflow.lite.TFLiteConverter",
        ) from error
    try:
        graph = process_tf_graph(
            None,
            tflite_path=str(loaded.path),
            tensors_to_rename=names,
        )
    except (KeyError, RuntimeError, TypeError, ValueError) as error:
        raise EngineRefusal(
            f"tf2onnx {tf2onnx.__version__} can't convert {str(loaded.path)!r}. "
            f"{sentence_said(error)}",
            hint=OTHER_EXPORT,
        ) from error
    write_converted(graph, path, loaded.path.name, loaded.dynamic)
    return made({})


def names_of(data: bytes) -> dict[str, str]:
    """Return what the one signature of a file calls its tensors, by their names in the graph.

    Empty for a file with none or several. The interpreter gives the same names.

    Args:
        data: The file.
    """
    from tf2onnx.tflite.Model import Model

    model: Any = Model.GetRootAs(data, 0)
    if model.SignatureDefsLength() != 1:
        return {}
    signature = model.SignatureDefs(0)
    tensors = model.Subgraphs(signature.SubgraphIndex())
    maps = [signature.Inputs(index) for index in range(signature.InputsLength())]
    maps += [signature.Outputs(index) for index in range(signature.OutputsLength())]
    names = {
        tensors.Tensors(item.TensorIndex()).Name().decode(): item.Name().decode() for item in maps
    }
    return names if len(names) == len(set(names.values())) == len(maps) else {}
