"""Facts about a parsed model: interface, operators, weights, what makes it special."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

from pytest_ortbench.core.arithmetic import element_count
from pytest_ortbench.core.compilation import DOMAIN, OPERATOR, CompiledPart
from pytest_ortbench.core.element_types import ELEMENT_NAMES
from pytest_ortbench.core.model import TensorInfo

if TYPE_CHECKING:
    import onnx

#: Operators that draw random numbers; their output differs from call to call.
RANDOM_OPS = frozenset(
    {
        "RandomNormal",
        "RandomNormalLike",
        "RandomUniform",
        "RandomUniformLike",
        "Multinomial",
        "Bernoulli",
        "com.microsoft::Sampling",
        "com.microsoft::BiasDropout",
        "com.microsoft::BitmaskDropout",
        "com.microsoft::BitmaskBiasDropout",
    }
)

#: Domains that only ONNX Runtime's own optimiser writes, for the hardware it ran on.
_INTERNAL_DOMAINS = frozenset(
    {"com.microsoft.nchwc", "com.ms.internal.nhwc", "com.microsoft.internal"}
)
#: Operators of ``com.microsoft`` that only its layout and quantisation passes make on CPUs.
_INTERNAL_OPS = frozenset({"ReorderInput", "ReorderOutput", "FusedConvPrepacked"})

_CLASSICAL_WEIGHTS = frozenset(
    {"coefficients", "intercepts", "support_vectors", "rho", "class_weights", "target_weights"}
)
#: The first IR version in which an input that is a weight too may be left out or given.
_OVERRIDABLE_SINCE = 4

#: Nodes that functions of real models stand for are some ten thousand.
_MOST_SPELT_OUT = 500_000

_NOT_PARAMETERS = frozenset({"string", "bool"})


def all_nodes(proto: onnx.ModelProto) -> Iterator[onnx.NodeProto]:
    """Yield every node of the main graph, its subgraphs and the model's own functions."""
    yield from _nodes(proto.graph.node)
    for function in proto.functions:
        yield from _nodes(function.node)


def _nodes(nodes: Iterable[onnx.NodeProto]) -> Iterator[onnx.NodeProto]:
    for node in nodes:
        yield node
        for graph in subgraphs(node):
            yield from _nodes(graph.node)


def subgraphs(node: onnx.NodeProto) -> Iterator[onnx.GraphProto]:
    """Yield the graphs among a node's attributes (branches, loop bodies)."""
    for attribute in node.attribute:
        if attribute.HasField("g"):
            yield attribute.g
        yield from attribute.graphs


def all_graphs(proto: onnx.ModelProto) -> Iterator[onnx.GraphProto]:
    """Yield the main graph and every graph inside it or inside a function."""
    yield proto.graph
    for node in all_nodes(proto):
        yield from subgraphs(node)


def all_tensors(proto: onnx.ModelProto) -> Iterator[onnx.TensorProto]:
    """Yield every stored tensor: initialisers, sparse ones, and node attributes."""
    for graph in all_graphs(proto):
        yield from graph.initializer
        for sparse in graph.sparse_initializer:
            yield sparse.values
            yield sparse.indices
    for node in all_nodes(proto):
        for attribute in node.attribute:
            if attribute.HasField("t"):
                yield attribute.t
            yield from attribute.tensors
            for sparse in sparse_tensors(attribute):
                yield sparse.values
                yield sparse.indices


def sparse_tensors(attribute: onnx.AttributeProto) -> Iterator[onnx.SparseTensorProto]:
    """Yield the sparse tensors of an attribute."""
    if attribute.HasField("sparse_tensor"):
        yield attribute.sparse_tensor
    yield from attribute.sparse_tensors


