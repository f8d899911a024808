"""Values of a graph as far as their axes are known: sizes, and which axis of an input each one is.

Every axis of an input that has no size is given a large prime number of its own, so that a size
that was computed from it can be told from all others. An axis is a row of factors, since a Reshape
joins axes and takes them apart again: of ``[B, S, 8]`` as ``[B·S, 8]`` the first axis has the
factors ``B`` and ``S``.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from math import isqrt, prod
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np


_FIRST_PRIME = 100_003
#: Sizes up to here are written in the model; larger ones may be parts of those numbers.
LARGEST_WRITTEN = 512


@dataclass(frozen=True, slots=True)
class AxisPart:
    """A part of an axis.

    Attributes:
        size: Its size.
        label: Number of the input's axis that it is, ``None`` if it is none.
    """

    size: int
    label: int | None = None


#: One axis, slowest factor first; empty for an axis of size 1.
Axis = tuple[AxisPart, ...]
#: All axes of a value, ``None`` if not even their number is known.
Axes = tuple[Axis, ...]


@dataclass(frozen=True, slots=True)
class TracedValue:
    """What is known of one value.

    Attributes:
        axes: Its axes, ``None`` where they can't be told.
        lost: Labels that went into it and can't be found in its axes any more.
        numbers: What it holds, where that is few numbers that follow from sizes and constants.
        floating: Whether it holds real numbers, so not masks, counts and indices.
        constant: Whether it is a weight.
        counts: Whether it is the number of a loop's turn.
    """

    axes: Axes | None
    lost: frozenset[int] = frozenset()
    numbers: np.ndarray | None = None
    floating: bool = True
    constant: bool = False
    counts: bool = False

    @property
    def labels(self) -> frozenset[int]:
        """Labels in its axes."""
        return labels_of(self.axes or ())

    @property
    def touched(self) -> frozenset[int]:
        """All labels that went into it."""
        return self.labels | self.lost


def labels_of(axes: Sequence[Axis]) -> frozenset[int]:
    """Return the labels in some axes."""
    return frozenset(factor.label for axis in axes for factor in axis if factor.label is not None)


def size_of(axis: Axis) -> int:
    """Return the size of an axis."""
    return prod(factor.size for factor in axis)


def is_open(axis: Axis) -> bool:
    """Whether an axis of an input has no size of its own, but one of those given to symbols."""
    return size_of(axis) >= _FIRST_PRIME


def plain(size: int) -> Axis:
    """Return an axis that is none of an input's."""
    return () if size == 1 else (AxisPart(size),)


@dataclass(slots=True)
class Labels:
    """The labels of one graph: which are tied together, and what operators do along them.

    Attributes:
        sizes: Size of each label.
        mixed: By label, the operator that mixes along it.
        written: By label, the size that it has to have beside one that the model fixes.
        padded: By the size of a padded axis, its label and how much was put on.
    """

    sizes: list[int] = field(default_factory=list)
    mixed: dict[int, str] = field(default_factory=dict)
    written: dict[int, int] = field(default_factory=dict)
    padded: dict[int, tuple[int, int]] = field(default_factory=dict)
    _parents: list[int] = field(default_factory=list)
    _primes: Iterator[int] = field(default_factory=lambda: _primes())

    def new(self, size: int | None = None) -> int:
        """Return a new label, of a size of its own if none is given."""
        self._parents.append(len(self._parents))
        self.sizes.append(self.fresh() if size is None else size)
        return len(self._parents) - 1

    def fresh(self) -> int:
        """Return a size that nothing else has."""
        return next(self._primes)

    def root(self, label: int) -> int:
        """Return the label that stands for all that ``label`` is tied to."""
        while self._parents[label] != label:
            label = self._parents[label]
        return label

    def tie(self, first: int, second: int) -> None:
        """Note that two axes of inputs have to be equal."""
        one, other = sorted((self.root(first), self.root(second)))
        self._parents[other] = one

    def meet(self, factor: AxisPart, size: int) -> None:
        """Note that an axis of an input meets a size that the model fixes, other than 1."""
        if factor.label is not None and factor.size >= _FIRST_PRIME and 1 < size <= LARGEST_WRITTEN:
            self.written.setdefault(factor.label, size)

    def mix(self, axes: Sequence[Axis], why: str) -> None:
        """Note that an operator mixes along some axes."""
        for label in labels_of(axes):
            self.mixed.setdefault(label, why)

    def mixer(self, label: int) -> str:
        """Return the operator that mixes along an axis or one that is tied to it, else nothing."""
        root = self.root(label)
        reasons = (why for other, why in self.mixed.items() if self.root(other) == root)
        return next(reasons, "")


