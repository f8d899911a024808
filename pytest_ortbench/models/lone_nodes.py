"""Models of one node each, as it is and changed in one thing, to see what a provider takes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_ortbench.core.element_types import ELEMENT_NAMES
from pytest_ortbench.models.inspection import is_compiled, op_name, subgraphs, without_functions
from pytest_ortbench.models.model_file import read_model_file
from pytest_ortbench.models.shape_inference import with_shapes

if TYPE_CHECKING:
    import numpy as np
    import onnx

#: A constant that is larger is not copied into a model of one node.
_MOST_ELEMENTS = 2**24
#: Weights from here on are dropped before shapes are inferred.
_SMALL_BYTES = 4096
#: Types to try in place of a node's own.
_TYPES = ("float", "int32", "float16", "int64", "uint8")
#: How many older versions of an operator are tried.
_OLDER = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class LoneNode:
    """One node as a model of its own.

    Attributes:
        change: What was changed: ``""`` (nothing), ``types`` or ``opset``.
        detail: To what: ``int64 → int32``, ``opset 12``; empty without a change.
        proto: The model.
    """

    change: str
    detail: str
    proto: onnx.ModelProto


class LoneNodes:
    """Takes nodes out of a model.

    Args:
        path: The model's file.
        sizes: Sizes of its symbolic dimensions.
    """

    def __init__(self, path: Path, sizes: Mapping[str, int]) -> None:
        proto = without_functions(read_model_file(path).proto)
        self._opsets = {entry.domain: entry for entry in proto.opset_import}
        self._ir_version = proto.ir_version
        self._nodes = list(proto.graph.node)
        self._constants = {tensor.name: tensor for tensor in proto.graph.initializer}
        self._types = _types_of(proto, sizes)

    def of(self, op: str, name: str) -> Iterator[LoneNode]:
        """Yield a node alone, as it is and with changes; nothing where it can't stand alone.

        Args:
            op: Its operator, with the domain in front where that is not the default one.
            name: Its name; empty for the first of the operator.
        """
        node = next(
            (each for each in self._nodes if op_name(each) == op and name in ("", each.name)), None
        )
        if node is None or is_compiled(node) or any(subgraphs(node)):
            return
        version = self._version(node.domain)
        plain = self._alone(node, version, {})
        if plain is None:
            return
        yield LoneNode(change="", detail="", proto=plain)
        for own, other in self._other_types(node, version):
            changed = self._alone(node, version, {own: other})
            if changed is not None:
                yield LoneNode(change="types", detail=f"{own} → {other}", proto=changed)
        for older in _older_versions(node, version):
            changed = self._alone(node, older, {})
            if changed is not None:
                yield LoneNode(change="opset", detail=f"opset {older}", proto=changed)

    def _version(self, domain: str) -> int:
        entry = self._opsets.get(domain)
        return 1 if entry is None else entry.version

    def _other_types(self, node: onnx.NodeProto, version: int) -> Iterator[tuple[str, str]]:
        """Types that the operator takes in place of that of its first value."""
        schema = _schema(node, version)
        value = next((name for name in node.input if name in self._types), None)
        if schema is None or value is None or not schema.inputs:
            return
        allowed = {str(kind) for kind in schema.inputs[0].types}
        own = _element_of(self._types[value])
        for other in _TYPES:
            if other != own and f"tensor({other})" in allowed:
                yield own, other

    def _alone(
        self, node: onnx.NodeProto, version: int, types: Mapping[str, str]
    ) -> onnx.ModelProto | None:
        """A model of one node; ``None`` where a type is not known, or ONNX says that it is none."""
        import onnx
        from onnx import checker, helper

        inputs: list[onnx.ValueInfoProto] = []
        constants: list[onnx.TensorProto] = []
        for name in dict.fromkeys(filter(None, node.input)):
            constant = self._constants.get(name)
            if constant is not None:
                copied = _copied(constant, types)
                if copied is None:
                    return None
                constants.append(copied)
                continue
            value = self._value(name, types)
            if value is None:
                return None
            inputs.append(value)
        outputs = [self._value(name, types) for name in node.output if name]
        known = [value for value in outputs if value is not None]
        if len(known) < len(outputs):
            return None
        opsets = [helper.make_opsetid("", self._version(""))]
        if node.domain:
            opsets.append(helper.make_opsetid(node.domain, version))
        else:
            opsets = [helper.make_opsetid("", version)]
        graph = helper.make_graph([node], "alone", inputs, known, constants)
        model = helper.make_model(graph, opset_imports=opsets, ir_version=self._ir_version)
        if not node.domain:
            try:
                checker.check_model(model)
            except (checker.ValidationError, onnx.shape_inference.InferenceError):
                return None
        return model

    def _value(self, name: str, types: Mapping[str, str]) -> onnx.ValueInfoProto | None:
        import onnx

        known = self._types.get(name)
        if known is None:
            return None
        value = onnx.ValueInfoProto(name=name)
        value.type.CopyFrom(known)
        other = types.get(_element_of(known))
        if other is not None:
            value.type.tensor_type.elem_type = _NUMBERS[other]
        return value


_NUMBERS = {name: number for number, name in ELEMENT_NAMES.items()}


def _types_of(proto: onnx.ModelProto, sizes: Mapping[str, int]) -> dict[str, onnx.TypeProto]:
    """The type of every value of the main graph, as far as it is known, with fixed sizes."""
    import onnx

    fixed = onnx.ModelProto()
    fixed.CopyFrom(proto)
    for value in (*fixed.graph.input, *fixed.graph.output, *fixed.graph.value_info):
        for dimension in value.type.tensor_type.shape.dim:
            size = sizes.get(dimension.dim_param)
            if size is not None:
                dimension.dim_value = size
    for tensor in fixed.graph.initializer:
        if len(tensor.raw_data) > _SMALL_BYTES:
            tensor.ClearField("raw_data")
    answer = with_shapes(fixed, values=True)
    graph = fixed.graph if answer is None else answer.graph
    return {
        value.name: value.type
        for value in (*graph.value_info, *graph.output, *graph.input)
        if value.type.HasField("tensor_type")
    }


def _element_of(kind: onnx.TypeProto) -> str:
    return ELEMENT_NAMES.get(kind.tensor_type.elem_type, "")


def _copied(tensor: onnx.TensorProto, types: Mapping[str, str]) -> onnx.TensorProto | None:
    """A constant with values of its own; ``None`` for one that is too large, or of other types.

    What lies outside of the file is not read: any values will do.
    """
    import numpy as np
    from onnx import TensorProto, helper, numpy_helper

    if int(np.prod(tensor.dims, dtype=np.float64)) > _MOST_ELEMENTS:
        return None
    name = ELEMENT_NAMES.get(tensor.data_type, "")
    try:
        values: np.ndarray = (
            np.ones(tuple(tensor.dims), helper.tensor_dtype_to_np_dtype(tensor.data_type))
            if tensor.data_location == TensorProto.EXTERNAL
            else numpy_helper.to_array(tensor)
        )
        if name in types:
            values = values.astype(helper.tensor_dtype_to_np_dtype(_NUMBERS[types[name]]))
        return numpy_helper.from_array(values, tensor.name)
    except (ValueError, TypeError, KeyError):
        return None


def _schema(node: onnx.NodeProto, version: int) -> onnx.defs.OpSchema | None:
    import onnx

    try:
        return onnx.defs.get_schema(node.op_type, version, node.domain)
    except onnx.defs.SchemaError:
        return None


def _older_versions(node: onnx.NodeProto, version: int) -> list[int]:
    """Operator sets before which an operator changed, the newest first."""
    found: list[int] = []
    while len(found) < _OLDER and not node.domain:
        schema = _schema(node, version)
        if schema is None or schema.since_version <= 1:
            break
        version = schema.since_version - 1
        if _schema(node, version) is None:
            break
        found.append(version)
    return found
