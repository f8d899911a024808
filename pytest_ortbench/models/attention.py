"""What operators say about the axes of a cache of keys or values: batch, heads, length, size.

Widths are followed through operators that shape inference does not know: a ``MatMulNBits`` says how
wide its result is, and a rotary embedding changes no shape.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from pytest_ortbench.models.consumers import attribute
from pytest_ortbench.models.dataflow import Dataflow, Scope, Use
from pytest_ortbench.models.implied import AxisFact
from pytest_ortbench.models.inspection import op_name
from pytest_ortbench.models.shape_inference import Shape

if TYPE_CHECKING:
    import onnx

GROUPED = "com.microsoft::GroupQueryAttention"
SPARSE = "com.microsoft::SparseAttention"
_MULTI_HEAD = "com.microsoft::MultiHeadAttention"
_DECODING = "com.microsoft::DecoderMaskedMultiHeadAttention"
_PACKED = "com.microsoft::Attention"
_STANDARD = "Attention"

#: Operators between a weight and what reads its product.
_DEEPEST = 8
#: Operators whose first output has the shape of an input, and which input that is.
_LIKE_INPUT: dict[str, int] = {
    **dict.fromkeys(("Cast", "Identity", "Dropout", "Clip", "LayerNormalization"), 0),
    **dict.fromkeys(("RMSNormalization", "SimplifiedLayerNormalization", "RotaryEmbedding"), 0),
    "com.microsoft::RotaryEmbedding": 0,
    "com.microsoft::SimplifiedLayerNormalization": 0,
    "com.microsoft::SkipLayerNormalization": 0,
    "com.microsoft::SkipSimplifiedLayerNormalization": 0,
    "com.microsoft::BiasGelu": 0,
}
_BROADCAST = frozenset({"Add", "Sub", "Mul", "Div"})
_PRODUCTS: dict[str, int] = {
    "MatMul": 1,
    "com.microsoft::FusedMatMul": 1,
    "MatMulInteger": 1,
    "com.microsoft::MatMulIntegerToFloat": 1,
    "com.microsoft::DynamicQuantizeMatMul": 1,
    "QLinearMatMul": 3,
}
_N_BITS = "com.microsoft::MatMulNBits"


def cache_facts(
    uses: Iterable[Use], flow: Dataflow, shape: Sequence[int | str] | None
) -> Iterator[AxisFact]:
    """Yield what the consumers of a cache say about its axes, as far as its layout is kept.

    Args:
        uses: What reads it.
        flow: The graph. Its shapes are only inferred for sizes that are open.
        shape: The declared shape.
    """
    for use in uses:
        if use.axes is None or shape is None or len(use.axes) != len(shape):
            continue
        rule = _RULES.get((use.op, use.index)) or (_concat if use.op == "Concat" else None)
        reading = _CacheRead(use=use, flow=flow, seen=tuple(shape[axis] for axis in use.axes))
        for fact in () if rule is None else rule(reading):
            if -len(use.axes) <= fact.axis < len(use.axes):
                yield replace(fact, axis=use.axes[fact.axis])


@dataclass(frozen=True, slots=True, kw_only=True)
class _CacheRead:
    """An operator that reads a cache.

    Attributes:
        use: The operator.
        flow: The graph.
        seen: Declared sizes of the axes, as the operator sees them.
    """

    use: Use
    flow: Dataflow
    seen: tuple[int | str, ...]

    @property
    def node(self) -> onnx.NodeProto:
        """The operator itself."""
        return self.use.node

    def is_open(self, axis: int) -> bool:
        """Whether the model leaves a size open."""
        return axis < len(self.seen) and isinstance(self.seen[axis], str)

    def name(self, place: int) -> str:
        """Name of another input, empty where it is left out."""
        names = self.node.input
        return names[place] if place < len(names) else ""

    def sizes(self, place: int) -> Shape | None:
        """Shape of another input."""
        return _shape_of(self.flow, self.use.scope, self.name(place))

    def width(self, place: int) -> int | None:
        """Last size of another input."""
        sizes = self.sizes(place)
        size = sizes[-1] if sizes else None
        return size if isinstance(size, int) and size > 0 else None


def window_of(node: onnx.NodeProto) -> int:
    """Return the tokens that an operator keeps of its cache where it drops earlier ones; else 0.

    ONNX Runtime 1.32 takes a buffer that is longer than that on the CPU only, and none that is
    shorter.
    """
    if op_name(node) != GROUPED or not attribute(node, "sliding_window_cache", 0):
        return 0
    return max(0, attribute(node, "local_window_size", 0))


def _of_heads(heads: int, size: int | None, window: int = 0) -> Iterator[AxisFact]:
    """``[batch, heads, length, size]``."""
    yield AxisFact(axis=0, is_batch=True)
    if heads > 0:
        yield AxisFact(axis=1, size=heads)
    yield AxisFact(axis=2, is_length=True, size=window or None)
    if size:
        yield AxisFact(axis=3, size=size)


def _grouped(reading: _CacheRead) -> Iterator[AxisFact]:
    """Heads and their size: of the width of the queries, keys and values among them if packed."""
    node = reading.node
    heads = attribute(node, "num_heads", 0)
    cached = attribute(node, "kv_num_heads", heads)
    size = None
    if reading.is_open(3):
        packed = not any(node.input[1:3])
        size = _quotient(reading.width(0), heads + 2 * cached if packed else heads)
        size = size or (None if packed else _quotient(reading.width(1), cached))
        size = size or _quotient(_width_given(reading), heads)
    yield from _of_heads(cached, size, window_of(node))


def _multi_head(reading: _CacheRead) -> Iterator[AxisFact]:
    """Each head has as much of the width of the queries; of that of the values, values do."""
    use = reading.use
    heads = attribute(use.node, "num_heads", 0)
    size = None
    if reading.is_open(3) and use.op == _MULTI_HEAD and not reading.name(1):
        sizes = reading.sizes(0)
        size = sizes[4] if sizes is not None and len(sizes) == 5 else None
    elif reading.is_open(3):
        is_value = use.index == (6 if use.op == _DECODING else 7)
        size = _quotient(reading.width(2), heads) if is_value else None
        size = size or _quotient(reading.width(0), heads)
    yield from _of_heads(heads, size if isinstance(size, int) else None)


def _packed(reading: _CacheRead) -> Iterator[AxisFact]:
    """``[2, batch, heads, length, size]``."""
    heads = attribute(reading.node, "num_heads", 0)
    size = _quotient(reading.width(1), 3 * heads) if reading.is_open(4) else None
    yield AxisFact(axis=0, size=2)
    for fact in _of_heads(heads, size):
        yield replace(fact, axis=fact.axis + 1)


def _standard(reading: _CacheRead) -> Iterator[AxisFact]:
    """Heads by the attributes, or by the new keys or values where these have four axes."""
    queries = attribute(reading.node, "q_num_heads", 0)
    heads = attribute(reading.node, "kv_num_heads", queries)
    place = 1 if reading.use.index == 4 else 2
    if not reading.is_open(1) and not reading.is_open(3):
        yield from _of_heads(heads, None)
        return
    new = reading.sizes(place)
    if new is not None and len(new) == 4:
        size = new[3] if isinstance(new[3], int) else None
        yield from _of_heads(new[1] if isinstance(new[1], int) else heads, size)
        return
    size = _quotient(reading.width(place), heads)
    if size is None and place == 1:
        size = _quotient(reading.width(0), queries)
    yield from _of_heads(heads, size)


def _concat(reading: _CacheRead) -> Iterator[AxisFact]:
    """What is appended is as large as the cache along all other axes."""
    rank = len(reading.seen)
    along = attribute(reading.node, "axis", 0) % rank
    yield AxisFact(axis=along, is_length=True)
    # The batch is no size that new values could tell.
    told = [axis for axis in range(rank - 3 if rank > 3 else 0, rank) if axis != along]
    if not any(reading.is_open(axis) for axis in told):
        return
    for place in range(len(reading.node.input)):
        sizes = reading.sizes(place) if place != reading.use.index else None
        if sizes is None or len(sizes) != rank:
            continue
        for axis in told:
            size = sizes[axis]
            if isinstance(size, int) and size > 0:
                yield AxisFact(axis=axis, size=size)


_Rule = Callable[[_CacheRead], Iterator[AxisFact]]

_RULES: dict[tuple[str, int], _Rule] = {
    (GROUPED, 3): _grouped,
    (GROUPED, 4): _grouped,
    (SPARSE, 3): _grouped,
    (SPARSE, 4): _grouped,
    (_MULTI_HEAD, 6): _multi_head,
    (_MULTI_HEAD, 7): _multi_head,
    (_DECODING, 5): _multi_head,
    (_DECODING, 6): _multi_head,
    (_PACKED, 4): _packed,
    (_STANDARD, 4): _standard,
    (_STANDARD, 5): _standard,
}


def _quotient(width: int | None, parts: int) -> int | None:
    return width // parts if width and parts > 0 and width % parts == 0 else None


def _width_given(reading: _CacheRead) -> int | None:
    """Width of what an operator gives, by the weight that it is multiplied with."""
    scope = reading.use.scope
    for node, place in scope.readers.get(reading.node.output[0], ()):
        op = op_name(node)
        if op == _N_BITS and place == 0:
            return attribute(node, "K", 0) or None
        if op in _PRODUCTS and place == 0:
            weight = reading.flow.shape(scope, node.input[_PRODUCTS[op]])
            width = weight[-2] if weight is not None and len(weight) > 1 else None
            return width if isinstance(width, int) else None
    return None


def _shape_of(flow: Dataflow, scope: Scope, name: str, depth: int = 0) -> Shape | None:
    """Return the shape of a value; where inference ends, that of what it is made of."""
    if not name or depth > _DEEPEST:
        return None
    known = flow.shape(scope, name)
    if known and isinstance(known[-1], int) and (depth or len(known) < 4):
        return known
    node = scope.makers.get(name)
    made = None if node is None else _made_shape(flow, scope, name, depth)
    if made is None:
        return known
    return made if known is None or len(known) != len(made) else _joined(known, made)


def _joined(known: Shape, made: Shape) -> Shape:
    pairs = zip(known, made, strict=True)
    return tuple(size if isinstance(size, int) else other for size, other in pairs)


def _made_shape(flow: Dataflow, scope: Scope, name: str, depth: int) -> Shape | None:
    node = scope.makers[name]
    op = op_name(node)
    if op == _N_BITS or op in _PRODUCTS:
        read = _shape_of(flow, scope, node.input[0], depth + 1)
        leading = (None, None) if read is None else read[:-1]
        if op == _N_BITS:
            return (*leading, attribute(node, "N", 0) or None)
        weight = flow.shape(scope, node.input[_PRODUCTS[op]])
        return None if not weight else (*leading, weight[-1])
    if op in _LIKE_INPUT:
        return _shape_of(flow, scope, node.input[_LIKE_INPUT[op]], depth + 1)
    if op in _BROADCAST:
        shapes = [_shape_of(flow, scope, item, depth + 1) for item in node.input]
        return max((shape for shape in shapes if shape), key=len, default=None)
    if op == "Transpose":
        read = _shape_of(flow, scope, node.input[0], depth + 1)
        order = next((tuple(item.ints) for item in node.attribute if item.name == "perm"), None)
        if read is None or order is None or sorted(order) != list(range(len(read))):
            return None
        return tuple(read[axis] for axis in order)
    if op == "Reshape":
        return _reshaped(flow, scope, node.input[1], depth)
    return None


def _reshaped(flow: Dataflow, scope: Scope, target: str, depth: int) -> Shape | None:
    """Sizes of a reshape's target, which may be joined from constants and sizes."""
    numbers = flow.constant(scope, target)
    if numbers is not None:
        return tuple(int(size) if size > 0 else None for size in numbers.reshape(-1))
    node = scope.makers.get(target)
    if node is None or op_name(node) != "Concat" or depth > _DEEPEST:
        return None
    parts = [flow.constant(scope, name) for name in node.input]
    return tuple(
        int(part.reshape(-1)[0]) if part is not None and part.size == 1 and part.min() > 0 else None
        for part in parts
    )
