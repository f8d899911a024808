"""Models changed at random where it hurts: by what a part of an ONNX file means, seeded."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx
from onnx import AttributeProto, TensorProto, helper, numpy_helper

from tests.mutations.model_bases import DATA, model_bases

_NUMBERS = (0, -1, 1, 2, 3, 7, 127, 1 << 20, 2**31 - 1, 2**31, 2**40, 2**62, 2**63 - 1, -(2**63))
_FLOATS = (0.0, -1.0, 1e-45, 1e-310, 1e38, -1e38, float("inf"), float("-inf"), float("nan"))
_TEXTS = (
    "", " ", "x", "y", "w", "\x00", "a\x00b", "\x1b[31mred\x1b[2J\x07", "‮gnp.exe\u2066",
    "a\nb\r\n\tc", "../../etc/passwd", "<script>alert(1)</script>", "x" * 5000, "é💥\u200b",
    "%s{0}$(id)`id`", "nan", "Relu", "LOWER", "ai.onnx.ml", "com.microsoft", "own",
)  # fmt: skip
_OPERATORS = (
    "Relu", "MatMul", "Conv", "Gather", "If", "Loop", "Scan", "Reshape", "Cast", "LSTM", "Resize",
    "Constant", "Identity", "Twice", "Split", "Range", "Expand", "Pad", "NonZero", "Where",
    "RandomNormal", "Dropout", "SequenceEmpty", "OptionalGetElement", "NoSuchOp", "Ev\u202eil", "",
    "Abs", "Neg", "Sigmoid", "Tanh", "Exp", "Sqrt", "Log", "Mul", "Sub", "Div", "Max", "Sum",
)  # fmt: skip
#: Operators of one and of two inputs, which take each other's places.
_SIMILAR = (
    ("Relu", "Abs", "Neg", "Sigmoid", "Tanh", "Exp", "Sqrt", "Log", "Softmax", "Not", "Identity",
     "Cos", "Ceil", "IsNaN", "Erf", "NonZero", "Shape", "Size"),
    ("Add", "Mul", "Sub", "Div", "Max", "Sum", "Pow", "MatMul", "Mod", "PRelu"),
)  # fmt: skip
_LOCATIONS = (
    "", ".", "..", "../" + DATA, "/etc/passwd", "missing.bin", "a\x00b", "‮nib", DATA + "/x",
    "x" * 300, "C:\\x", "sub/../" + DATA, "model.onnx",
)  # fmt: skip
_LENGTHS = ("-1", "0", "1", "3", "9999999999", "1" * 400, "x", "", "0x10", "1e3", "٣", " 4")


@dataclass(frozen=True, kw_only=True)
class Mutant:
    """One changed model.

    Attributes:
        seed: Gives it again.
        base: The model that was changed.
        changes: What was changed, for people.
        files: Bytes of its files, by name; the model is ``model.onnx``.
    """

    seed: int
    base: str
    changes: tuple[str, ...]
    files: dict[str, bytes]


def mutant_of(seed: int) -> Mutant:
    """Return one changed model; the same seed gives the same one."""
    draw = random.Random(seed)
    bases = model_bases()
    base = list(bases)[seed % len(bases)]
    data, external = bases[base]
    model = onnx.load_model_from_string(data)
    changes: list[str] = []
    wanted = draw.choice((1, 1, 1, 1, 2, 3))
    while len(changes) < wanted:
        change = draw.choice(_CHANGES)
        what = change(model, draw)
        if what:
            changes.append(f"{change.__name__.lstrip('_')}: {what}")
        if draw.random() < 0.1:
            break
    data = model.SerializeToString()
    if not changes or draw.random() < 0.06:
        data, what = _in_bytes(data, draw)
        changes.append(what)
    if external and draw.random() < 0.3:
        cut = draw.randrange(len(external))
        external = external[:cut]
        changes.append(f"external data cut after {cut}")
    files = {"model.onnx": data, **({DATA: external} if external else {})}
    return Mutant(seed=seed, base=base, changes=tuple(changes), files=files)


# -- where changes happen ------------------------------------------------------------------------


def _graphs(model: onnx.ModelProto) -> list[Any]:
    graphs: list[Any] = [model.graph]
    for graph in graphs:
        for node in graph.node:
            graphs += [attribute.g for attribute in node.attribute if attribute.HasField("g")]
    return graphs


def _nodes(model: onnx.ModelProto) -> list[Any]:
    return [node for graph in _graphs(model) for node in graph.node] + [
        node for function in model.functions for node in function.node
    ]


def _some_graph(model: onnx.ModelProto, draw: random.Random) -> Any:
    return draw.choice(_graphs(model))


def _some_node(model: onnx.ModelProto, draw: random.Random) -> Any:
    nodes = _nodes(model)
    return draw.choice(nodes) if nodes else None


def _some_tensor(model: onnx.ModelProto, draw: random.Random) -> Any:
    tensors = [t for graph in _graphs(model) for t in graph.initializer]
    tensors += [s.values for s in model.graph.sparse_initializer]
    tensors += [s.indices for s in model.graph.sparse_initializer]
    for node in _nodes(model):
        tensors += [attribute.t for attribute in node.attribute if attribute.HasField("t")]
    return draw.choice(tensors) if tensors else None


def _some_value(model: onnx.ModelProto, draw: random.Random) -> Any:
    values = [v for g in _graphs(model) for v in (*g.input, *g.output)]
    return draw.choice(values) if values else None


def _fields(message: Any, kinds: set[int]) -> Iterator[tuple[Any, Any, int | None]]:
    """Yield every set scalar field of some kinds: message, field, index in a repeated one."""
    for field, value in message.ListFields():
        repeated = field.is_repeated if hasattr(field, "is_repeated") else field.label == 3
        if field.type == field.TYPE_MESSAGE:
            for inner in value if repeated else [value]:
                yield from _fields(inner, kinds)
        elif field.type in kinds:
            places = range(len(value)) if repeated else [None]
            yield from ((message, field, place) for place in places)


def _set(place: tuple[Any, Any, int | None], value: Any) -> bool:
    message, field, index = place
    try:
        if index is None:
            setattr(message, field.name, value)
        else:
            getattr(message, field.name)[index] = value
    except (ValueError, TypeError):  # out of the range of the field
        return False
    return True


# -- changes -------------------------------------------------------------------------------------


def _drop_node(model: onnx.ModelProto, draw: random.Random) -> str:
    graph = _some_graph(model, draw)
    if not graph.node:
        return ""
    index = draw.randrange(len(graph.node))
    name = graph.node[index].op_type
    del graph.node[index]
    return name


def _duplicate_node(model: onnx.ModelProto, draw: random.Random) -> str:
    graph = _some_graph(model, draw)
    if not graph.node:
        return ""
    node = draw.choice(graph.node)
    copy = graph.node.add()
    copy.CopyFrom(node)
    if draw.random() < 0.5:
        copy.output[:] = [f"{name}_2" for name in copy.output]
    return str(node.op_type)


def _reorder_nodes(model: onnx.ModelProto, draw: random.Random) -> str:
    graph = _some_graph(model, draw)
    nodes = list(graph.node)
    draw.shuffle(nodes)
    del graph.node[:]
    graph.node.extend(nodes)
    return f"{len(nodes)} nodes"


def _rename_edge(model: onnx.ModelProto, draw: random.Random) -> str:
    node = _some_node(model, draw)
    ends = [] if node is None else [end for end in (node.input, node.output) if end]
    if not ends:
        return ""
    end = draw.choice(ends)
    index = draw.randrange(len(end))
    names = [name for n in _nodes(model) for name in (*n.input, *n.output)]
    end[index] = draw.choice((*names, *_TEXTS))
    return f"{node.op_type} {end[index][:20]!r}"


def _cycle(model: onnx.ModelProto, draw: random.Random) -> str:
    node = _some_node(model, draw)
    if node is None or not node.output or not node.input:
        return ""
    node.input[draw.randrange(len(node.input))] = draw.choice(node.output)
    return str(node.op_type)


def _edges_count(model: onnx.ModelProto, draw: random.Random) -> str:
    node = _some_node(model, draw)
    if node is None:
        return ""
    end = draw.choice((node.input, node.output))
    if end and draw.random() < 0.5:
        del end[-1]
    else:
        end.extend(draw.choice((["extra"], ["x"], [""] * 3, ["x"] * 300)))
    return f"{node.op_type} has {len(node.input)} and {len(node.output)}"


def _operator(model: onnx.ModelProto, draw: random.Random) -> str:
    node = _some_node(model, draw)
    if node is None:
        return ""
    before = node.op_type
    if draw.random() < 0.3:
        node.domain = draw.choice(_TEXTS)
        return f"{before} of {node.domain[:20]!r}"
    node.op_type = draw.choice(_OPERATORS)
    return f"{before} to {node.op_type!r}"


def _attribute_value(model: onnx.ModelProto, draw: random.Random) -> str:
    held = [(node, a) for node in _nodes(model) for a in node.attribute]
    if not held:
        return ""
    node, attribute = draw.choice(held)
    kind = attribute.type
    if kind == AttributeProto.INT:
        attribute.i = draw.choice(_NUMBERS)
    elif kind == AttributeProto.FLOAT:
        attribute.f = draw.choice(_FLOATS)
    elif kind == AttributeProto.STRING:
        attribute.s = draw.choice((*(text.encode() for text in _TEXTS), b"\xff\xfe"))
    elif kind == AttributeProto.INTS:
        count = draw.choice((0, len(attribute.ints), len(attribute.ints) + 1, 70))
        attribute.ints[:] = [draw.choice(_NUMBERS) for _ in range(count)]
    elif kind == AttributeProto.FLOATS:
        attribute.floats[:] = [draw.choice(_FLOATS) for _ in range(draw.choice((0, 1, 4)))]
    elif kind == AttributeProto.STRINGS:
        attribute.strings[:] = [text.encode() for text in draw.sample(_TEXTS, 2)]
    else:
        return ""
    return f"{node.op_type}.{attribute.name}"


def _attribute_kind(model: onnx.ModelProto, draw: random.Random) -> str:
    held = [(node, a) for node in _nodes(model) for a in node.attribute]
    if not held:
        return ""
    node, attribute = draw.choice(held)
    how = draw.randrange(5)
    if how == 0:
        attribute.type = draw.choice(range(15))
    elif how == 1:
        copy = node.attribute.add()
        copy.CopyFrom(attribute)
    elif how == 2:
        attribute.name = draw.choice(_TEXTS)
    elif how == 3:
        attribute.ref_attr_name = "nowhere"
    else:
        node.attribute.remove(attribute)
    return f"{node.op_type}.{attribute.name[:20]}, {how}"


def _new_attribute(model: onnx.ModelProto, draw: random.Random) -> str:
    node = _some_node(model, draw)
    if node is None:
        return ""
    name = draw.choice(("axis", "to", "group", "perm", "body", "value", "mode", "nonsense"))
    value = draw.choice((*_NUMBERS, "text", [1, -1, 2**62], 0.5, _weight(draw)))
    node.attribute.append(helper.make_attribute(name, value))
    return f"{node.op_type}.{name}"


def _weight(draw: random.Random) -> Any:
    return numpy_helper.from_array(np.zeros(draw.choice((0, 1, 5)), np.float32), "new")


def _value_shape(model: onnx.ModelProto, draw: random.Random) -> str:
    value = _some_value(model, draw)
    if value is None or not value.type.HasField("tensor_type"):
        return ""
    tensor = value.type.tensor_type
    how = draw.randrange(5)
    if how == 0:
        tensor.ClearField("shape")
    elif how == 1:
        for _ in range(draw.choice((1, 70))):
            tensor.shape.dim.add().dim_value = 1
    elif how == 2 and tensor.shape.dim:
        del tensor.shape.dim[draw.randrange(len(tensor.shape.dim))]
    elif tensor.shape.dim:
        dim = draw.choice(tensor.shape.dim)
        if how == 3:
            dim.dim_value = draw.choice(_NUMBERS)
        else:
            dim.dim_param = draw.choice((*_TEXTS, "N", "batch", "-1", "2*N", "N+1", "N N"))
    return f"{value.name[:20]}, {how}"


def _value_type(model: onnx.ModelProto, draw: random.Random) -> str:
    value = _some_value(model, draw)
    if value is None:
        return ""
    how = draw.randrange(6)
    if how == 0:
        value.type.tensor_type.elem_type = draw.choice((*range(30), -1, 99, 2**31 - 1))
    elif how == 1:
        value.type.sequence_type.elem_type.tensor_type.elem_type = 1
    elif how == 2:
        value.type.map_type.key_type = draw.choice((7, 8, 99))
        value.type.map_type.value_type.tensor_type.elem_type = 1
    elif how == 3:
        value.type.optional_type.elem_type.tensor_type.elem_type = 1
    elif how == 4:
        value.type.sparse_tensor_type.elem_type = 1
    else:
        value.ClearField("type")
    return f"{value.name[:20]}, {how}"


def _value_name(model: onnx.ModelProto, draw: random.Random) -> str:
    value = _some_value(model, draw)
    if value is None:
        return ""
    others = [v.name for v in (*model.graph.input, *model.graph.output)]
    value.name = draw.choice((*_TEXTS, *others))
    return f"{value.name[:20]!r}"


def _values_count(model: onnx.ModelProto, draw: random.Random) -> str:
    graph = _some_graph(model, draw)
    values = draw.choice((graph.input, graph.output))
    how = draw.randrange(3)
    if values and how == 0:
        del values[draw.randrange(len(values))]
    elif values and how == 1:
        values.add().CopyFrom(draw.choice(values))
    else:
        values.add().CopyFrom(helper.make_tensor_value_info("nothing", 1, [1]))
    return f"{len(graph.input)} and {len(graph.output)}"


def _tensor_sizes(model: onnx.ModelProto, draw: random.Random) -> str:
    tensor = _some_tensor(model, draw)
    if tensor is None:
        return ""
    how = draw.randrange(4)
    if how == 0 or not tensor.dims:
        tensor.dims.append(draw.choice(_NUMBERS))
    elif how == 1:
        del tensor.dims[-1]
    elif how == 2:
        tensor.dims[draw.randrange(len(tensor.dims))] = draw.choice(_NUMBERS)
    else:
        tensor.dims.extend([1] * 70)
    return f"{tensor.name[:20]} {list(tensor.dims)[:4]}"


def _tensor_type(model: onnx.ModelProto, draw: random.Random) -> str:
    tensor = _some_tensor(model, draw)
    if tensor is None:
        return ""
    tensor.data_type = draw.choice((*range(27), -1, 99, 2**31 - 1))
    return f"{tensor.name[:20]} to {tensor.data_type}"


def _tensor_data(model: onnx.ModelProto, draw: random.Random) -> str:
    tensor = _some_tensor(model, draw)
    if tensor is None or not tensor.HasField("raw_data"):
        return ""
    raw = tensor.raw_data
    how = draw.randrange(5)
    if how == 0:
        tensor.raw_data = raw[: draw.randrange(len(raw) + 1)]
    elif how == 1:
        tensor.raw_data = raw + b"\0" * draw.choice((1, 4, 1000))
    elif how == 2:
        tensor.float_data.extend([1.0] * draw.choice((1, 1000)))
    elif how == 3:
        tensor.ClearField("raw_data")
        tensor.int32_data.extend([draw.choice((0, -1, 2**31 - 1))] * len(raw))
    elif tensor.data_type == TensorProto.FLOAT:
        tensor.raw_data = np.full(len(raw) // 4, draw.choice(_FLOATS), np.float32).tobytes()
    else:
        tensor.raw_data = bytes(draw.choice((0, 0x7F, 0xFF)) for _ in raw)
    return f"{tensor.name[:20]}, {how}"


def _tensor_name(model: onnx.ModelProto, draw: random.Random) -> str:
    tensor = _some_tensor(model, draw)
    if tensor is None:
        return ""
    names = [tensor.name for tensor in model.graph.initializer]
    tensor.name = draw.choice((*_TEXTS, *names))
    return f"{tensor.name[:20]!r}"


def _tensors_count(model: onnx.ModelProto, draw: random.Random) -> str:
    weights = model.graph.initializer
    if not weights:
        return ""
    weight = draw.choice(weights)
    if draw.random() < 0.5:
        weights.add().CopyFrom(weight)
    else:
        weights.remove(weight)
    return str(weight.name[:20])


def _external_data(model: onnx.ModelProto, draw: random.Random) -> str:
    tensor = _some_tensor(model, draw)
    if tensor is None:
        return ""
    entries = {entry.key: entry.value for entry in tensor.external_data}
    key = draw.choice(("location", "location", "offset", "length", "checksum"))
    entries.setdefault("location", DATA)
    entries[key] = draw.choice(_LOCATIONS if key == "location" else _LENGTHS)
    tensor.ClearField("external_data")
    tensor.data_location = TensorProto.EXTERNAL
    if draw.random() < 0.8:
        tensor.ClearField("raw_data")
    for name, value in entries.items():
        entry = tensor.external_data.add()
        entry.key, entry.value = name, value
    return f"{tensor.name[:20]}.{key} = {entries[key][:20]!r}"


def _versions(model: onnx.ModelProto, draw: random.Random) -> str:
    how = draw.randrange(5)
    if how == 0:
        model.ir_version = draw.choice((*_NUMBERS, 3, 13, 99))
    elif how == 1 and model.opset_import:
        draw.choice(model.opset_import).version = draw.choice((*_NUMBERS, 1, 6, 25, 99))
    elif how == 2:
        model.opset_import.append(helper.make_opsetid(draw.choice(_TEXTS), draw.choice((1, 99))))
    elif how == 3 and model.opset_import:
        del model.opset_import[draw.randrange(len(model.opset_import))]
    else:
        model.ClearField("opset_import")
    return f"IR {model.ir_version}, {[(o.domain[:10], o.version) for o in model.opset_import]}"


def _function(model: onnx.ModelProto, draw: random.Random) -> str:
    if not model.functions:
        opset = [helper.make_opsetid("", 17)]
        node = _some_node(model, draw)
        kind = "Relu" if node is None else node.op_type
        inner = helper.make_node(kind, ["a"], ["b"])
        domain = draw.choice(("", "own"))
        model.functions.append(helper.make_function(domain, kind, ["a"], ["b"], [inner], opset))
        return f"{domain}::{kind}, of itself"
    function = draw.choice(model.functions)
    how = draw.randrange(5)
    if how == 0:
        call = helper.make_node(function.name, list(function.input), ["again"], domain="own")
        function.node.insert(0, call)
    elif how == 1:
        model.functions.remove(function)
    elif how == 2:
        model.functions.add().CopyFrom(function)
    elif how == 3:
        function.name = draw.choice((*_TEXTS, "Tanh"))
    else:
        draw.choice((function.input, function.output)).append("more")
    return f"{function.name[:20]}, {how}"


def _subgraph(model: onnx.ModelProto, draw: random.Random) -> str:
    depth = draw.choice((1, 3, 20))
    node = helper.make_node("Identity", ["x"], ["deep_0"])
    for level in range(depth):
        inner = helper.make_tensor_value_info(f"deep_{level}", 1, None)
        branch = helper.make_graph([node], f"level_{level}", [], [inner])
        other = branch if depth < 10 else helper.make_graph([], "empty", [], [])
        node = helper.make_node(
            "If", ["flag"], [f"deep_{level + 1}"], then_branch=branch, else_branch=other
        )
    model.graph.node.append(node)
    return f"{depth} deep"


def _text_anywhere(model: onnx.ModelProto, draw: random.Random) -> str:
    places = list(_fields(model, {9}))
    place = draw.choice(places)
    text = draw.choice(_TEXTS)
    return f"{place[1].full_name} = {text[:20]!r}" if _set(place, text) else ""


def _number_anywhere(model: onnx.ModelProto, draw: random.Random) -> str:
    places = list(_fields(model, {3, 5, 14}))
    place = draw.choice(places)
    number = draw.choice(_NUMBERS)
    return f"{place[1].full_name} = {number}" if _set(place, number) else ""


def _similar_operator(model: onnx.ModelProto, draw: random.Random) -> str:
    """An operator of as many inputs, which the model may well run with."""
    for names in _SIMILAR:
        nodes = [node for node in _nodes(model) if node.op_type in names]
        if nodes and draw.random() < 0.7:
            node = draw.choice(nodes)
            before, node.op_type = node.op_type, draw.choice(names)
            return f"{before} to {node.op_type}"
    return ""


def _weight_values(model: onnx.ModelProto, draw: random.Random) -> str:
    """Weights of other values: not finite, subnormal, huge, out of an operator's range."""
    tensors = [tensor for graph in _graphs(model) for tensor in graph.initializer]
    known = set(TensorProto.DataType.values()) - {TensorProto.UNDEFINED}
    tensors = [tensor for tensor in tensors if tensor.raw_data and tensor.data_type in known]
    if not tensors:
        return ""
    tensor = draw.choice(tensors)
    kind = helper.tensor_dtype_to_np_dtype(tensor.data_type)
    if kind.kind == "f":
        value: float = draw.choice(_FLOATS)
    elif kind.kind in "iu":
        value = draw.choice((0, -1, 1, 2, 5, 64, 127, 255, 1 << 20, 2**62))
        value = min(max(value, np.iinfo(kind).min), np.iinfo(kind).max)
    else:
        return ""
    with np.errstate(all="ignore"):
        tensor.raw_data = (
            np.full(len(tensor.raw_data) // kind.itemsize, value).astype(kind).tobytes()
        )
    return f"{tensor.name[:20]} = {value}"


def _remarks(model: onnx.ModelProto, draw: random.Random) -> str:
    entry = model.metadata_props.add()
    entry.key, entry.value = draw.choice(_TEXTS), draw.choice(_TEXTS) * draw.choice((1, 50))
    model.producer_name = draw.choice(_TEXTS)
    model.graph.name = draw.choice(_TEXTS)
    return f"{entry.key[:20]!r}"


_Change = Callable[[onnx.ModelProto, random.Random], str]
_CHANGES: tuple[_Change, ...] = (
    _drop_node, _duplicate_node, _reorder_nodes, _rename_edge, _cycle, _edges_count, _operator,
    _attribute_value, _attribute_value, _attribute_kind, _new_attribute, _value_shape, _value_shape,
    _value_type, _value_name, _values_count, _tensor_sizes, _tensor_sizes, _tensor_type,
    _tensor_data, _tensor_name, _tensors_count, _external_data, _external_data, _versions,
    _function, _subgraph, _text_anywhere, _number_anywhere, _remarks, *[_similar_operator] * 6,
    *[_weight_values] * 5,
)  # fmt: skip


def _in_bytes(data: bytes, draw: random.Random) -> tuple[bytes, str]:
    """Change bytes: cut, flipped, and lengths of inner fields that lie."""
    changed = bytearray(data)
    how = draw.randrange(5)
    at = draw.randrange(len(changed))
    if how == 4:
        levels = draw.choice((20, 500))
        return data + _nested(levels), f"a graph of {levels} levels added"
    if how == 0:
        del changed[at:]
        return bytes(changed), f"cut after {at} bytes"
    if how == 1:
        for _ in range(draw.choice((1, 5, 50))):
            changed[draw.randrange(len(changed))] = draw.randrange(256)
        return bytes(changed), "bytes flipped"
    if how == 2:
        end = min(len(changed), at + draw.choice((1, 8, 100)))
        del changed[at:end]
        return bytes(changed), f"bytes {at} to {end} removed"
    changed[at:at] = bytes(draw.randrange(256) for _ in range(draw.choice((1, 8, 100))))
    return bytes(changed), f"bytes put in at {at}"


def _nested(levels: int) -> bytes:
    """Graphs in attributes of nodes of graphs, as deep as no writer makes them."""
    held = b""
    for _ in range(levels):
        # GraphProto.node, NodeProto.attribute, AttributeProto.g
        for number in (6, 5, 1):
            held = _field(number, held)
    return _field(7, held)


def _field(number: int, held: bytes) -> bytes:
    """A length-delimited field."""
    length, rest = b"", len(held)
    while rest > 127:
        length += bytes([rest & 127 | 128])
        rest >>= 7
    return bytes([number << 3 | 2]) + length + bytes([rest]) + held
