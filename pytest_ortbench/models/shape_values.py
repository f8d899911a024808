"""Types of all values at given sizes, where some depend on what a graph computes of its shapes.

ONNX's inference follows the values of a few integer operators. Exporters write more: a size is cast
to float, scaled, rounded, sliced. Those few numbers are computed here with ONNX's reference
implementation, and inference is asked again, until nothing more is learnt.
"""

from __future__ import annotations

import math
from contextlib import suppress
from typing import TYPE_CHECKING

from pytest_ortbench.models.inspection import RANDOM_OPS, op_name
from pytest_ortbench.models.shape_inference import value_shape, with_shapes
from pytest_ortbench.models.stand_ins import put_stand_ins

if TYPE_CHECKING:
    import numpy as np
    import onnx

#: Values with more elements than this are no sizes.
_SMALL = 1024
#: Operators that make more of a few numbers than these are: they are computed only where inference
#: tells the size of what comes out.
_GENERATORS = frozenset(
    {
        *("AffineGrid", "BlackmanWindow", "CenterCropPad", "Col2Im", "ConstantOfShape", "Expand"),
        *("EyeLike", "HammingWindow", "HannWindow", "MaxUnpool", "OneHot", "Pad", "Range"),
        *("Resize", "Tile", "Upsample"),
    }
)
#: Each round costs a process; a chain of shape computations is as long as there are reshapes
#: behind one another whose sizes come from the one before.
_MOST_ROUNDS = 12


def inferred_types(proto: onnx.ModelProto) -> dict[str, onnx.ValueInfoProto] | None:
    """Return the type of every value of the main graph as far as it can be told, by name.

    Args:
        proto: The model, sizes in place of symbols, large weights dropped. It is left as it is.

    Returns:
        ``None`` if inference fails.
    """
    import onnx

    work = onnx.ModelProto()
    work.CopyFrom(proto)
    put_stand_ins(work)
    found: dict[str, onnx.ValueInfoProto] = {}
    for _ in range(_MOST_ROUNDS):
        answer = with_shapes(work, values=True)
        if answer is None:
            return found or None
        graph = answer.graph
        for value in (*graph.input, *graph.value_info, *graph.output):
            found[value.name] = value
        if all(_is_whole(found.get(name)) for node in work.graph.node for name in node.output):
            break
        known = _computed(work, found)
        if not known:
            break
        _replace(work, known, found)
    return found


def _is_whole(value: onnx.ValueInfoProto | None) -> bool:
    shape = None if value is None else value_shape(value)
    return shape is not None and all(isinstance(size, int) for size in shape)


def _computed(
    proto: onnx.ModelProto, types: dict[str, onnx.ValueInfoProto]
) -> dict[str, np.ndarray]:
    """Values of nodes that depend on constants and shapes only."""
    from onnx import TensorProto, numpy_helper

    values: dict[str, np.ndarray] = {}
    for tensor in proto.graph.initializer:
        if (
            math.prod(tensor.dims) <= _SMALL
            and tensor.data_location != TensorProto.EXTERNAL
            and tensor.data_type != TensorProto.STRING
        ):
            with suppress(ValueError, TypeError):  # data that does not fit its own shape
                values[tensor.name] = numpy_helper.to_array(tensor)
    constants = set(values)
    opsets = {item.domain: item.version for item in proto.opset_import}
    for node in proto.graph.node:
        result = _value_of(node, values, types, opsets)
        if result is not None:
            values[node.output[0]] = result
    return {name: value for name, value in values.items() if name not in constants}


def _value_of(
    node: onnx.NodeProto,
    values: dict[str, np.ndarray],
    types: dict[str, onnx.ValueInfoProto],
    opsets: dict[str, int],
) -> np.ndarray | None:
    import numpy as np
    from onnx.reference import ReferenceEvaluator

    if node.domain or len(node.output) != 1 or op_name(node) in RANDOM_OPS or _has_graph(node):
        return None
    if node.op_type == "Shape" and _is_whole(types.get(node.input[0])):
        whole = value_shape(types[node.input[0]]) or ()
        ends = {attribute.name: attribute.i for attribute in node.attribute}
        return np.array(whole[ends.get("start", 0) : ends.get("end")], dtype=np.int64)
    if not all(name in values for name in node.input if name):
        return None
    output = types.get(node.output[0])
    shape = None if output is None else value_shape(output)
    sizes = tuple(size for size in shape or () if isinstance(size, int))
    if math.prod(sizes) > _SMALL or (node.op_type in _GENERATORS and not _is_whole(output)):
        return None
    feeds = {name: values[name] for name in node.input if name}
    try:
        (result,) = ReferenceEvaluator(node, opsets=opsets).run(None, feeds)
    except Exception:  # noqa: BLE001  # whatever the reference can't do is just not known
        return None
    found = np.asarray(result)
    return found if found.size <= _SMALL and found.dtype.kind in "iufb" else None


def _has_graph(node: onnx.NodeProto) -> bool:
    return any(attribute.HasField("g") or attribute.graphs for attribute in node.attribute)


def _replace(
    proto: onnx.ModelProto,
    known: dict[str, np.ndarray],
    types: dict[str, onnx.ValueInfoProto],
) -> None:
    """Put constants in place of the nodes whose values are known."""
    from onnx import helper, numpy_helper

    kept = [node for node in proto.graph.node if node.output[0] not in known]
    needed = {name for node in kept for name in node.input}
    needed |= {name for node in kept if _has_graph(node) for name in known}
    needed |= {value.name for value in proto.graph.output}
    del proto.graph.node[:]
    proto.graph.node.extend(kept)
    for name, value in known.items():
        kind = helper.np_dtype_to_tensor_dtype(value.dtype)
        types[name] = helper.make_tensor_value_info(name, kind, value.shape)
        if name in needed:
            proto.graph.initializer.append(numpy_helper.from_array(value, name))
