"""A size for every symbolic dimension of a model, from whatever knows it first.

Sizes that don't fit each other make a refusal: that combination becomes a row, the others go on.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

from pytest_ortbench.core.case import SymbolSize
from pytest_ortbench.core.dataset import OWN_DATA
from pytest_ortbench.core.errors import CarriedFailure, OrtbenchError, UsageError
from pytest_ortbench.core.failures import case_failure
from pytest_ortbench.core.generation import CacheTensor
from pytest_ortbench.core.model import AxisRole, Model, TensorInfo
from pytest_ortbench.core.model_spec import CONFIG
from pytest_ortbench.models.metadata import file_beside
from pytest_ortbench.models.symbols import free_symbols, named_shapes
from pytest_ortbench.models.well_known import is_past, past_symbol
from pytest_ortbench.planning.batch_axis import BatchAxis, find_batch
from pytest_ortbench.planning.default_sizes import PAST, Place, default_size, last_position
from pytest_ortbench.planning.graph_counts import companion_sizes, graph_counts
from pytest_ortbench.planning.real_inputs import StoredInput


class RefusedCombination(CarriedFailure):
    """A combination that can't run as it was asked; it becomes a row, and the others go on."""


def refusal(message: str, *, hint: str = "") -> RefusedCombination:
    """Make one of kind ``unsupported`` about the inputs."""
    return RefusedCombination(case_failure(message, hint))


#: How an origin that needs no further word is told.
_HOW = {
    "batch": "batch axis",
    "dims": "--ort-dims",
    "catalogue": "catalogue",
    "builder": "the model's default",
    "graph": "fixed by a consumer in the graph",
    "computed": "computed",
}


@dataclass(slots=True, kw_only=True)
class Sizes:
    """Sizes by symbol, and where each came from."""

    values: dict[str, int] = field(default_factory=dict)
    known: dict[str, SymbolSize] = field(default_factory=dict)

    def put(self, symbol: str, value: int, origin: str, how: str = "") -> None:
        """Set a size unless something with more say has set it already.

        Args:
            symbol: The dimension.
            value: Its size.
            origin: A key of :data:`~pytest_ortbench.core.case.SIZE_ORIGINS`.
            how: The origin for people, where there is more to say than which it is.
        """
        if symbol not in self.values:
            self.values[symbol] = value
            self.known[symbol] = _size(symbol, value, origin, how)

    def tie(self, ties: Mapping[str, str]) -> None:
        """Give symbols that the graph ties together one size, where one of them has a size."""
        for symbol, leader in ties.items():
            for one, other in ((symbol, leader), (leader, symbol)):
                if one in self.values:
                    self.put(other, self.values[one], "graph", f"the graph ties it to {one}")

    def of(self, symbol: str, value: int) -> SymbolSize:
        """Return a size with its origin; an expression that nobody set was computed."""
        known = self.known.get(symbol)
        if known is None:
            return _size(symbol, value, "computed")
        return known if known.size == value else replace(known, size=value)


def _size(symbol: str, value: int, origin: str, how: str = "") -> SymbolSize:
    return SymbolSize(symbol=symbol, size=value, origin=origin, how=how or _HOW[origin])


@dataclass(frozen=True, slots=True, kw_only=True)
class CacheSize:
    """An axis of a cache that the model declares by a symbol, and that is neither batch nor length.

    Attributes:
        symbol: The symbol.
        size: Its size, 0 where nothing tells it.
        input: The first input that has it.
        axis: Which axis of that.
    """

    symbol: str
    size: int
    input: str
    axis: int


