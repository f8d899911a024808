"""A graph of tf2onnx becomes an ONNX file, whose open dimensions have names that stay."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from pytest_ortbench.engines.seam import EngineRefusal
from pytest_ortbench.engines.tensorflow.worker.files import OTHER_TOOL

#: The name of an open first dimension, which is the batch wherever a network is trained in batches.
BATCH = "batch"
#: What tf2onnx puts before the names of operators of TensorFlow Lite.
_OF_LITE = "TFL_"


def write_converted(
    graph: Any, path: Path, title: str, dynamic: Mapping[str, Mapping[int, str]] | None
) -> None:
    """Write what tf2onnx converted.

    Args:
        graph: Its graph.
        path: The file to write.
        title: What it was converted from, in words.
        dynamic: Names of open dimensions that the user gives, by input.

    Raises:
        EngineRefusal: if operators were left that ONNX does not have.
    """
    from tf2onnx import optimizer, schemas

    model = optimizer.optimize_graph(graph).make_model(f"converted from {title}")
    versions = {entry.domain: entry.version for entry in model.opset_import}
    lacking = sorted(
        {
            node.op_type.removeprefix(_OF_LITE)
            for node in _nodes(model.graph)
            if schemas.get_schema(node.op_type, versions.get(node.domain, 1), node.domain) is None
        }
    )
    if lacking:
        word = "operator" if len(lacking) == 1 else "operators"
        raise EngineRefusal(
            f"tf2onnx can't convert the {word} {', '.join(lacking)} to opset "
            f"{versions.get('', 0)} of ONNX",
            hint=f"Replace the {word} in the model. {OTHER_TOOL}",
        )
    name_dimensions(model.graph, dynamic or {})
    path.write_bytes(model.SerializeToString())


def name_dimensions(graph: Any, dynamic: Mapping[str, Mapping[int, str]]) -> None:
    """Name the open dimensions of inputs, and take the names from those of outputs.

    tf2onnx numbers them anew in each conversion, so rows would never be the same twice.

    Args:
        graph: Of the ONNX file.
        dynamic: Names that the user gives, by input and axis.
    """
    for value in graph.input:
        given = dynamic.get(value.name, {})
        for axis, size in enumerate(value.type.tensor_type.shape.dim):
            if size.HasField("dim_value"):
                continue
            own = BATCH if axis == 0 else f"{value.name.partition(':')[0]}_{axis}"
            size.dim_param = given.get(axis, own)
    for value in graph.output:
        for size in value.type.tensor_type.shape.dim:
            if not size.HasField("dim_value"):
                size.ClearField("dim_param")


def _nodes(graph: Any) -> Iterator[Any]:
    """Yield the nodes of a graph, and of the graphs inside them."""
    for node in graph.node:
        yield node
        for attribute in node.attribute:
            if attribute.HasField("g"):
                yield from _nodes(attribute.g)
