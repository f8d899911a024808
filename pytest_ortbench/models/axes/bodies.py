"""Operators with graphs inside: If, Loop and Scan give what their bodies let pass.

A loop is walked until what it carries keeps its axes: where the first turn gives other axes than it
was given, as for text that grows, these are axes of no input in all turns.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from pytest_ortbench.models.axes.numbers import attributes_of
from pytest_ortbench.models.axes.step import OperatorStep
from pytest_ortbench.models.axes.values import (
    Axes,
    Axis,
    Labels,
    TracedValue,
    joined,
    labels_of,
    plain,
    size_of,
)

if TYPE_CHECKING:
    import onnx

#: Walks over a graph, and puts what it gives into the values that are known in it.
Enter = Callable[["onnx.GraphProto", dict[str, TracedValue]], None]
Values = dict[str, TracedValue]

_UNKNOWN = TracedValue(None)
#: Turns of a loop that are walked, at most: the first, and those whose axes are no input's.
_MOST_TURNS = 4


def give_of_bodies(step: OperatorStep, values: Values, enter: Enter) -> bool:
    """Put what an operator gives by its bodies into the known values.

    Args:
        step: The operator.
        values: Those that are known where it stands.
        enter: Walks over a body.

    Returns:
        Whether it has bodies that are looked into.
    """
    rule = {"If": _chosen, "Loop": _looped, "Scan": _scanned}.get(step.op)
    if rule is None:
        return False
    results = rule(step, values, enter)
    read = [value for value in step.inputs if value is not None]
    read += read_inside(step.node, values)
    touched = frozenset().union(*(value.touched for value in read))
    for place, name in enumerate(step.node.output):
        found = results[place] if place < len(results) else _UNKNOWN
        values[name] = (
            found if found.axes is not None else replace(found, lost=found.lost | touched)
        )
    return True


def _chosen(step: OperatorStep, values: Values, enter: Enter) -> list[TracedValue]:
    """An If gives what its branches agree about, or what the one gives that sizes decide for.

    Exporters ask whether an axis is 1 before they leave it out.
    """
    branches = []
    decided = step.array(0)
    names = ("else_branch", "then_branch")
    if decided is not None and decided.size == 1:
        names = (names[bool(decided.reshape(-1)[0])],) * 2
    for attribute in step.node.attribute:
        if attribute.HasField("g") and attribute.name in names:
            inner = dict(values)
            enter(attribute.g, inner)
            branches.append([inner.get(output.name, _UNKNOWN) for output in attribute.g.output])
    condition = frozenset().union(*(value.touched for value in step.inputs if value is not None))
    return [
        agreed(parts, step.labels, condition) for parts in zip(*branches, strict=False) if parts
    ]


def agreed(
    parts: Sequence[TracedValue], labels: Labels, condition: frozenset[int] = frozenset()
) -> TracedValue:
    """Return what several values that one of is taken have in common.

    Args:
        parts: Them.
        labels: Those of the graph.
        condition: Labels in what decides which is taken.
    """
    touched = frozenset().union(*(part.touched for part in parts), condition)
    floating = any(part.floating for part in parts)
    known = [part.axes for part in parts if part.axes is not None]
    if len(known) < len(parts) or len({len(axes) for axes in known}) > 1:
        return TracedValue(None, lost=touched, floating=floating)
    axes = tuple(_same_axis(column, labels) for column in zip(*known, strict=True))
    return TracedValue(axes, lost=touched - labels_of(axes), floating=floating)


def _same_axis(column: Sequence[Axis], labels: Labels) -> Axis:
    """The axis that several have in common; one of no input where they are not as large."""
    if len({size_of(axis) for axis in column}) > 1:
        return plain(labels.fresh())
    return joined(column, labels) or column[0]


def _looped(step: OperatorStep, values: Values, enter: Enter) -> list[TracedValue]:
    """A Loop gives what it carries, and one row a turn of what else its body gives."""
    body = step.attributes_graph("body")
    if body is None or step.opset < 8:
        return []
    first = [value or _UNKNOWN for value in step.inputs[2:]]
    names = [value.name for value in body.input]
    turn = {
        **dict.fromkeys(names[:1], TracedValue((), floating=False, counts=True)),
        **dict.fromkeys(names[1:2], TracedValue((), floating=False)),
    }
    carried, given = _carried(step, body, values, enter, (names[2:], first, turn))
    going_on = given[0].touched if given else frozenset()
    count = step.numbers(0)
    turns = plain(max(count[0], 1)) if count else step.fresh()
    rows = [_with_axis(row, 0, turns) for row in given[1 + len(first) :]]
    return [replace(value, lost=value.lost | (going_on - value.labels))
            for value in (*carried, *rows)]  # fmt: skip


_Start = tuple[Sequence[str], Sequence[TracedValue], Values]


def _carried(
    step: OperatorStep, body: onnx.GraphProto, values: Values, enter: Enter, start: _Start
) -> tuple[list[TracedValue], list[TracedValue]]:
    """What a body carries from turn to turn once its axes stay, and all that it gives then.

    ``start`` has the names of what is carried, what it begins with, and the other inputs.
    """
    names, first, others = start
    skipped = 1 if step.op == "Loop" else 0  # whether it goes on
    carried = [replace(value, numbers=None, constant=False) for value in first]
    given: list[TracedValue] = []
    for turn in range(_MOST_TURNS):
        inner = {**values, **others, **dict(zip(names, carried, strict=False))}
        enter(body, inner)
        given = [inner.get(output.name, _UNKNOWN) for output in body.output]
        after = given[skipped : skipped + len(carried)]
        merged = [agreed(pair, step.labels) for pair in zip(carried, after, strict=False)]
        if all(map(_stays, carried, merged, [turn > 0] * len(merged))):
            return merged, given
        carried = merged
    return [TracedValue(None, lost=value.touched) for value in carried], []


def _stays(before: TracedValue, after: TracedValue, grows: bool) -> bool:
    """Whether a turn leaves the axes as they were; those of no input may grow in later ones."""
    if before.axes is None or after.axes is None:
        return before.axes is after.axes
    return len(before.axes) == len(after.axes) and all(
        one == other or (grows and not labels_of([one, other]))
        for one, other in zip(before.axes, after.axes, strict=True)
    )


def _scanned(step: OperatorStep, values: Values, enter: Enter) -> list[TracedValue]:
    """A Scan goes over the rows of some inputs; what it carries joins them."""
    body = step.attributes_graph("body")
    count = step.attributes.get("num_scan_inputs", 0)
    if body is None or step.opset < 9 or not 0 < count <= len(step.inputs):
        return []
    states = [value or _UNKNOWN for value in step.inputs[: len(step.inputs) - count]]
    rows = [value or _UNKNOWN for value in step.inputs[len(states) :]]
    along: list[Axis] = []
    slices: Values = {}
    names = [value.name for value in body.input]
    for place, (name, row) in enumerate(zip(names[len(states) :], rows, strict=False)):
        axes = row.axes
        if not axes:
            slices[name] = TracedValue(None, lost=row.touched, floating=row.floating)
            continue
        axis = _listed(step, "scan_input_axes", place) % len(axes)
        along.append(axes[axis])
        left = (*axes[:axis], *axes[axis + 1 :])
        slices[name] = TracedValue(left, lost=row.lost, floating=row.floating)
    if states:
        step.labels.mix(along, step.why)
    carried, given = _carried(step, body, values, enter, (names[: len(states)], states, slices))
    turns = along[0] if len(along) == len(rows) else step.fresh()
    return carried + [
        _with_axis(row, _listed(step, "scan_output_axes", place), turns)
        for place, row in enumerate(given[len(states) :])
    ]


def _listed(step: OperatorStep, name: str, place: int) -> int:
    listed = attributes_of(step.node).get(name, ())
    return int(listed[place]) if place < len(listed) else 0


def _with_axis(value: TracedValue, place: int, axis: Axis) -> TracedValue:
    """What the body gives in one turn, and all turns together."""
    if value.axes is None:
        return value
    place %= len(value.axes) + 1
    axes: Axes = (*value.axes[:place], axis, *value.axes[place:])
    return TracedValue(axes, lost=value.lost - labels_of(axes), floating=value.floating)


def names_inside(node: onnx.NodeProto) -> Iterable[str]:
    """Yield the names that the graphs inside a node read."""
    for attribute in node.attribute:
        graphs = [attribute.g] if attribute.HasField("g") else []
        for graph in (*graphs, *attribute.graphs):
            for output in graph.output:
                yield output.name
            for inner in graph.node:
                yield from inner.input
                yield from names_inside(inner)


def read_inside(node: onnx.NodeProto, values: Mapping[str, TracedValue]) -> list[TracedValue]:
    """Return the values around a node that the graphs inside it read."""
    return [values[name] for name in set(names_inside(node)) if name in values]
