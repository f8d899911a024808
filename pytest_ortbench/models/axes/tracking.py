"""What a graph says about the axes of its inputs: the batch, what must be equal, and how long.

An axis is the batch on evidence: every output has it, and no operator mixes along it. Where an
operator is not known, or the place of an axis gets lost in a Reshape, there is no evidence, which
is a value of its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import prod
from typing import TYPE_CHECKING

import pytest_ortbench.models.axes.layout_rules
import pytest_ortbench.models.axes.mixing_rules
import pytest_ortbench.models.axes.runtime_rules  # noqa: F401  # all of them register their rules
from pytest_ortbench.core.model import AxisRole, TensorInfo
from pytest_ortbench.models.axes.bodies import give_of_bodies, names_inside, read_inside
from pytest_ortbench.models.axes.image_kinds import image_kind, sides_of, with_channels
from pytest_ortbench.models.axes.numbers import MOST, attributes_of, computed
from pytest_ortbench.models.axes.step import RULES, OperatorStep, SizeLimit
from pytest_ortbench.models.axes.values import (
    Axes,
    Axis,
    AxisPart,
    Labels,
    TracedValue,
    labels_of,
    plain,
    size_of,
)
from pytest_ortbench.models.inspection import op_name
from pytest_ortbench.models.symbols import UnknownSymbolError, evaluate, named_shapes

if TYPE_CHECKING:
    import onnx

#: Element types that are real numbers.
_FLOATS = frozenset({1, 10, 11, 16, 17, 18, 19, 20, 23, 24})
#: Operators whose result is no real number, whatever they read; a Cast says it itself.
_COUNTING = frozenset(
    {
        *("Shape", "Size", "ArgMax", "ArgMin", "NonZero", "Equal", "Greater", "GreaterOrEqual"),
        *("Less", "LessOrEqual", "Not", "And", "Or", "Xor", "IsNaN", "IsInf", "NonMaxSuppression"),
    }
)
#: Types of indices and counts, which no image has.
_NUMBERED = frozenset({"tensor(int32)", "tensor(int64)"})
#: What leaves a single number what it is.
_KEEPS_NUMBER = frozenset({"Identity", "Cast", "Unsqueeze", "Squeeze", "Reshape"})
#: Rounds until no new ties are found.
_ROUNDS = 3


def walked(proto: onnx.ModelProto, inputs: Sequence[TensorInfo]) -> GraphWalk:
    """Return a walk over a graph that knows which of its symbols have to be equal.

    Args:
        proto: The model. Content of its large weights is not needed.
        inputs: Its inputs, as they will be known.
    """
    ties: dict[str, str] = {}
    walk = GraphWalk(proto, inputs, ties)
    for _ in range(_ROUNDS):
        walk.run()
        now = walk.ties()
        if now == ties:
            break
        ties = now
        walk = GraphWalk(proto, inputs, ties)
    return walk


class GraphWalk:
    """One walk over a graph from its inputs to its outputs.

    Args:
        proto: The model.
        inputs: Its inputs.
        ties: Symbols that are known to be equal, each with the one that stands for all.
    """

    def __init__(
        self, proto: onnx.ModelProto, inputs: Sequence[TensorInfo], ties: Mapping[str, str]
    ) -> None:
        self._graph = proto.graph
        self._inputs = tuple(inputs)
        self._shapes = named_shapes(self._inputs)
        self._ties = ties
        self._opset = next(
            (entry.version for entry in proto.opset_import if entry.domain in ("", "ai.onnx")), 1
        )
        self._labels = Labels()
        self._limits: list[SizeLimit] = []
        self._by_name: dict[str, int] = {}
        self._sizes: dict[str, int] = {}
        self._values: dict[str, TracedValue] = {}
        self._starts: dict[str, TracedValue] = {}
        self._placed: dict[tuple[str, int], int] = {}
        self._outputs: list[tuple[str, TracedValue]] = []

    def run(self) -> None:
        """Walk."""
        for info, shape in zip(self._inputs, self._shapes, strict=True):
            self._starts[info.name] = self._values[info.name] = self._start(info, shape)
        self._enter(self._graph, self._values)
        self._outputs = [
            (output.name, self._values[output.name])
            for output in self._graph.output
            if output.name in self._values
        ]

    def _start(self, info: TensorInfo, shape: tuple[int | str, ...] | None) -> TracedValue:
        floating = any(kind in info.type for kind in ("float", "double"))
        if shape is None:
            return TracedValue(None, lost=frozenset({self._label_of(info.name)}), floating=floating)
        axes = tuple(self._input_axis(info, axis, size) for axis, size in enumerate(shape))
        return TracedValue(axes, floating=floating)

    def _input_axis(self, info: TensorInfo, axis: int, size: int | str) -> Axis:
        if isinstance(size, int):
            if size < 2:
                return ()
            label = self._labels.new(size)
            self._placed[info.name, axis] = label
            return (AxisPart(size, label),)
        if size not in self._sizes and any(sign in size for sign in "+*/(-"):
            try:
                return plain(max(evaluate(size, self._sizes), 1))
            except (UnknownSymbolError, ArithmeticError):
                pass
        label = self._label_of(size)
        self._placed[info.name, axis] = label
        return (AxisPart(self._labels.sizes[label], label),)

    def _label_of(self, symbol: str) -> int:
        if symbol not in self._by_name:
            leader = self._ties.get(symbol, symbol)
            known = self._by_name.get(leader)
            self._by_name[symbol] = self._labels.new(
                None if known is None else self._labels.sizes[known]
            )
            if known is None:
                self._by_name.setdefault(leader, self._by_name[symbol])
            else:
                self._labels.tie(known, self._by_name[symbol])
            self._sizes[symbol] = self._labels.sizes[self._by_name[symbol]]
        return self._by_name[symbol]

    def _enter(self, graph: onnx.GraphProto, values: dict[str, TracedValue]) -> None:
        """Walk over one graph; ``values`` takes what it gives."""
        for tensor in graph.initializer:
            values[tensor.name] = _constant(tensor)
        needed = _needed(graph)
        for node in graph.node:
            if not needed.isdisjoint(node.output):
                self._take(node, values)

    def _take(self, node: onnx.NodeProto, values: dict[str, TracedValue]) -> None:
        op = op_name(node)
        attributes = attributes_of(node)
        if op == "Constant":
            values[node.output[0]] = _constant_node(attributes)
            return
        inputs = [values.get(name) if name else None for name in node.input]
        unknown = any(name and name not in values for name in node.input)
        step = OperatorStep(
            node=node,
            op=op,
            inputs=inputs,
            attributes=attributes,
            labels=self._labels,
            opset=self._opset,
        )
        if give_of_bodies(step, values, self._enter):
            return
        result = None
        rule = None if unknown else RULES.get(op)
        if rule is not None:
            try:
                result = rule(step)
            except (ValueError, TypeError, IndexError, KeyError, ArithmeticError):
                result = None  # sizes that don't fit each other, or a node that breaks its rules
        self._limits += step.limits
        present = [value for value in inputs if value is not None]
        read = read_inside(node, values)
        touched = frozenset().union(*(value.touched for value in (*present, *read)))
        lost = frozenset().union(*(value.lost for value in present)) | step.lost
        numbers = None if node.domain else computed(node, inputs, attributes)
        floating = self._is_floating(node, present, attributes)
        for place, name in enumerate(node.output):
            axes = result[place] if result is not None and place < len(result) else None
            if axes is None:
                values[name] = TracedValue(None, lost=touched, floating=floating)
                continue
            self._note_pairs(axes, step)
            kept = frozenset(factor.label for axis in axes for factor in axis)
            values[name] = TracedValue(
                axes,
                lost=frozenset(label for label in lost if label not in kept),
                numbers=numbers if place == 0 else None,
                floating=floating and not (op == "TopK" and place == 1),
                constant=op == "Identity" and bool(present) and present[0].constant,
                counts=op in _KEEPS_NUMBER and bool(present) and present[0].counts,
            )

    def _note_pairs(self, axes: Axes, step: OperatorStep) -> None:
        """An axis that a result has twice pairs each of its rows with each."""
        seen: set[int] = set()
        for axis in axes:
            labels = labels_of([axis])
            roots = {self._labels.root(label) for label in labels}
            if seen & roots:
                step.mix([axis])
            seen |= roots

    def _is_floating(
        self, node: onnx.NodeProto, present: Sequence[TracedValue], attributes: Mapping[str, object]
    ) -> bool:
        op = node.op_type
        if op == "Cast":
            return attributes.get("to") in _FLOATS
        if op in _COUNTING:
            return False
        if op in ("Where", "Gather", "GatherElements", "GatherND", "If"):
            return present[-1 if op == "Where" else 0].floating if present else True
        if op == "ConstantOfShape":
            value = attributes.get("value")
            return value is None or getattr(value, "data_type", 1) in _FLOATS
        return present[0].floating if present else True

    def shapes(self) -> dict[str, tuple[str | None, ...]]:
        """Return the axes of values that are as large as one of an input, by that one's symbol."""
        symbols = {self._sizes[symbol]: symbol for symbol in reversed(self._sizes)}
        found = {}
        for name, value in self._values.items():
            shape = tuple(symbols.get(size_of(axis)) for axis in value.axes or ())
            if any(shape):
                found[name] = shape
        return found

    def ties(self) -> dict[str, str]:
        """Return the symbols that have to be equal, each with the one that stands for all."""
        leaders: dict[int, str] = {}
        found: dict[str, str] = {}
        for symbol, label in self._by_name.items():
            leader = leaders.setdefault(self._labels.root(label), symbol)
            if leader != symbol:
                found[symbol] = leader
        return found

    def roles(self) -> dict[str, tuple[AxisRole, ...]]:
        """Return what the walk found, by input."""
        ties = self.ties()
        symbols = set(self._by_name.values())
        fixed = {
            self._labels.root(label): self._labels.sizes[label]
            for label in self._placed.values()
            if label not in symbols
        }
        fixed.update({self._labels.root(at): size for at, size in self._labels.written.items()})
        found: dict[str, list[AxisRole]] = {}
        kinds = {info.name: self._image(info) for info in self._inputs}
        for (name, axis), label in self._placed.items():
            role, why = self._role(label)
            index = next(at for at, info in enumerate(self._inputs) if info.name == name)
            shape = self._shapes[index] or ()
            symbol = shape[axis]
            limits = self._limits_of(label)
            found.setdefault(name, []).append(
                AxisRole(
                    axis=axis,
                    role=role,
                    why=why,
                    tied_to=ties.get(symbol, "") if isinstance(symbol, str) else "",
                    tied_size=fixed.get(self._labels.root(label), 0)
                    if isinstance(symbol, str)
                    else 0,
                    least=max((limit.least for limit in limits), default=0),
                    most=min((limit.most for limit in limits if limit.most), default=0),
                    samples=any(limit.samples for limit in limits),
                    hop=max(limits, key=lambda limit: limit.least).hop if limits else 0,
                    limit_why=_reason(limits),
                    image=kinds[name].get(axis, ("", ""))[0],
                    image_why=kinds[name].get(axis, ("", ""))[1],
                )
            )
        return {name: tuple(roles) for name, roles in found.items()}

    def _image(self, info: TensorInfo) -> dict[int, tuple[str, str]]:
        """By side of an image, its kind and what shows it; empty for what is none."""
        axes = with_channels(self._graph, info.name, self._starts[info.name].axes)
        sides = None if axes is None else sides_of(axes)
        if axes is None or sides is None or info.type in _NUMBERED:
            return {}
        return dict.fromkeys(sides, image_kind(self._graph, axes, self._outputs))

    def _limits_of(self, label: int) -> list[SizeLimit]:
        root = self._labels.root(label)
        return [limit for limit in self._limits if self._labels.root(limit.label) == root]

    def _role(self, label: int) -> tuple[str, str]:
        """Return a key of :data:`~pytest_ortbench.core.model.AXIS_ROLES`, and why."""
        mixer = self._labels.mixer(label)
        root = self._labels.root(label)
        follows, lost, without = 0, "", ""
        for name, value in self._outputs:
            if root in {self._labels.root(other) for other in value.labels}:
                follows += 1
            elif root in {self._labels.root(other) for other in value.lost}:
                lost = lost or name
            elif value.touched:  # what comes of no axis at all is the same for every batch
                without = without or name
        if mixer:
            return "mixed", mixer
        if without:
            return "partial", f"output {without!r} does not have this axis"
        if lost or not follows:
            return "unknown", f"its place in output {lost!r} can't be told" if lost else ""
        return "batch", "every output has it, and nothing mixes along it"


