"""Which axis of a model is the batch axis, or why it has none.

The graph decides: an axis that an operator mixes along, or that some output does not have, is no
batch, whatever its name. Where the graph can't be followed, names and places do. Points, nodes,
boxes and the like are counts, even where a graph treats each by itself.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

from pytest_ortbench.core.model import AxisRole, TensorInfo
from pytest_ortbench.models.well_known import is_length
from pytest_ortbench.planning.default_sizes import is_count_name, is_made_up, is_sequence_name

Shapes = Sequence[tuple[int | str, ...] | None]

#: Names of a batch axis, the plainest first: of [B, 3, N] only B is the batch.
_BATCH_NAMES = tuple(
    re.compile(rf"({name})\Z") for name in (r"batch.*|.*batch|.*batch_?size", r"b|bs", r"n")
)
_STATE_NAME = re.compile(
    r"(^|[_./])(h|c|h0|c0|hn|cn|h_0|c_0|h_in|c_in|.*state.*|hidden.*|cell)([_./]|$)"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchAxis:
    """What is known about the batch axis.

    Attributes:
        symbols: Symbols that all take the batch size; empty if it is not dynamic.
        fixed: Size that the model fixes, ``None`` if it fixes none.
        where: The input and axis, for people.
        certain: Whether a consumer reads the fixed axis as the batch, and all that do agree.
        agreed: Whether every input that could have a batch fixes the same size.
        shown: Whether the graph shows that the fixed axis is the batch, or is not known.
        unranked: An input whose number of axes the model does not say, if one has no batch then.
        refused: What is on a first axis or named like a batch, and is none, with what says so.
    """

    symbols: tuple[str, ...] = ()
    fixed: int | None = None
    where: str = ""
    certain: bool = False
    agreed: bool = False
    shown: bool = False
    unranked: str = ""
    refused: tuple[tuple[str, str], ...] = ()

    @property
    def unasked(self) -> int:
        """Batch of a case for which nobody asked for one: what the graph fixes as one, else 1.

        A first size that nothing reads as a batch (rows, heads, states), or beside which another
        input has another one, makes no items: then one inference is one item.
        """
        counts = self.certain and self.agreed and self.shown and not self.unranked
        return self.fixed if counts and self.fixed else 1

    @property
    def no_batch(self) -> str:
        """Why one inference is one item; empty where there is a batch axis."""
        if self.unranked:
            return f"the model does not say how many axes {self.unranked} has"
        if self.symbols or self.fixed == 1 or self.unasked > 1:
            return ""
        if self.refused:
            return "; ".join(f"{name} is not a batch axis ({why})" for name, why in self.refused)
        if self.fixed is not None:
            return f"nothing in the graph shows that {self.where} is a batch axis"
        return "no input has a batch axis"


def find_batch(inputs: Sequence[TensorInfo], shapes: Shapes) -> BatchAxis:
    """Decide which symbols are the batch.

    Of those that the graph does not speak against, in this order: a symbol named like one
    (``batch``, ``N``, ``b``) on any axis; the axis that a consumer reads as the batch (axis 1 of
    what an LSTM reads); the symbols and unset sizes on the first axis of the inputs; a size that
    the model fixes there. If the graph shows that one of them is the batch, only those that it
    ties to that one are, and those that it says nothing about.
    """
    roles = _Roles.of(inputs, shapes)
    candidates = _candidates(inputs, shapes)
    symbols = dict.fromkeys(_named(shapes, roles))
    for info, shape in candidates:
        read = shape[info.batch_axis] if info.batch_axis is not None else None
        if isinstance(read, str) and roles.may_be_batch(read) and not symbols.keys() & set(shape):
            symbols[read] = None
    symbols.update(dict.fromkeys(_first_axes(candidates, set(symbols), roles)))
    symbols = dict.fromkeys(roles.of_one_batch(list(symbols)))
    if symbols:
        states = _states(candidates, set(symbols))
        symbols.update(dict.fromkeys(name for name in states if roles.may_be_batch(name)))
        symbols.update(dict.fromkeys(_lengths(inputs, shapes)))
        fixed = _fixed(candidates)
        # Beside a batch that another input fixes, an open one can only be as large.
        return replace(fixed if fixed.certain else BatchAxis(), symbols=tuple(symbols))
    unranked = (
        info.name
        for info, shape in zip(inputs, shapes, strict=True)
        if shape is None and info.type.startswith("tensor(")
    )
    return replace(_fixed(candidates), unranked=next(unranked, ""), refused=roles.refused(shapes))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Roles:
    """What the graph says about each symbol.

    Attributes:
        roles: One role a symbol, ``mixed`` before others; empty where the graph is not known.
        leaders: For a symbol that the graph ties to another, which stands for all of them.
    """

    roles: dict[str, AxisRole]
    leaders: dict[str, str]

    @classmethod
    def of(cls, inputs: Sequence[TensorInfo], shapes: Shapes) -> _Roles:
        roles: dict[str, AxisRole] = {}
        leaders: dict[str, str] = {}
        for info, shape in zip(inputs, shapes, strict=True):
            for role in info.roles:
                symbol = None if shape is None or role.axis >= len(shape) else shape[role.axis]
                if not isinstance(symbol, str):
                    continue
                if symbol not in roles or role.role == "mixed":
                    roles[symbol] = role
                if role.tied_to:
                    leaders[symbol] = role.tied_to
        return cls(roles=roles, leaders=leaders)

    def may_be_batch(self, symbol: str) -> bool:
        """Whether neither the graph nor the name of a symbol says that it is no batch."""
        role = self.roles.get(symbol)
        return not is_count_name(symbol) and (role is None or role.role != "mixed")

    def shown(self, symbol: str) -> bool:
        """Whether the graph shows that a symbol is a batch, or says nothing of it."""
        role = self.roles.get(symbol)
        return role is None or role.role == "batch"

    def of_one_batch(self, symbols: Sequence[str]) -> list[str]:
        """Leave out symbols that the graph shows to be independent of the batch."""
        proven = [name for name in symbols if self._is(name, "batch")]
        if not proven:
            apart = [name for name in symbols if self._is(name, "partial")]
            declared = {self._leader(name) for name in apart if not is_made_up(name)}
            # Each of them is a batch of its own: of texts beside images.
            return (
                [name for name in symbols if name not in apart]
                if len(declared) > 1
                else list(symbols)
            )
        leader = self._leader(proven[0])
        return [
            name
            for name in symbols
            if self._leader(name) == leader
            or not (self._is(name, "batch") or self._is(name, "partial"))
        ]

    def tied_to(self, symbols: Sequence[str]) -> list[str]:
        """Return all symbols that the graph ties to some."""
        leaders = {self._leader(name) for name in symbols}
        return [name for name in self.roles if self._leader(name) in leaders]

    def refused(self, shapes: Shapes) -> tuple[tuple[str, str], ...]:
        """What one would take for the batch, and what says that it is none."""
        leading = [shape[0] for shape in shapes if shape and isinstance(shape[0], str)]
        names = dict.fromkeys(str(name) for name in (*_named(shapes, None), *leading))
        return tuple(
            (name, role.why if role.role == "partial" else f"{role.why} mixes along it")
            for name, role in ((name, self.roles.get(name)) for name in names)
            if role is not None and role.role in ("mixed", "partial")
        )

    def _is(self, symbol: str, word: str) -> bool:
        role = self.roles.get(symbol)
        return role is not None and role.role == word

    def _leader(self, symbol: str) -> str:
        return self.leaders.get(symbol, symbol)


def _named(shapes: Shapes, roles: _Roles | None) -> list[str]:
    """Symbols that are named like a batch; in each shape only those with the plainest name."""
    chosen: dict[str, None] = {}
    passed_over: set[str] = set()
    for shape in shapes:
        symbols = {size for size in shape or () if isinstance(size, str)}
        if roles is not None:
            symbols = {size for size in symbols if roles.may_be_batch(size)}
        if roles is not None and shape and isinstance(shape[0], int):
            # Behind a fixed first axis, ``n`` alone is as often a length.
            plainest = _BATCH_NAMES[0]
            symbols = {
                size for size in symbols if plainest.match(size.lower()) or roles.shown(size)
            }
        ranked = [
            [size for size in symbols if pattern.match(size.lower())] for pattern in _BATCH_NAMES
        ]
        best = next((group for group in ranked if group), [])
        chosen.update(dict.fromkeys(sorted(best)))
        passed_over.update(size for group in ranked for size in group if size not in best)
    return [size for size in chosen if size not in passed_over]


_Candidate = tuple[TensorInfo, "tuple[int | str, ...]"]


def _candidates(inputs: Sequence[TensorInfo], shapes: Shapes) -> list[_Candidate]:
    """Inputs that can have a batch axis: no scalars, and no vectors beside matrices."""
    pairs = [(info, shape) for info, shape in zip(inputs, shapes, strict=True) if shape]
    wide = [(info, shape) for info, shape in pairs if len(shape) > 1]
    read = [(info, shape) for info, shape in pairs if info.batch_axis is not None]
    if wide:
        return wide + [pair for pair in read if pair not in wide]
    return [pair for pair in pairs if pair[0].hint is None or pair[0].hint.kind != "constant"]


def _first_axes(candidates: Sequence[_Candidate], known: set[str], roles: _Roles) -> list[str]:
    """Symbols on first axes; only unset ones beside a batch that is known by name."""
    declared = {size for info, _ in candidates for size in info.shape or () if size is not None}
    found: list[str] = []
    for info, shape in candidates:
        first = shape[0]
        if not isinstance(first, str) or known & set(shape) or is_sequence_name(first):
            continue
        if info.batch_axis not in (None, 0) or not roles.may_be_batch(first):
            continue
        if not known or first not in declared:
            found.append(first)
    if known:
        return found
    # Without a name to go by, half of the inputs must agree that their first axis is open.
    if 2 * len(found) < len(candidates):
        return []
    named = [name for name in found if not is_made_up(name)]
    return [
        name
        for name in found
        if name in (*named[:1], *roles.tied_to(named[:1])) or is_made_up(name)
    ]


def _states(candidates: Sequence[_Candidate], known: set[str]) -> list[str]:
    """Open second axes of recurrent states, ``[layers, ?, size]``."""
    return [
        shape[1]
        for info, shape in candidates
        if len(shape) == 3 and isinstance(shape[0], int) and isinstance(shape[1], str)
        if _STATE_NAME.search(info.name.lower()) and not known & set(shape)
    ]


def _lengths(inputs: Sequence[TensorInfo], shapes: Shapes) -> list[str]:
    """Sizes of inputs that hold one length a row."""
    pairs = zip(inputs, shapes, strict=True)
    return [
        shape[0] for info, shape in pairs if shape and is_length(info) if isinstance(shape[0], str)
    ]


def _fixed(candidates: Sequence[_Candidate]) -> BatchAxis:
    sizes: Counter[int] = Counter()
    where: dict[int, str] = {}
    read: dict[int, None] = {}
    shown: list[bool] = []
    for info, shape in candidates:
        axis = info.batch_axis or 0
        size = shape[axis]
        role = info.role_of(axis)
        if isinstance(size, int) and (role is None or role.role != "mixed"):
            sizes[size] += 1
            if info.batch_axis is not None and size not in read:
                where[size] = f"axis {axis} of {info.name!r}"
            where.setdefault(size, f"axis {axis} of {info.name!r}")
            if info.batch_axis is not None:
                read[size] = None
                shown.append(role is None or role.role == "batch")
    if not sizes:
        return BatchAxis()
    size = next(iter(read)) if len(read) == 1 else sizes.most_common(1)[0][0]
    return BatchAxis(
        fixed=size,
        where=where[size],
        certain=len(read) == 1,
        agreed=len(sizes) == 1,
        shown=all(shown),
    )