def all_names(proto: onnx.ModelProto) -> Iterator[str | bytes]:
    """Yield every name: of operators, values, attributes, dimensions, domains, external files."""
    for entry in proto.opset_import:
        yield entry.domain
    for graph in all_graphs(proto):
        for value in (*graph.input, *graph.output, *graph.value_info):
            yield value.name
            for dimension in value.type.tensor_type.shape.dim:
                yield dimension.dim_param
    for node in all_nodes(proto):
        yield from (node.op_type, node.domain, *node.input, *node.output)
        yield from (attribute.name for attribute in node.attribute)
    for tensor in all_tensors(proto):
        yield tensor.name
        for item in tensor.external_data:
            yield from (item.key, item.value)
    for function in proto.functions:
        yield from (function.name, function.domain, *function.input, *function.output)


def opsets(proto: onnx.ModelProto) -> dict[str, int]:
    """Operator set version by domain; the default domain is ``ai.onnx``."""
    found = {entry.domain or "ai.onnx": entry.version for entry in proto.opset_import}
    return found or {"ai.onnx": 1}  # IR versions before 3 named none


def without_functions(proto: onnx.ModelProto) -> onnx.ModelProto:
    """Return a model with its own functions in place of their calls; itself if it has none.

    Raises:
        ValueError: if its functions call each other so often that no memory holds what comes out.
    """
    import onnx.inliner

    if not proto.functions:
        return proto
    if _spelt_out(proto) > _MOST_SPELT_OUT:
        raise ValueError(f"its functions stand for more than {_MOST_SPELT_OUT:,} nodes")
    return onnx.inliner.inline_local_functions(proto)


def _spelt_out(proto: onnx.ModelProto) -> int:
    """Number of nodes with functions in place of their calls; one that calls itself counts once."""
    bodies = {(item.domain, item.name): item for item in proto.functions}
    known: dict[tuple[str, str], int] = {}
    pending = list(bodies)
    while pending:
        key = pending[-1]
        calls = [call for node in _nodes(bodies[key].node) if (call := _called(node)) in bodies]
        missing = [call for call in calls if call not in known]
        if missing and key not in known:
            known[key] = 1  # in the meantime, for those that call it from inside
            pending += missing
            continue
        pending.pop()
        known[key] = len(bodies[key].node) + sum(known[call] for call in calls)
    return sum(known.get(_called(node), 1) for node in _nodes(proto.graph.node))


def _called(node: onnx.NodeProto) -> tuple[str, str]:
    return node.domain, node.op_type


def op_types(proto: onnx.ModelProto) -> dict[str, int]:
    """Node count by ``domain::OpType`` in order of the name; default domain without a prefix."""
    counts = Counter(op_name(node) for node in all_nodes(proto))
    return dict(sorted(counts.items()))


def op_name(node: onnx.NodeProto) -> str:
    """``OpType`` for the default domain, ``domain::OpType`` for others."""
    if node.domain in ("", "ai.onnx"):
        return node.op_type
    return f"{node.domain}::{node.op_type}"


#: Weights that one byte can hold: of one bit each.
_MOST_PACKED = 8


def parameter_count(proto: onnx.ModelProto) -> int:
    """Number of elements in all float and integer weights, of packed ones what is packed.

    Initialisers, constant nodes, and of the operators of ``ai.onnx.ml`` coefficients, intercepts,
    support vectors, thresholds and leaf values.
    """
    total = 0
    stored: dict[str, int] = {}
    for graph in all_graphs(proto):
        stored |= {tensor.name: _elements(tensor) for tensor in graph.initializer}
        total += sum(_elements(tensor) for tensor in graph.initializer)
        total += sum(_elements(sparse.values) for sparse in graph.sparse_initializer)
    for node in all_nodes(proto):
        if node.op_type == "Constant":
            for attribute in node.attribute:
                if attribute.HasField("t"):
                    total += _elements(attribute.t)
        elif node.op_type == "MatMulNBits":
            total += packed_parameters(node, stored)
        elif node.domain == "ai.onnx.ml":
            total += _classical_parameters(node)
    return total


