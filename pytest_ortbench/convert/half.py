"""Half precision: ONNX Runtime's converter changes the graph, the weights are rounded here.

The converter would hold several copies of every weight, rounds to float16 only, and says nothing
of values that it clamps. So it gets the graph with empty weights, and each weight is then rounded
in pieces, by the converter's own rule: what is too large for the type becomes its largest value,
what is too small its smallest.

The converter also looks at all graphs at once and knows a weight by its bare name, where graphs
that do not see each other (the branches of an If) may call different weights the same. So names
that branches share are told apart first.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_ortbench.convert.failure import refuse_absent, unconverted, without_precision
from pytest_ortbench.convert.graph import (
    Draft,
    constants_to_initialisers,
    count_types,
    graphs_within,
    load_typed,
    save_model,
    values_of,
)
from pytest_ortbench.core.recipe import Recipe

if TYPE_CHECKING:
    import onnx
    from numpy.typing import NDArray

#: Elements that are rounded at a time.
_PIECE = 1 << 22

#: The first opset in which Conv takes bfloat16; other operators with weights did so before.
_CONV_SINCE = 22

#: Smallest and largest magnitude of float16, the smallest one subnormal.
_TINIEST, _LARGEST = 5.96e-08, 65504.0

#: Weights that are named in a note before the rest is counted.
_NAMED = 4

#: A few tiny values among many are as good as the zeros beside them; an epsilon is not.
_NOTABLE_SHARE = 0.01


@dataclass(slots=True)
class _Clamped:
    """Values of one weight that the type can't hold."""

    small: int = 0
    all_small: bool = False
    large: int = 0
    smallest: float = field(default=float("inf"))
    largest: float = 0.0


def to_half(source: Path, target: Path, recipe: Recipe) -> Draft:
    """Convert a float32 model to ``fp16`` or ``bf16``.

    Args:
        source: The model; weights in float32.
        target: Where the result goes.
        recipe: With base ``fp16`` or ``bf16``.

    Raises:
        WorkerError: if the model can't be converted as it is.
        Exception: what the converter raises.
    """
    import onnx
    from onnxruntime.transformers.float16 import convert_float_to_float16

    wanted = onnx.TensorProto.FLOAT16 if recipe.base == "fp16" else onnx.TensorProto.BFLOAT16
    model, notes = load_typed(source)
    before = count_types(model)
    constants_to_initialisers(model)
    tell_apart(model)
    if wanted == onnx.TensorProto.BFLOAT16:
        _refuse_float16(model, recipe)
        _refuse_without_bfloat16(model, recipe)
    block_list = _block_list(model, recipe, wanted)
    nodes = [node for graph in graphs_within(model.graph) for node in graph.node]
    refuse_absent(recipe.nodes_to_exclude, nodes)
    stash = _take_weights(model)
    model = convert_float_to_float16(
        model,
        keep_io_types=recipe.keep_io_types,
        disable_shape_infer=True,
        op_block_list=block_list,
        node_block_list=list(recipe.nodes_to_exclude),
    )
    # Its types speak of float16 and of empty weights; ONNX Runtime infers them again.
    for graph in graphs_within(model.graph):
        del graph.value_info[:]
    _follow_outputs(model)
    if wanted == onnx.TensorProto.BFLOAT16:
        _to_bfloat16(model)
    clamped = _give_weights_back(model, stash, wanted)
    save_model(model, target)
    listed = "ONNX Runtime's" if recipe.block_list is None else ""
    facts = {"block_list": listed} if listed else {}
    return Draft(before=before, facts=facts, notes=(*notes, *_clamping_notes(clamped, recipe.base)))


def _block_list(model: onnx.ModelProto, recipe: Recipe, wanted: int) -> list[str] | None:
    """Operator types that stay in float32; for bfloat16 also those that do not know it."""
    import onnx
    from onnxruntime.transformers.float16 import DEFAULT_OP_BLOCK_LIST

    asked = None if recipe.block_list is None else list(recipe.block_list)
    if wanted != onnx.TensorProto.BFLOAT16:
        return asked
    blocked = set(DEFAULT_OP_BLOCK_LIST if asked is None else asked)
    return sorted(blocked | _without_bfloat16(model))


def _without_bfloat16(model: onnx.ModelProto) -> set[str]:
    """Operator types of the model that do not know bfloat16 at its operator sets."""
    versions = {entry.domain or "": entry.version for entry in model.opset_import}
    op_types = set()
    for graph in graphs_within(model.graph):
        for node in graph.node:
            domain = "" if node.domain == "ai.onnx" else node.domain
            if not _knows_bfloat16(node.op_type, versions.get(domain, 1), domain):
                op_types.add(node.op_type)
    return op_types


