"""Masks by what a graph does with them: what is added to scores, or chosen before a softmax.

``(1 - mask) * -10000`` changes nothing where the mask is 1; ``Where(mask, -inf, scores)`` changes
nothing where it is false. A mask without a name that says so would hold any small number, and rows
of it would switch the attention off.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from pytest_ortbench.core.model import ValueHint
from pytest_ortbench.models.dataflow import Dataflow, Scope

if TYPE_CHECKING:
    import onnx

#: What is added or chosen to leave something out is at least so far below zero.
_FAR_BELOW = -1e3
#: Operators through which a mask stays one.
_MOVES = frozenset(
    {"Identity", "Cast", "Reshape", "Unsqueeze", "Squeeze", "Expand", "Slice", "Transpose", "Tile"}
)
#: Values looked at, at most.
_MOST = 200


@dataclass(frozen=True, slots=True)
class _Mask:
    """A value that is ``scale · mask + offset``, the mask being 0 or 1."""

    name: str
    scope: Scope
    scale: float = 1.0
    offset: float = 0.0


def mask_hint(name: str, flow: Dataflow) -> ValueHint | None:
    """Return what leaves everything in, ``None`` if an input is no mask.

    Args:
        name: The input.
        flow: Its graph.
    """
    pending, count = [_Mask(name, flow.main)], 0
    while pending and count < _MOST:
        mask = pending.pop()
        count += 1
        for node, index in mask.scope.readers.get(mask.name, ()):
            kept = _kept(mask, node, index, flow)
            if kept is not None:
                kind = "ones" if kept else "zeros"
                why = f"a mask, by {node.op_type} {node.output[0]!r}: nothing is left out"
                return ValueHint(kind=kind, why=why)
            pending.extend(_behind(mask, node, index, flow))
        pending.extend(
            replace(mask, scope=inner) for inner in mask.scope.captures.get(mask.name, ())
        )
    return None


def _behind(mask: _Mask, node: onnx.NodeProto, index: int, flow: Dataflow) -> Iterator[_Mask]:
    """The mask behind an operator that moves it, turns it round or shifts it."""
    result = node.output[0]
    number = None
    if len(node.input) == 2:
        number = _number(node.input[1 - index], mask.scope, flow)
    if node.op_type in _MOVES and index == 0:
        yield replace(mask, name=result)
    elif node.op_type == "Not":
        yield replace(mask, name=result, scale=-mask.scale, offset=1 - mask.offset)
    elif node.op_type == "Equal" and number in (0, 1):
        # As many elements of the mask as equal the number: of 0 and 1 these are both.
        same = mask if number == 1 else replace(mask, scale=-mask.scale, offset=1 - mask.offset)
        yield replace(same, name=result)
    elif node.op_type == "Greater" and number is not None and 0 <= number < 1 and index == 0:
        yield replace(mask, name=result)
    elif node.op_type == "Mul" and number is not None:
        yield replace(mask, name=result, scale=mask.scale * number, offset=mask.offset * number)
    elif node.op_type == "Add" and number is not None:
        yield replace(mask, name=result, offset=mask.offset + number)
    elif node.op_type == "Sub" and number is not None and index == 0:
        yield replace(mask, name=result, offset=mask.offset - number)
    elif node.op_type == "Sub" and number is not None:
        yield replace(mask, name=result, scale=-mask.scale, offset=number - mask.offset)


def _kept(mask: _Mask, node: onnx.NodeProto, index: int, flow: Dataflow) -> bool | None:
    """Whether true keeps what a node masks; ``None`` if it masks nothing."""
    if node.op_type == "Add" and _number(node.input[1 - index], mask.scope, flow) is None:
        at = {value: mask.scale * value + mask.offset for value in (0, 1)}
        for value in (0, 1):
            if at[value] == 0 and at[1 - value] <= _FAR_BELOW:
                return bool(value)
        return None
    if node.op_type == "Where" and index == 0 and abs(mask.scale) == 1:
        low = [
            number is not None and number <= _FAR_BELOW
            for number in (_number(name, mask.scope, flow) for name in node.input[1:3])
        ]
        if low[0] != low[1]:
            chosen = mask.scale + mask.offset == 1  # whether a true element takes the first
            return low[1] if chosen else low[0]
    return None


def _number(name: str, scope: Scope, flow: Dataflow) -> float | None:
    array = flow.constant(scope, name)
    if array is None or array.size != 1 or array.dtype.kind not in "iufb":
        return None
    return float(array.reshape(-1)[0])