class ModelAxes:
    """What the inputs of a model say about its axes: worked out once, for all sizes it is given.

    Args:
        model: The model.

    Attributes:
        model: The model.
        shapes: The shapes of its inputs, with a name for every unset axis.
    """

    def __init__(self, model: Model) -> None:
        self.model = model
        self.shapes = named_shapes(model.inputs)

    @cached_property
    def symbols(self) -> tuple[str, ...]:
        """Dimensions that can be set, in order.

        Unset ones are called ``<input>_dim_<axis>``; an expression (``P+S``) counts as its symbols.
        """
        return free_symbols(self.shapes)

    @cached_property
    def batch_axis(self) -> BatchAxis:
        """The batch axis, or why there is none."""
        return find_batch(self.model.inputs, self.shapes)

    def batch_of(self, batch: int | None, dims: Mapping[str, int]) -> int:
        """Return the batch size that is really fed.

        Args:
            batch: What was asked for; ``None``: nobody asked.
            dims: Sizes that the user set, which may name the batch symbol.
        """
        named = next((dims[name] for name in self.batch_axis.symbols if name in dims), None)
        if named is not None:
            return named
        return self.batch_axis.unasked if batch is None else batch

    def no_batch(self, batch: int) -> str:
        """Return why one inference is one item; empty where ``batch`` counts items."""
        return self.batch_axis.no_batch if batch == 1 else ""

    @cached_property
    def cache(self) -> tuple[str, str]:
        """Symbols of the cache's length and of the new tokens, empty where there is none."""
        decoder = self.model.decoder
        if decoder is not None:
            lengths = (self._length_of(tensor) for tensor in decoder.cache)
            return next(filter(None, lengths), ""), self._symbol(decoder.ids, 1)
        inputs, shapes, batch = self.model.inputs, self.shapes, self.batch_axis.symbols
        past = past_symbol(inputs, shapes, batch[0] if batch else "")
        if not past or past in batch:
            return "", ""
        for info, shape in zip(inputs, shapes, strict=True):
            if shape is None or is_past(info.name) or len(shape) not in (2, 3):
                continue
            size = shape[1]
            if isinstance(size, str) and size in self.symbols and size not in (*batch, past):
                if "total" in size.lower() or "mask" in info.name.lower():
                    continue
                return past, size
        return past, ""

    @property
    def fixed_tokens(self) -> int:
        """New tokens of a decoder that takes no other number of them; 0 for any other model."""
        decoder = self.model.decoder
        ids = "" if decoder is None else decoder.ids
        shape = next((info.shape for info in self.model.inputs if info.name == ids), None)
        size = shape[1] if shape is not None and len(shape) > 1 else 0
        return size if isinstance(size, int) else 0

    @cached_property
    def cache_sizes(self) -> tuple[CacheSize, ...]:
        """Open axes of a decoder's cache beside batch and length, each symbol once."""
        decoder = self.model.decoder
        sizes: dict[str, CacheSize] = {}
        for tensor in () if decoder is None else decoder.cache:
            for axis, size in enumerate(tensor.shape):
                symbol = self._symbol(tensor.past, axis)
                if symbol and axis not in (tensor.batch_axis, tensor.length_axis):
                    known = CacheSize(symbol=symbol, size=size, input=tensor.past, axis=axis)
                    sizes.setdefault(symbol, known)
        return tuple(sizes.values())

    def _length_of(self, tensor: CacheTensor) -> str:
        """Symbol of a cache's length, empty where that is fixed, or is what an encoder said."""
        if tensor.is_of_encoder or tensor.window:
            return ""
        return self._symbol(tensor.past, tensor.length_axis)

    def _symbol(self, name: str, axis: int) -> str:
        """Symbol of an axis of an input, empty where that is a size or made of others."""
        shape = next(
            shape
            for info, shape in zip(self.model.inputs, self.shapes, strict=True)
            if info.name == name
        )
        size = shape[axis] if shape is not None and axis < len(shape) else 0
        return size if isinstance(size, str) and size in self.symbols else ""

    @cached_property
    def roles(self) -> list[tuple[str, AxisRole]]:
        """What the graph says about each symbol."""
        return [
            (symbol, role)
            for info, shape in zip(self.model.inputs, self.shapes, strict=True)
            for role in info.roles
            if isinstance(symbol := None if shape is None else shape[role.axis], str)
        ]

    @cached_property
    def ties(self) -> dict[str, str]:
        """Symbols that must be equal, each with the one that stands for all.

        The graph adds or multiplies them, or they are lengths of one cache, or of its new tokens.
        """
        ties = {symbol: role.tied_to for symbol, role in self.roles if role.tied_to}
        return {**ties, **self._ties_of_decoder()}

    def _ties_of_decoder(self) -> dict[str, str]:
        decoder, (past, tokens) = self.model.decoder, self.cache
        if decoder is None:
            return {}
        batch = self._symbol(decoder.ids, 0)
        pairs = [
            pair
            for tensor in decoder.cache
            for pair in (
                (self._length_of(tensor), past),
                (self._symbol(tensor.past, tensor.batch_axis), batch),
            )
        ]
        if decoder.positions:
            pairs.append((self._symbol(decoder.positions, -1), tokens))
        return {
            symbol: leader for symbol, leader in pairs if symbol and leader != symbol and leader
        }

    @cached_property
    def totals(self) -> tuple[str, ...]:
        """Symbols of the length of past and new tokens together."""
        decoder = self.model.decoder
        masked = self._symbol(decoder.mask, 1) if decoder is not None and decoder.mask else ""
        return tuple(
            name
            for name in self.symbols
            if (name == masked or "total" in name.lower()) and name not in self.cache
        )

    @property
    def of_requests(self) -> frozenset[str]:
        """Symbols whose size follows from how long a request is, so that nobody can set it."""
        if self.model.decoder is None:
            return frozenset()
        return frozenset((*self.cache, *self.totals)) - {""}

    @cached_property
    def defaults(self) -> dict[str, tuple[int, str]]:
        """The documented default of every symbol, and what it was taken for."""
        places: dict[str, list[Place]] = {}
        for info, shape in zip(self.model.inputs, self.shapes, strict=True):
            if shape is None:
                continue
            fixed = tuple(self.model.implied_dims.get(str(size), size) for size in shape)
            for axis, size in enumerate(shape):
                if isinstance(size, str):
                    places.setdefault(size, []).append(Place(info=info, shape=fixed, axis=axis))
        return {
            name: default_size(name, places.get(name, ()), self.model.told_sizes)
            for name in self.symbols
        }


