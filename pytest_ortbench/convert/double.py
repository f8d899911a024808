"""Single precision to float64: every stored number, type and cast is widened, in memory."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from pytest_ortbench.convert.graph import graphs_within, load_typed
from pytest_ortbench.core.model_spec import ORT

if TYPE_CHECKING:
    import onnx

#: Weights beyond this are not doubled: one protobuf can't hold more, and memory may not either.
_LARGEST = 512 * 1024**2


def to_float64(source: Path) -> bytes:
    """Return a float32 model in float64.

    Raises:
        ValueError: if it is no ``.onnx`` file, or too large.
        Exception: what onnx raises if it can't be read.
    """
    from onnx import TensorProto

    if source.suffix.lower() == ORT:
        raise ValueError("a file in ONNX Runtime's own format can't be converted to float64")
    if source.stat().st_size > _LARGEST:
        raise ValueError("the model is too large to be converted to float64")
    model, _ = load_typed(source)
    if model.ByteSize() > _LARGEST:
        raise ValueError("the model is too large to be converted to float64")
    for graph in graphs_within(model.graph):
        del graph.value_info[:]
        for value in (*graph.input, *graph.output):
            kind = value.type.tensor_type
            if kind.elem_type == TensorProto.FLOAT:
                kind.elem_type = TensorProto.DOUBLE
        for tensor in graph.initializer:
            _widen(tensor)
        for node in graph.node:
            _widen_attributes(node)
    return bytes(model.SerializeToString())


def _widen_attributes(node: onnx.NodeProto) -> None:
    import numpy as np
    from onnx import TensorProto, helper, numpy_helper

    for attribute in list(node.attribute):
        if attribute.name in ("to", "dtype", "stash_type") and attribute.i == TensorProto.FLOAT:
            attribute.i = TensorProto.DOUBLE
        elif attribute.HasField("t"):
            _widen(attribute.t)
        elif node.op_type == "Constant" and attribute.name in ("value_float", "value_floats"):
            values = attribute.f if attribute.name == "value_float" else list(attribute.floats)
            tensor = numpy_helper.from_array(np.asarray(values, dtype=np.float64))
            attribute.CopyFrom(helper.make_attribute("value", tensor))


def _widen(tensor: onnx.TensorProto) -> None:
    from onnx import TensorProto, numpy_helper

    if tensor.data_type == TensorProto.FLOAT:
        values = numpy_helper.to_array(tensor).astype("float64")
        tensor.CopyFrom(numpy_helper.from_array(values, tensor.name))