def _knows_bfloat16(op_type: str, version: int, domain: str) -> bool:
    import onnx

    if not onnx.defs.has(op_type, version, domain):
        # ONNX Runtime's own operators, some of which have no domain: its session says whether.
        return domain != "" or not onnx.defs.has(op_type)
    schema = onnx.defs.get_schema(op_type, version, domain)
    of_floats = [c for c in schema.type_constraints if "tensor(float)" in c.allowed_type_strs]
    return all("tensor(bfloat16)" in c.allowed_type_strs for c in of_floats)


def _refuse_float16(model: onnx.ModelProto, recipe: Recipe) -> None:
    """Two half precisions in one graph can't be told apart after the converter."""
    import onnx

    for graph in graphs_within(model.graph):
        for node in graph.node:
            to = [a.i for a in node.attribute if a.name == "to"]
            if node.op_type == "Cast" and onnx.TensorProto.FLOAT16 in to:
                named = f"the node {node.name!r}" if node.name else "a Cast node"
                raise unconverted(
                    f"bf16 can't be made, since {named} casts to float16, and a model with float16 "
                    "can't be converted to bfloat16",
                    without_precision(recipe),
                )


def _refuse_without_bfloat16(model: onnx.ModelProto, recipe: Recipe) -> None:
    """Where no operator with weights can compute in it, only casts would be added."""
    from pytest_ortbench.convert.census import no_bfloat16, with_weights

    weighted = with_weights(model)
    if weighted and not weighted.keys() - _without_bfloat16(model):
        leave = without_precision(recipe)
        if "Conv" in weighted and _opset(model) < _CONV_SINCE:
            leave = (
                f"Export the model with opset {_CONV_SINCE} or newer, or "
                f"{without_precision(recipe, 'leave')}"
            )
        raise unconverted(f"bf16 changes nothing: {no_bfloat16(model)}", leave)


def _opset(model: onnx.ModelProto) -> int:
    return max((o.version for o in model.opset_import if o.domain in ("", "ai.onnx")), default=1)


def _take_weights(model: onnx.ModelProto) -> dict[str, onnx.TensorProto]:
    """Leave every float32 weight empty; return what it held by its name."""
    import onnx

    stash: dict[str, onnx.TensorProto] = {}
    for graph in graphs_within(model.graph):
        for tensor in graph.initializer:
            if tensor.data_type == onnx.TensorProto.FLOAT:
                held = onnx.TensorProto()
                held.CopyFrom(tensor)
                stash[tensor.name] = held
                name = tensor.name
                tensor.Clear()
                tensor.name = name
                tensor.data_type = onnx.TensorProto.FLOAT
                tensor.dims.append(0)
    return stash


def _follow_outputs(model: onnx.ModelProto) -> None:
    """Give weights that are outputs of their graph the type that the converter gave these.

    It knows a weight by the nodes that read it. A branch of an ``If`` that only chooses between
    tables has none.
    """
    import onnx

    for graph in graphs_within(model.graph):
        declared = {value.name: value.type.tensor_type.elem_type for value in graph.output}
        for tensor in graph.initializer:
            if declared.get(tensor.name) == onnx.TensorProto.FLOAT16:
                tensor.data_type = onnx.TensorProto.FLOAT16


def _give_weights_back(
    model: onnx.ModelProto, stash: dict[str, onnx.TensorProto], wanted: int
) -> dict[str, _Clamped]:
    """Fill the weights again, rounded where the converter changed their type."""
    import onnx

    clamped: dict[str, _Clamped] = {}
    for graph in graphs_within(model.graph):
        for tensor in graph.initializer:
            held = stash.pop(tensor.name, None)
            if held is None:
                continue
            if tensor.data_type == onnx.TensorProto.FLOAT:
                tensor.CopyFrom(held)
                continue
            note = _Clamped()
            data = bytearray()
            for piece in _pieces(values_of(held)):
                data += _rounded(piece, wanted, note).tobytes()
            tensor.dims[:] = held.dims
            tensor.raw_data = bytes(data)
            size = math.prod(held.dims)
            note.all_small = note.small > size / 2
            if note.small <= _NOTABLE_SHARE * size:
                note.small = 0
            if note.small or note.large:
                clamped[tensor.name] = note
    return clamped


def _pieces(values: NDArray[Any]) -> Iterator[NDArray[Any]]:
    for start in range(0, values.size, _PIECE):
        yield values[start : start + _PIECE]


def _rounded(values: NDArray[Any], wanted: int, note: _Clamped) -> NDArray[Any]:
    import ml_dtypes
    import numpy as np
    import onnx

    if wanted == onnx.TensorProto.BFLOAT16:  # the range of float32: nothing to clamp
        rounded: NDArray[Any] = values.astype(ml_dtypes.bfloat16)
        return rounded
    sizes = np.abs(values)
    small = (sizes > 0) & (sizes < _TINIEST)
    large = np.isfinite(values) & (sizes > _LARGEST)
    if small.any():
        note.small += int(np.count_nonzero(small))
        note.smallest = min(note.smallest, float(sizes[small].min()))
        values = np.where(small, np.copysign(np.float32(_TINIEST), values), values)
    if large.any():
        note.large += int(np.count_nonzero(large))
        note.largest = max(note.largest, float(sizes[large].max()))
        values = np.where(large, np.copysign(np.float32(_LARGEST), values), values)
    return values.astype(np.float16)


