"""Models whose tensors claim what the file does not hold, each in a place of its own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import onnx
from onnx import TensorProto, helper

from tests.models.graphs import BOOL, FLOAT, INT64, STRING, model, node, value

_MANY = 2**62


@dataclass(frozen=True, kw_only=True)
class FalseClaim:
    """A model, and what the message about it must name."""

    build: Callable[[], onnx.ModelProto]
    what: str


def stored(
    name: str, sizes: Sequence[int], kind: int = FLOAT, raw: bytes | None = bytes(16)
) -> onnx.TensorProto:
    """A tensor with these sizes, whatever its data are."""
    tensor = onnx.TensorProto(name=name, data_type=kind)
    tensor.dims.extend(sizes)
    if raw is not None:
        tensor.raw_data = raw
    return tensor


def with_weight(*tensors: onnx.TensorProto) -> onnx.ModelProto:
    """A Relu beside weights that it does not read."""
    return model([node("Relu", ["x"], ["y"])], [value("x", [1, 4])], [value("y", [1, 4])], tensors)


def _added(tensor: onnx.TensorProto) -> onnx.ModelProto:
    return model(
        [node("Add", ["x", "w"], ["y"])], [value("x", [1, 4])], [value("y", None)], [tensor]
    )


def _constant() -> onnx.NodeProto:
    found = node("Constant", [], ["c"])
    found.attribute.add(name="value", type=onnx.AttributeProto.TENSOR).t.CopyFrom(
        stored("", [_MANY] * 20)
    )
    return found


def _in_constant() -> onnx.ModelProto:
    nodes = [_constant(), node("Add", ["x", "c"], ["y"])]
    return model(nodes, [value("x", [1, 4])], [value("y", None)])


def _in_branch() -> onnx.ModelProto:
    branch = helper.make_graph(
        [node("Add", ["x", "inner"], ["t"])], "then", [], [value("t", None)],
        [stored("inner", [_MANY] * 20)],
    )  # fmt: skip
    other = helper.make_graph([node("Relu", ["x"], ["e"])], "else", [], [value("e", None)])
    return model(
        [node("If", ["c"], ["y"], then_branch=branch, else_branch=other)],
        [value("x", [1, 4])],
        [value("y", None)],
        [stored("c", [], BOOL, b"\0")],
    )


def _in_function() -> onnx.ModelProto:
    body = [_constant(), node("Add", ["a", "c"], ["b"])]
    proto = model(
        [helper.make_node("F", ["x"], ["y"], domain="own")],
        [value("x", [1, 4])],
        [value("y", None)],
        opsets={"": 17, "own": 1},
    )
    imports = [helper.make_opsetid("", 17)]
    proto.functions.append(helper.make_function("own", "F", ["a"], ["b"], body, imports))
    return proto


def _sparse(sizes: Sequence[int], values: Sequence[int], indices: Sequence[int]) -> onnx.ModelProto:
    proto = with_weight()
    sparse = proto.graph.sparse_initializer.add()
    sparse.values.CopyFrom(stored("sp", values))
    sparse.indices.CopyFrom(stored("", indices, INT64, bytes(32)))
    sparse.dims.extend(sizes)
    return proto


def _external(sizes: Sequence[int], **entries: str) -> onnx.ModelProto:
    tensor = stored("w", sizes, raw=None)
    tensor.data_location = TensorProto.EXTERNAL
    for key, text in {"location": "w.bin", **entries}.items():
        tensor.external_data.add(key=key, value=text)
    return _added(tensor)


def _strings() -> onnx.ModelProto:
    tensor = stored("w", [2**50], STRING, raw=None)
    tensor.string_data.append(b"a")
    return with_weight(tensor)


def _floats() -> onnx.ModelProto:
    tensor = stored("w", [2**40], raw=None)
    tensor.float_data.extend([1.0, 2.0])
    return _added(tensor)


#: By a name that can be part of a file's. Those with external data want ``w.bin`` of 64 bytes.
FALSE_CLAIMS: dict[str, FalseClaim] = {
    "twenty-axes": FalseClaim(
        build=lambda: with_weight(stored("w", [_MANY] * 20)), what="weight 'w' claims the sizes"
    ),
    "three-hundred-axes": FalseClaim(
        build=lambda: with_weight(stored("w", [_MANY] * 300)), what="(300 axes)"
    ),
    "wraps-to-zero": FalseClaim(
        build=lambda: _added(stored("w", [2**32, 2**32])), what="weight 'w'"
    ),
    "one-axis": FalseClaim(build=lambda: _added(stored("w", [_MANY])), what="weight 'w'"),
    "short": FalseClaim(build=lambda: _added(stored("w", [10**6])), what="stores only 16 for it"),
    "negative": FalseClaim(build=lambda: _added(stored("w", [-1, 4])), what="negative"),
    "twice-negative": FalseClaim(build=lambda: _added(stored("w", [-2, -2])), what="negative"),
    "floats": FalseClaim(build=_floats, what="stores only 2 for it"),
    "strings": FalseClaim(build=_strings, what="stores only 1 for it"),
    "constant": FalseClaim(build=_in_constant, what="the constant of node 'c' (Constant)"),
    "branch": FalseClaim(build=_in_branch, what="weight 'inner'"),
    "function": FalseClaim(build=_in_function, what="the constant of node 'c' (Constant)"),
    "sparse-sizes": FalseClaim(
        build=lambda: _sparse([_MANY] * 5, [4], [4]), what="sparse weight 'sp'"
    ),
    "sparse-values": FalseClaim(
        build=lambda: _sparse([4], [_MANY] * 5, [4]), what="sparse weight 'sp'"
    ),
    "sparse-indices": FalseClaim(
        build=lambda: _sparse([4], [4], [400]), what="the list of indices of sparse weight 'sp'"
    ),
    "external": FalseClaim(build=lambda: _external([2**40]), what="'w.bin' is truncated"),
    "external-length": FalseClaim(
        build=lambda: _external([4], length=str(10**18)), what="'w.bin' is truncated"
    ),
    "external-claim": FalseClaim(
        build=lambda: _external([_MANY] * 4, length="16"), what="weight 'w' claims the sizes"
    ),
}