def packed_parameters(node: onnx.NodeProto, stored: Mapping[str, int]) -> int:
    """How many more weights a ``MatMulNBits`` has than elements that hold them.

    Args:
        node: Of any operator.
        stored: Elements of constants, by name.
    """
    sizes: dict[str, int] = {attribute.name: attribute.i for attribute in node.attribute}
    held = stored.get(node.input[1], 0) if len(node.input) > 1 else 0
    if node.op_type != "MatMulNBits" or not held:
        return 0
    # A block that is not full is padded, so the sizes tell; a file may state any.
    return max(0, min(sizes.get("K", 0) * sizes.get("N", 0), _MOST_PACKED * held) - held)


def _classical_parameters(node: onnx.NodeProto) -> int:
    total = 0
    for attribute in node.attribute:
        if attribute.name in _CLASSICAL_WEIGHTS:
            total += len(attribute.floats)
        elif attribute.name == "nodes_modes":  # a leaf has no threshold
            total += sum(mode != b"LEAF" for mode in attribute.strings)
    return total


def _elements(tensor: onnx.TensorProto) -> int:
    if ELEMENT_NAMES.get(tensor.data_type, "string") in _NOT_PARAMETERS:
        return 0
    return element_count(tensor.dims) or 0


def is_compiled(node: onnx.NodeProto) -> bool:
    """Whether a node holds a part of a graph that a provider compiled."""
    return (node.op_type, node.domain) == (OPERATOR, DOMAIN)


def text_of(node: onnx.NodeProto, attribute: str) -> str:
    """Return an attribute as text, whatever the file holds there; empty where it is missing."""
    for each in node.attribute:
        if each.name == attribute:
            return bytes(each.s).decode("utf-8", "replace")
    return ""


def compiled_parts(proto: onnx.ModelProto) -> tuple[CompiledPart, ...]:
    """What a file says of the parts that providers compiled, in order of the provider."""
    counts = Counter(
        tuple(text_of(node, name) for name in ("source", "ep_sdk_version", "hardware_architecture"))
        for node in all_nodes(proto)
        if is_compiled(node)
    )
    return tuple(
        CompiledPart(provider=provider, library=library, hardware=hardware, nodes=nodes)
        for (provider, library, hardware), nodes in sorted(counts.items())
    )


def random_ops(proto: onnx.ModelProto) -> tuple[str, ...]:
    """Operators whose output differs from call to call, in order of the name.

    Dropout counts in training mode only: an input that says so (opset 12 on), or the attribute
    ``is_test=0`` that old exporters wrote.
    """
    found: set[str] = set()
    constants = _true_constants(proto)
    for node in all_nodes(proto):
        name = op_name(node)
        if name in RANDOM_OPS:
            found.add(name)
        elif node.op_type == "Dropout" and _trains(node, constants):
            found.add("Dropout (training mode)")
    return tuple(sorted(found))


def _trains(node: onnx.NodeProto, constants: frozenset[str]) -> bool:
    if any(attribute.name == "is_test" and attribute.i == 0 for attribute in node.attribute):
        return True
    return len(node.input) > 2 and node.input[2] in constants


def _true_constants(proto: onnx.ModelProto) -> frozenset[str]:
    """Names of boolean constants that are true."""
    found = set()
    for graph in all_graphs(proto):
        found |= {tensor.name for tensor in graph.initializer if _is_true(tensor)}
    for node in all_nodes(proto):
        if node.op_type == "Constant":
            for attribute in node.attribute:
                if attribute.HasField("t") and _is_true(attribute.t):
                    found.add(node.output[0])
    return frozenset(found)


def _is_true(tensor: onnx.TensorProto) -> bool:
    if ELEMENT_NAMES.get(tensor.data_type) != "bool":
        return False
    return any(tensor.int32_data) or any(tensor.raw_data)