def _reason(limits: Iterable[SizeLimit]) -> str:
    """The operator that limits a size; one that reads samples before others."""
    ranked = sorted(limits, key=lambda limit: (not limit.samples, not limit.most, -limit.least))
    return ranked[0].why if ranked else ""


def _needed(graph: onnx.GraphProto) -> set[str]:
    """Names of values that an output depends on."""
    needed = {output.name for output in graph.output}
    for node in reversed(graph.node):
        if not needed.isdisjoint(node.output):
            needed.update(node.input)
            needed.update(names_inside(node))
    return needed


def _constant(tensor: onnx.TensorProto) -> TracedValue:
    from onnx import TensorProto, numpy_helper

    numbers = None
    if (
        prod(tensor.dims) <= MOST
        and tensor.data_location != TensorProto.EXTERNAL
        and tensor.data_type != TensorProto.STRING
    ):
        try:
            numbers = numpy_helper.to_array(tensor)
        except (ValueError, TypeError, KeyError):
            numbers = None  # dropped with the large weights, or not as large as it says
    axes = tuple(plain(size) if size else (AxisPart(0),) for size in tensor.dims)
    return TracedValue(axes, numbers=numbers, floating=tensor.data_type in _FLOATS, constant=True)


def _constant_node(attributes: Mapping[str, object]) -> TracedValue:
    import numpy as np

    tensor = attributes.get("value")
    if tensor is not None:
        return _constant(tensor)  # type: ignore[arg-type]  # the attribute's type says so
    for name, floating in (
        *(("value_int", False), ("value_ints", False)),
        *(("value_float", True), ("value_floats", True)),
    ):
        if name in attributes:
            array = np.array(attributes[name])
            axes = tuple(plain(size) for size in array.shape)
            return TracedValue(axes, numbers=array, floating=floating, constant=True)
    return TracedValue(None)