def _primes() -> Iterator[int]:
    """Prime numbers that no exporter writes as a size, and that halve often before one could."""
    for number in itertools.count(_FIRST_PRIME, 2):
        if all(number % divisor for divisor in range(3, isqrt(number) + 1, 2)):
            yield number


def joined(axes: Sequence[Axis | None], labels: Labels) -> Axis | None:
    """Return the axis that several broadcast axes make, and tie what has to be equal.

    ``None`` where they can't be brought together.
    """
    result: Axis = ()
    for axis in axes:
        if axis is None:
            return None
        if not axis or axis == result:
            continue
        if not result:
            result = axis
            continue
        if len(axis) != len(result):
            # A part of them was computed: the one that is an input's says more.
            if labels_of([axis]) and not labels_of([result]):
                result = axis
            elif labels_of([axis]):
                return None
            continue
        result = tuple(
            _joined_factor(one, other, labels) for one, other in zip(result, axis, strict=True)
        )
    return result


def _joined_factor(one: AxisPart, other: AxisPart, labels: Labels) -> AxisPart:
    if one.label is None or other.label is None:
        labels.meet(one, other.size)
        labels.meet(other, one.size)
        return one if other.label is None else other
    labels.tie(one.label, other.label)
    return one


def broadcast(values: Sequence[TracedValue], labels: Labels) -> Axes | None:
    """Return the axes of an element-wise result; ``None`` if they can't be told."""
    shapes = [value.axes for value in values]
    known = [axes for axes in shapes if axes is not None]
    if len(known) < len(shapes) or not known:
        return None
    rank = max(len(axes) for axes in known)
    padded = [((),) * (rank - len(axes)) + axes for axes in known]
    result = [joined(column, labels) for column in zip(*padded, strict=True)]
    return None if any(axis is None for axis in result) else tuple(axis or () for axis in result)


def reshaped(axes: Axes, target: Sequence[int]) -> Axes | None:
    """Return the axes after a Reshape to known sizes; ``None`` if the sizes don't fit.

    Factors whose bounds are kept keep their label; those that are cut lose it.
    """
    factors = [factor for axis in axes for factor in axis]
    total = prod(factor.size for factor in factors)
    sizes = list(target)
    rest = prod(size for size in sizes if size != -1)
    if sizes.count(-1) == 1 and rest and total % rest == 0:
        sizes[sizes.index(-1)] = total // rest
    if prod(sizes) != total or min(sizes, default=1) < 1:
        return None
    result: list[Axis] = []
    pending = list(reversed(factors))
    for size in sizes:
        axis: list[AxisPart] = []
        left = size
        while left > 1:
            factor = pending.pop()
            while left % factor.size and factor.size % left and pending:
                factor = AxisPart(factor.size * pending.pop().size)  # cut across both
            if left % factor.size == 0:
                axis.append(factor)
                left //= factor.size
            elif factor.size % left == 0:
                axis.append(AxisPart(left))
                pending.append(AxisPart(factor.size // left))
                left = 1
            else:
                return None
        result.append(tuple(axis))
    return tuple(result)
