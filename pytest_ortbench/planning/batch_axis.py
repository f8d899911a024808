"""Which axis of a model is the batch axis, or why it has none."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from pytest_ortbench.core.model import TensorInfo
from pytest_ortbench.planning.default_sizes import is_sequence_name

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
    """

    symbols: tuple[str, ...] = ()
    fixed: int | None = None
    where: str = ""
    certain: bool = False
    agreed: bool = False

    @property
    def unasked(self) -> int:
        """Batch of a case for which nobody asked for one: what the graph fixes as one, else 1.

        A first size that nothing reads as a batch (rows, heads, states), or beside which another
        input has another one, makes no items: then one inference is one item.
        """
        return self.fixed if self.certain and self.agreed and self.fixed else 1


def find_batch(inputs: Sequence[TensorInfo], shapes: Shapes) -> BatchAxis:
    """Decide which symbols are the batch.

    In this order: a symbol named like one (``batch``, ``N``, ``b``) on any axis; the axis that a
    consumer reads as the batch (axis 1 of what an LSTM reads); the symbols and unset sizes on the
    first axis of the inputs; a size that the model fixes there.
    """
    return _found(tuple(inputs), tuple(shapes))


@lru_cache(maxsize=64)
def _found(inputs: tuple[TensorInfo, ...], shapes: Shapes) -> BatchAxis:
    """Remembered, since a matrix asks again for every one of its sizes."""
    candidates = _candidates(inputs, shapes)
    symbols = dict.fromkeys(_named(shapes))
    for info, shape in candidates:
        read = shape[info.batch_axis] if info.batch_axis is not None else None
        if isinstance(read, str) and not symbols.keys() & set(shape):
            symbols[read] = None
    symbols.update(dict.fromkeys(_first_axes(candidates, set(symbols))))
    if symbols:
        symbols.update(dict.fromkeys(_states(candidates, set(symbols))))
        fixed = _fixed(candidates)
        # Beside a batch that another input fixes, an open one can only be as large.
        return replace(fixed if fixed.certain else BatchAxis(), symbols=tuple(symbols))
    return _fixed(candidates)


def _named(shapes: Shapes) -> list[str]:
    """Symbols that are named like a batch; in each shape only those with the plainest name."""
    chosen: dict[str, None] = {}
    passed_over: set[str] = set()
    for shape in shapes:
        symbols = {size for size in shape or () if isinstance(size, str)}
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


def _first_axes(candidates: Sequence[_Candidate], known: set[str]) -> list[str]:
    """Symbols on first axes; only unset ones beside a batch that is known by name."""
    declared = {size for info, _ in candidates for size in info.shape or () if size is not None}
    found: list[str] = []
    for info, shape in candidates:
        first = shape[0]
        if not isinstance(first, str) or known & set(shape) or is_sequence_name(first):
            continue
        if info.batch_axis not in (None, 0):
            continue
        if not known or first not in declared:
            found.append(first)
    if known:
        return found
    # Without a name to go by, half of the inputs must agree that their first axis is open.
    return found if 2 * len(found) >= len(candidates) else []


def _states(candidates: Sequence[_Candidate], known: set[str]) -> list[str]:
    """Open second axes of recurrent states, ``[layers, ?, size]``."""
    return [
        shape[1]
        for info, shape in candidates
        if len(shape) == 3 and isinstance(shape[0], int) and isinstance(shape[1], str)
        if _STATE_NAME.search(info.name.lower()) and not known & set(shape)
    ]


def _fixed(candidates: Sequence[_Candidate]) -> BatchAxis:
    sizes: Counter[int] = Counter()
    where: dict[int, str] = {}
    read: dict[int, None] = {}
    for info, shape in candidates:
        axis = info.batch_axis or 0
        size = shape[axis]
        if isinstance(size, int):
            sizes[size] += 1
            if info.batch_axis is not None and size not in read:
                where[size] = f"axis {axis} of {info.name!r}"
            where.setdefault(size, f"axis {axis} of {info.name!r}")
            if info.batch_axis is not None:
                read[size] = None
    if not sizes:
        return BatchAxis()
    size = next(iter(read)) if len(read) == 1 else sizes.most_common(1)[0][0]
    return BatchAxis(fixed=size, where=where[size], certain=len(read) == 1, agreed=len(sizes) == 1)
