"""Half precision to float32: every stored number, type and cast is widened."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from pytest_ortbench.convert.graph import Draft, count_types, graphs_within, load_typed, save_model

if TYPE_CHECKING:
    import onnx


def to_float32(source: Path, target: Path, *, keep_io: bool) -> Draft:
    """Write a model in float32.

    Args:
        source: A model with float16 or bfloat16 weights.
        target: Where the result goes.
        keep_io: Whether inputs and outputs keep their types, with casts inside.
    """
    from onnx import TensorProto

    narrow = (TensorProto.FLOAT16, TensorProto.BFLOAT16)
    model, notes = load_typed(source)
    before = count_types(model)
    if keep_io:
        _cast_at_the_border(model, narrow)
    for graph in graphs_within(model.graph):
        del graph.value_info[:]
        kept = _border(model) if keep_io and graph is model.graph else frozenset()
        for value in (*graph.input, *graph.output):
            if value.type.tensor_type.elem_type in narrow and value.name not in kept:
                value.type.tensor_type.elem_type = TensorProto.FLOAT
        for tensor in graph.initializer:
            _widen(tensor, narrow)
        for node in graph.node:
            _widen_attributes(node, narrow, kept)
    save_model(model, target)
    return Draft(before=before, notes=notes)


def _border(model: onnx.ModelProto) -> frozenset[str]:
    """Names of what is fed and returned; a weight may stand among the inputs and is neither."""
    stored = {tensor.name for tensor in model.graph.initializer}
    fed = {value.name for value in model.graph.input} - stored
    return frozenset(fed | {value.name for value in model.graph.output})


def _cast_at_the_border(model: onnx.ModelProto, narrow: tuple[int, ...]) -> None:
    """Put a cast behind every narrow input and in front of every narrow output."""
    from onnx import TensorProto, helper

    stored = {tensor.name for tensor in model.graph.initializer}
    renamed: dict[str, str] = {}
    casts = []
    for value in model.graph.input:
        if value.type.tensor_type.elem_type in narrow and value.name not in stored:
            renamed[value.name] = f"{value.name}_widened"
            casts.append(
                helper.make_node(
                    "Cast",
                    [value.name],
                    [renamed[value.name]],
                    name=f"{value.name}/widened",
                    to=TensorProto.FLOAT,
                )
            )
    for value in model.graph.output:
        if value.type.tensor_type.elem_type in narrow:
            inner = f"{value.name}_before_cast"
            renamed[value.name] = inner
            casts.append(
                helper.make_node(
                    "Cast",
                    [inner],
                    [value.name],
                    name=f"{value.name}/narrowed",
                    to=value.type.tensor_type.elem_type,
                )
            )
    for graph in graphs_within(model.graph):
        for node in graph.node:
            for names in (node.input, node.output):
                for index, name in enumerate(names):
                    names[index] = renamed.get(name, name)
    model.graph.node.extend(casts)


def _widen_attributes(
    node: onnx.NodeProto, narrow: tuple[int, ...], border: frozenset[str]
) -> None:
    from onnx import TensorProto

    for attribute in node.attribute:
        # Casts to an output that keeps its type stay as they are.
        if attribute.name in ("to", "dtype") and attribute.i in narrow:
            if not border.intersection(node.output):
                attribute.i = TensorProto.FLOAT
        elif attribute.HasField("t"):
            _widen(attribute.t, narrow)


def _widen(tensor: onnx.TensorProto, narrow: tuple[int, ...]) -> None:
    import numpy as np
    from onnx import numpy_helper

    if tensor.data_type not in narrow:
        return
    values = numpy_helper.to_array(tensor).astype(np.float32)
    tensor.CopyFrom(numpy_helper.from_array(values, tensor.name))
