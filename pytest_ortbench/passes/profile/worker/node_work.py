"""Multiply-accumulates and bytes of the nodes of a profiled run, from the shapes that it lists."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from pytest_ortbench.core.arithmetic import (
    countable,
    moved_bytes,
    multiply_accumulates,
    tensor_bytes,
)
from pytest_ortbench.worker.profile_events import CONTROL_FLOW, NodeEvent, Tensor

Key = tuple[str, ...]

#: Lists weights with the other inputs of a node: packed ones are left out of a profile.
UNPACKED = {"session.disable_prepacking": "1"}

#: Operators that read floats and multiply integers.
_QUANTISE_INSIDE = frozenset({"DynamicQuantizeLSTM", "DynamicQuantizeMatMul"})

#: What a model's products read, where a provider doesn't show its nodes.
_OF_PRECISION = {
    "fp16": "float16",
    "bf16": "bfloat16",
    "int8-dynamic": "uint8",
    "int8-static": "uint8",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """What a node does in one run; ``None`` where that is not known."""

    macs: int | None = None
    moved_bytes: int | None = None


def work_of_nodes(events: Iterable[NodeEvent]) -> dict[Key, Work]:
    """Add up what each node does in one run, over all its executions.

    Args:
        events: Those of one run, in which no weights were packed.
    """
    works: dict[Key, Work] = {}
    for event in events:
        work = _work_of(event)
        before = works.get(event.key)
        works[event.key] = work if before is None else total([before, work])
    return works


def total(works: Iterable[Work]) -> Work:
    """Add up; what is not known of one, or beyond counting, is not known of all."""
    listed = list(works)
    return Work(
        macs=_sum(work.macs for work in listed),
        moved_bytes=_sum(work.moved_bytes for work in listed),
    )


def element_of_products(
    events: Iterable[NodeEvent], work: Mapping[Key, Work], precision: str
) -> str:
    """Return the element type that most of the multiply-accumulates read.

    Args:
        events: Node events.
        work: What each node does.
        precision: Of the case, for a run without products that can be seen.
    """
    macs: Counter[str] = Counter()
    for event in events:
        count = work.get(event.key, Work()).macs
        if count and event.inputs:
            element = "uint8" if event.op in _QUANTISE_INSIDE else event.inputs[0].type
            macs[element] += count
    if macs:
        return macs.most_common(1)[0][0]
    return _OF_PRECISION.get(precision, "float")


def _work_of(event: NodeEvent) -> Work:
    if event.op in CONTROL_FLOW:  # its bodies stand for it
        return Work(macs=0, moved_bytes=0)
    if event.partition:
        return Work()
    inputs = [_bytes(tensor) for tensor in event.inputs]
    outputs = [_bytes(tensor) for tensor in event.outputs]
    known = [size for size in (*inputs, *outputs) if size is not None]
    moved = None
    if len(known) == len(inputs) + len(outputs) and known:
        read, written = moved_bytes(event.op, known[: len(inputs)], known[len(inputs) :])
        moved = countable(sum(read) + written)
    macs = multiply_accumulates(
        event.op,
        [tensor.shape for tensor in event.inputs],
        [tensor.shape for tensor in event.outputs],
    )
    return Work(macs=macs, moved_bytes=moved)


def _bytes(tensor: Tensor) -> int | None:
    return tensor_bytes(tensor.type, tensor.shape)


def _sum(values: Iterable[int | None]) -> int | None:
    listed = list(values)
    known = [value for value in listed if value is not None]
    return countable(sum(known)) if len(known) == len(listed) else None
