"""Shapes of intermediate values, inferred in a process of its own.

ONNX's inference is native code that a model file can crash (*seen*: a segmentation fault on a
LabelEncoder whose input has no known type, as after an operator of another domain); that must cost
the shapes only, not the run.
"""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import onnx

Shape = tuple[int | str | None, ...]

#: Reads a model from standard input and writes it back with shapes. Arguments: the most memory that
#: it may take, and whether it follows the values of shape computations too.
_PROGRAM = """
import sys
try:
    import resource
    resource.setrlimit(resource.RLIMIT_AS, (int(sys.argv[1]),) * 2)
except (ImportError, ValueError, OSError):
    pass
import onnx
model = onnx.load_model_from_string(sys.stdin.buffer.read())
model = onnx.shape_inference.infer_shapes(model, data_prop=sys.argv[2] == "values")
sys.stdout.buffer.write(model.SerializeToString())
"""
_TIMEOUT_S = 60
#: A graph without its weights needs a few megabytes, but inference spells out every value of a
#: Range whose end the file may have set to 2^62.
_MOST_BYTES = 2 * 2**30


def inferred_shapes(proto: onnx.ModelProto) -> dict[str, Shape]:
    """Return the shape of every value that inference finds, in subgraphs too, by name.

    Args:
        proto: The model; large weights should have been dropped from it.

    Returns:
        Empty if inference fails, crashes or takes too long. A name that has different shapes in
        different subgraphs is left out.
    """
    from pytest_ortbench.models.inspection import all_graphs

    answer = with_shapes(proto)
    if answer is None:
        return {}
    found: dict[str, Shape | None] = {}
    for graph in all_graphs(answer):
        for value in (*graph.value_info, *graph.output):
            shape = value_shape(value)
            if shape is not None:
                found[value.name] = shape if found.get(value.name, shape) == shape else None
    return {name: shape for name, shape in found.items() if shape is not None}


def with_shapes(proto: onnx.ModelProto, *, values: bool = False) -> onnx.ModelProto | None:
    """Return the model with the types of its values as far as they can be inferred.

    Args:
        proto: The model; large weights should have been dropped from it.
        values: Whether to follow the values of shape computations too, which takes sizes in place
            of symbols to be of use.

    Returns:
        ``None`` if inference fails, crashes or takes too long.
    """
    import onnx

    try:
        data = proto.SerializeToString()
        room = _MOST_BYTES + 8 * len(data)
        done = subprocess.run(
            [sys.executable, "-c", _PROGRAM, str(room), "values" if values else "shapes"],
            input=data,
            capture_output=True,
            timeout=_TIMEOUT_S,
            check=False,
        )
        if done.returncode != 0:
            return None
        return onnx.load_model_from_string(done.stdout)
    except (OSError, ValueError, RuntimeError, subprocess.TimeoutExpired):
        return None


def value_shape(value: onnx.ValueInfoProto) -> Shape | None:
    """Return the declared shape of a tensor, ``None`` if the rank is unknown or it is none."""
    if not value.type.HasField("tensor_type") or not value.type.tensor_type.HasField("shape"):
        return None
    return tuple(
        dimension.dim_value
        if dimension.HasField("dim_value") and dimension.dim_value >= 0
        else (dimension.dim_param or None)
        for dimension in value.type.tensor_type.shape.dim
    )
