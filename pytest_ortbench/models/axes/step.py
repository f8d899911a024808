"""One operator while a graph is walked: what it reads, and what its rule says of what it gives."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pytest_ortbench.models.axes.values import (
    LARGEST_WRITTEN,
    Axes,
    Axis,
    Labels,
    TracedValue,
    labels_of,
    plain,
)

if TYPE_CHECKING:
    import numpy as np
    import onnx


@dataclass(slots=True, kw_only=True)
class SizeLimit:
    """What an operator says about how long an axis has to be.

    Attributes:
        label: The axis.
        why: The operator, for people.
        least: Smallest size, 0 if it does not say.
        most: Largest size, 0 if it does not say.
        samples: Whether it reads the axis as samples of a sound.
        hop: How far apart its windows stand: ``least`` and so many more samples fill them all; 0
            if it does not say.
    """

    label: int
    why: str
    least: int = 0
    most: int = 0
    samples: bool = False
    hop: int = 0


@dataclass(slots=True, kw_only=True)
class OperatorStep:
    """An operator with what is known of its inputs.

    Attributes:
        node: The operator.
        op: Its name, with the domain where that is not the default one.
        inputs: What it reads, ``None`` for an input that is left out.
        attributes: Its attributes.
        labels: Those of the graph.
        opset: Version of the default domain.
        lost: Labels whose place in the result is not known.
        limits: What it says about sizes.
    """

    node: onnx.NodeProto
    op: str
    inputs: list[TracedValue | None]
    attributes: Mapping[str, Any]
    labels: Labels
    opset: int
    lost: set[int] = field(default_factory=set)
    limits: list[SizeLimit] = field(default_factory=list)

    @property
    def why(self) -> str:
        """The operator, for people: ``ReduceMean 'pooled'``."""
        return f"{self.node.op_type} {self.node.output[0]!r}" if self.node.output else self.op

    def value(self, index: int) -> TracedValue | None:
        """Return what stands at an input, ``None`` if nothing does."""
        return self.inputs[index] if index < len(self.inputs) else None

    def axes(self, index: int) -> Axes | None:
        """Return the axes of an input, ``None`` if they are not known."""
        value = self.value(index)
        return None if value is None else value.axes

    def numbers(self, index: int) -> list[int] | None:
        """Return the whole numbers that an input holds, if they are known."""
        value = self.value(index)
        if value is None or value.numbers is None or value.numbers.dtype.kind not in "iuO":
            return None
        return [int(number) for number in value.numbers.reshape(-1)]

    def array(self, index: int) -> np.ndarray | None:
        """Return what an input holds, if it is known."""
        value = self.value(index)
        return None if value is None else value.numbers

    @property
    def floating(self) -> bool:
        """Whether real numbers are worked on, so not masks, counts and indices."""
        value = self.value(0)
        return value is None or value.floating

    def attributes_graph(self, name: str) -> onnx.GraphProto | None:
        """Return a graph inside the operator, ``None`` if it has none of that name."""
        found = (item.g for item in self.node.attribute if item.name == name and item.HasField("g"))
        return next(found, None)

    def mix(self, axes: Sequence[Axis]) -> None:
        """Note that the operator mixes along some axes.

        Along counts and masks that says nothing: a length is often taken over a whole batch.
        """
        if self.floating:
            self.labels.mix(axes, self.why)
        else:
            self.lose(axes)

    def lose(self, axes: Sequence[Axis]) -> None:
        """Note that it can't be told where some axes are in the result."""
        self.lost |= labels_of(axes)

    def fresh(self) -> Axis:
        """Return an axis of a size that is not known."""
        return plain(self.labels.fresh())

    def attribute_axes(self, index: int) -> tuple[int, ...] | None:
        """Return axes that stand in an attribute or, in later versions, in an input."""
        if self.value(index) is not None:
            numbers = self.numbers(index)
            return None if numbers is None else tuple(numbers)
        axes = self.attributes.get("axes")
        return None if axes is None else tuple(axes)

    def limit(self, axis: Axis, **what: Any) -> None:
        """Note what the operator says about the size of an axis that is one of an input's."""
        if len(axis) == 1 and axis[0].label is not None:
            self.limits.append(SizeLimit(label=axis[0].label, why=self.why, **what))

    def limit_of_size(self, size: int, **what: Any) -> None:
        """Likewise for the axis of an input that ``size`` was taken from."""
        if size > LARGEST_WRITTEN and size in self.labels.sizes:
            label = self.labels.sizes.index(size)
            self.limits.append(SizeLimit(label=label, why=self.why, **what))


#: A rule gives the axes of each output, ``None`` for one whose axes can't be told; ``None`` in
#: place of all of them if it knows nothing.
Rule = Callable[[OperatorStep], "list[Axes | None] | None"]

RULES: dict[str, Rule] = {}


def axis_rule(*names: str) -> Callable[[Rule], Rule]:
    """Register the rule of some operators."""

    def register(function: Rule) -> Rule:
        RULES.update(dict.fromkeys(names, function))
        return function

    return register