def notes(proto: onnx.ModelProto) -> tuple[str, ...]:
    """What a reader should know about the file."""
    found: list[str] = []
    domains = sorted({node.domain for node in all_nodes(proto)} & _INTERNAL_DOMAINS)
    operators = sorted({node.op_type for node in all_nodes(proto)} & _INTERNAL_OPS)
    marks = domains or operators
    if marks:
        found.append(
            "optimised offline: tied to hardware like that of the machine that saved it "
            f"({', '.join(marks)})"
        )
    if proto.functions:
        found.append(f"holds {len(proto.functions)} function(s) of its own")
    return tuple(found)


def declared_inputs(graph: onnx.GraphProto) -> tuple[TensorInfo, ...]:
    """Inputs that must be fed: those that are not initialisers (old files list weights too)."""
    weights = {tensor.name for tensor in graph.initializer}
    weights |= {sparse.values.name for sparse in graph.sparse_initializer}
    return tuple(tensor_info(value) for value in graph.input if value.name not in weights)


def weights_as_inputs(proto: onnx.ModelProto) -> int:
    """Number of weights that a caller may override, since they are inputs too.

    Before IR version 4 every weight had to be listed among the inputs, and ONNX Runtime takes none
    of them for one.
    """
    if proto.ir_version < _OVERRIDABLE_SINCE:
        return 0
    weights = {tensor.name for tensor in proto.graph.initializer}
    weights |= {sparse.values.name for sparse in proto.graph.sparse_initializer}
    return len(weights & {value.name for value in proto.graph.input})


def tensor_info(value: onnx.ValueInfoProto) -> TensorInfo:
    """Describe a declared input or output in ONNX Runtime's words."""
    kind = value.type.WhichOneof("value")
    return TensorInfo(
        name=value.name,
        type=type_name(value.type),
        shape=_inner_shape(value.type),
        optional=kind == "optional_type",
    )


def type_name(type_proto: onnx.TypeProto) -> str:
    """ONNX Runtime's spelling of a type: ``seq(map(int64,tensor(float)))``."""
    kind = type_proto.WhichOneof("value")
    if kind == "tensor_type":
        return f"tensor({_element(type_proto.tensor_type.elem_type)})"
    if kind == "sparse_tensor_type":
        return f"sparse_tensor({_element(type_proto.sparse_tensor_type.elem_type)})"
    if kind == "sequence_type":
        return f"seq({type_name(type_proto.sequence_type.elem_type)})"
    if kind == "optional_type":
        return f"optional({type_name(type_proto.optional_type.elem_type)})"
    if kind == "map_type":
        key = _element(type_proto.map_type.key_type)
        return f"map({key},{type_name(type_proto.map_type.value_type)})"
    return "unknown"


def _element(number: int) -> str:
    return ELEMENT_NAMES.get(number, f"type {number}")


def _inner_shape(type_proto: onnx.TypeProto) -> tuple[int | str | None, ...] | None:
    kind = type_proto.WhichOneof("value")
    if kind == "sequence_type":
        return _inner_shape(type_proto.sequence_type.elem_type)
    if kind == "optional_type":
        return _inner_shape(type_proto.optional_type.elem_type)
    if kind not in ("tensor_type", "sparse_tensor_type"):
        return None
    tensor = type_proto.tensor_type if kind == "tensor_type" else type_proto.sparse_tensor_type
    if not tensor.HasField("shape"):
        return None
    return tuple(_dimension(dimension) for dimension in tensor.shape.dim)


def _dimension(dimension: onnx.TensorShapeProto.Dimension) -> int | str | None:
    """A size, a symbol, or ``None``. Exporters write -1, '' and '?' where they mean unset."""
    if dimension.HasField("dim_value"):
        return dimension.dim_value if dimension.dim_value >= 0 else None
    symbol = dimension.dim_param.strip()
    return None if symbol in ("", "?", "-1", "None") else symbol