def find_sizes(
    axes: ModelAxes, batch: int, dims: Mapping[str, int], stored: Mapping[str, StoredInput]
) -> Sizes:
    """Find a size for every symbol of a model.

    Args:
        axes: The axes of the model.
        batch: Size of its batch axis, also where ``dims`` names it.
        dims: Sizes that the user set.
        stored: Real inputs by name.

    Raises:
        UsageError: if real inputs don't fit the declared shapes or each other.
        RefusedCombination: if they don't fit what was asked.
    """
    model = axes.model
    sizes = Sizes()
    for name, value in dims.items():
        sizes.put(name, value, "batch" if name in axes.batch_axis.symbols else "dims")
    for name in axes.batch_axis.symbols:
        sizes.put(name, batch, "batch")
    if stored:
        _take_stored(axes, sizes, stored)
    origin = "builder" if model.source.startswith("builtin:") else "catalogue"
    for name in axes.symbols:
        if name in model.default_dims:
            sizes.put(name, model.default_dims[name], origin)
        if name in model.implied_dims:
            sizes.put(name, model.implied_dims[name], "graph")
    sizes.tie(axes.ties)
    for symbol, role in axes.roles:
        if role.tied_size:
            sizes.put(symbol, role.tied_size, "graph")
    _put_cache_sizes(axes, sizes)
    past, tokens = axes.cache
    if past and (tokens or axes.fixed_tokens):
        _put_past(axes, sizes, past)
    if past and tokens:
        sizes.put(tokens, 1, "default", "default: one token")
    for symbol, count, what in graph_counts(model, axes.symbols, sizes.values):
        sizes.put(symbol, count, "default", f"default: {what}")
    for symbol, count, what in companion_sizes(model, axes.shapes):
        sizes.put(symbol, count, "default", f"default: {what}")
    unset = [name for name in axes.symbols if name not in sizes.values]
    totals = [name for name in unset if name in axes.totals]
    for name in unset:
        if name not in totals:
            sizes.tie(axes.ties)
            _put_default(axes, sizes, name)
    sizes.tie(axes.ties)
    for name in totals:
        new = sizes.values[tokens] if tokens else axes.fixed_tokens
        if past and new:
            total = sizes.values[past] + new
            sizes.put(name, total, "sum", f"{past} + {tokens or new}")
        elif new and model.decoder is not None and model.decoder.window:
            sizes.put(name, new, "sum", f"{tokens or new}, the windows being empty")
        _put_default(axes, sizes, name)
    return sizes


def _put_past(axes: ModelAxes, sizes: Sizes, past: str) -> None:
    """Set the length of a cache, never longer than a table of positions with a token behind it."""
    lasts = [last for info in axes.model.inputs if (last := last_position(info)) is not None]
    size, what = PAST, "default: past length"
    if lasts and min(lasts) < PAST:
        size, what = max(min(lasts), 1), f"{what}, all that there are positions for"
    sizes.put(past, size, "default", what)


def _put_cache_sizes(axes: ModelAxes, sizes: Sizes) -> None:
    """Set heads and their sizes as they are told.

    Raises:
        RefusedCombination: for those that nobody tells: no size of a cache is a usual one.
    """
    for known in axes.cache_sizes:
        if known.size:
            told = axes.model.told_sizes.get("head_size") or axes.model.told_sizes.get("heads")
            # Whoever built the model wrote it down.
            sizes.put(known.symbol, known.size, "builder", "" if told is None else told.why)
    unknown = [known for known in axes.cache_sizes if known.symbol not in sizes.values]
    if unknown:
        places = ", ".join(
            f"{known.symbol} (axis {known.axis} of {known.input})" for known in unknown
        )
        names = ",".join(f"{known.symbol}:SIZE" for known in unknown)
        by_hand = (
            f"write --ort-dims={names}, with a number in place of "
            f"{'SIZE' if len(unknown) == 1 else 'each SIZE'}"
        )
        has_config = file_beside(Path(axes.model.path), CONFIG) is not None
        raise refusal(
            f"sizes of the cache of model {axes.model.name!r} are not known: {places}",
            hint=f"{by_hand[0].upper()}{by_hand[1:]}"
            if has_config
            else f"Put the model's {CONFIG} beside the file. If you do not have it, {by_hand}",
        )