def _to_bfloat16(model: onnx.ModelProto) -> None:
    """Call every half-precision type that the converter wrote bfloat16."""
    import ml_dtypes
    import numpy as np
    from onnx import TensorProto, numpy_helper

    half, brain = TensorProto.FLOAT16, TensorProto.BFLOAT16
    for graph in graphs_within(model.graph):
        for value in (*graph.input, *graph.output):
            if value.type.tensor_type.elem_type == half:
                value.type.tensor_type.elem_type = brain
        for tensor in graph.initializer:
            if tensor.data_type == half:
                tensor.data_type = brain
        for node in graph.node:
            for attribute in node.attribute:
                if attribute.name in ("to", "dtype") and attribute.i == half:
                    attribute.i = brain
                if attribute.HasField("t") and attribute.t.data_type == half:
                    values = numpy_helper.to_array(attribute.t).astype(np.float32)
                    attribute.t.CopyFrom(
                        numpy_helper.from_array(values.astype(ml_dtypes.bfloat16), attribute.t.name)
                    )


def _clamping_notes(clamped: dict[str, _Clamped], base: str) -> tuple[str, ...]:
    """Say which weights were changed because the type can't hold them.

    Values that are too large, and weights that are nothing but tiny values (an epsilon), change
    what the model computes: they are named. Tiny values among others are counted.
    """
    lines = []
    grave = {name: note for name, note in clamped.items() if note.large or note.all_small}
    for name, note in list(grave.items())[:_NAMED]:
        if note.all_small:
            lines.append(
                f"{base} can't hold {name!r} (down to {note.smallest:.3g}): "
                f"{_values(note.small)} became {_TINIEST:.3g}"
            )
        if note.large:
            lines.append(
                f"{base} can't hold {name!r} (up to {note.largest:.3g}): "
                f"{_values(note.large)} became {_LARGEST:g}"
            )
    if len(grave) > _NAMED:
        lines.append(f"{base}: values of {len(grave) - _NAMED} more weights were clamped")
    tiny = [note for note in clamped.values() if note.small and not note.all_small]
    if tiny:
        lines.append(
            f"{base}: {sum(note.small for note in tiny)} tiny values among those of {len(tiny)} "
            f"weights became {_TINIEST:.3g}"
        )
    return tuple(lines)


def _values(count: int) -> str:
    return "1 value" if count == 1 else f"{count} values"


def tell_apart(model: onnx.ModelProto) -> None:
    """Rename float weights of inner graphs whose names mean something else elsewhere, too.

    Args:
        model: Constants are initialisers already. Nodes that read a renamed weight, in its graph
            and in those inside it, follow.
    """
    from onnx import TensorProto

    main, *inner = graphs_within(model.graph)
    meanings = Counter(name for graph in (main, *inner) for name in _defined(graph))
    for number, graph in enumerate(inner, start=1):
        renamed = {}
        for tensor in graph.initializer:
            if tensor.data_type == TensorProto.FLOAT and meanings[tensor.name] > 1:
                renamed[tensor.name] = _free(f"{tensor.name}/{graph.name}", number, meanings)
        if renamed:
            _rename(graph, renamed)


def _defined(graph: onnx.GraphProto) -> set[str]:
    """Names that mean a value of this graph."""
    values = {value.name for value in graph.input}
    values |= {tensor.name for tensor in graph.initializer}
    values |= {tensor.values.name for tensor in graph.sparse_initializer}
    return values | {name for node in graph.node for name in node.output if name}


def _free(wanted: str, number: int, meanings: Counter[str]) -> str:
    """A name that nothing has: as wanted, or with the graph's number and more behind it."""
    name = wanted
    while meanings[name]:
        name = f"{name}/{number}"
    meanings[name] = 1
    return name


def _rename(graph: onnx.GraphProto, renamed: Mapping[str, str]) -> None:
    """Write other names where a graph, or one inside it that does not hide them, uses these."""
    for value in (*graph.initializer, *graph.input, *graph.output, *graph.value_info):
        value.name = renamed.get(value.name, value.name)
    for node in graph.node:
        for index, name in enumerate(node.input):
            node.input[index] = renamed.get(name, name)
        for attribute in node.attribute:
            held = [attribute.g] if attribute.HasField("g") else []
            for below in (*held, *attribute.graphs):
                hidden = _defined(below)
                left = {old: new for old, new in renamed.items() if old not in hidden}
                if left:
                    _rename(below, left)