def _put_default(axes: ModelAxes, sizes: Sizes, name: str) -> None:
    size, what = axes.defaults[name]
    sizes.put(name, size, "default", f"default: {what}")


def _take_stored(axes: ModelAxes, sizes: Sizes, stored: Mapping[str, StoredInput]) -> None:
    """Sizes of real inputs: they must fit the declared shapes, and what was asked.

    As ONNX Runtime does, arrays of any shape are taken for a declared scalar, and one symbol may
    have several sizes, which is said.
    """
    for info, shape in zip(axes.model.inputs, axes.shapes, strict=True):
        item = stored.get(info.name)
        if item is None or item.shape is None or not shape:
            continue
        if len(shape) != len(item.shape):
            raise misfit(
                info, item, f"the array must have {len(shape)} ax{'i' if len(shape) == 1 else 'e'}s"
            )
        for axis, (declared, size) in enumerate(zip(shape, item.shape, strict=True)):
            if isinstance(declared, int) and declared != size:
                raise misfit(info, item, f"axis {axis} is fixed to {declared}")
            if isinstance(declared, str) and declared in axes.symbols:
                known = sizes.known.get(declared)
                if known is not None and known.size != size:
                    if known.origin != "file":
                        raise _conflict(axes, info, item, shape, sizes.known[declared])
                    several = f"in {_shown(item.path)}, where it has several sizes"
                    sizes.known[declared] = replace(known, how=several)
                sizes.put(declared, size, "file", f"in {_shown(item.path)}")


def _shown(path: Path) -> str:
    """Name a file of arrays: one that was made of the user's own files by the name of these."""
    return path.stem if path.parent.parent.name == OWN_DATA else path.name


def misfit(info: TensorInfo, item: StoredInput, rule: str) -> UsageError:
    """The error for a stored array that a model can't take: fed beside declared shape."""
    return UsageError(
        f"{str(item.path)!r} contains an array of shape {list(item.shape or ())} for input "
        f"{info.name!r}, which the model declares as {_declared_shape(info)}: {rule}",
        place="--ort-inputs",
        hint=_array_to_store(info, item),
    )


def _array_to_store(info: TensorInfo, item: StoredInput) -> str:
    """Advise a shape that fits the declared one, with the sizes of the array where it is open."""
    declared, stored = info.shape or (), item.shape or ()
    if all(isinstance(size, int) for size in declared):
        return f"Store an array of shape {list(declared)}"
    if len(declared) != len(stored):
        stored = (1,) * len(declared)
    pairs = zip(declared, stored, strict=True)
    fitting = [size if isinstance(size, int) else held for size, held in pairs]
    names = dict.fromkeys("?" if size is None else size for size in declared)
    free = " and ".join(name for name in names if isinstance(name, str))
    return (
        f"Store an array of shape {_declared_shape(info)}, e.g. {fitting}. {free} may be any size"
    )


def _conflict(
    axes: ModelAxes,
    info: TensorInfo,
    item: StoredInput,
    shape: tuple[int | str, ...],
    known: SymbolSize,
) -> OrtbenchError:
    symbol = known.symbol
    whose = "the requested batch size"
    if known.origin == "dims":
        whose = known.how
        if axes.model.workloads or any(axes.cache):  # nobody may have typed it
            whose += ", or the workload that the case is named after"
    text = (
        f"{str(item.path)!r} contains an array of shape {list(item.shape or ())} for input "
        f"{info.name!r} (declared as {_declared_shape(info)}), but {symbol} is to be {known.size} "
        f"({whose})"
    )
    size = (item.shape or ())[shape.index(symbol)]
    option = (
        f"--ort-batch-sizes={size}" if known.origin == "batch" else f"--ort-dims={symbol}:{size}"
    )
    return refusal(
        text,
        hint=f"To measure the file, write {option}. To measure {symbol} = {known.size}, leave out "
        "--ort-inputs",
    )


def _declared_shape(info: TensorInfo) -> str:
    sizes = ("?" if size is None else str(size) for size in info.shape or ())
    return f"[{', '.join(sizes)}]"
