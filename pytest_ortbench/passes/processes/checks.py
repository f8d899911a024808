"""What a point of several processes must agree on."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from pytest_ortbench.passes.processes.facts import ProcessPoint


def _process_point(point: ProcessPoint) -> Iterator[tuple[str, str]]:
    if len(point.processes) > point.asked:
        yield "asked", f"must be {len(point.processes)} at least, as many as there are processes"
    if not point.processes and not point.reason:
        yield "processes", "must not be empty where no reason says why"
    if any(process.samples.wall_ns == 0 for process in point.processes):
        yield "processes", "must have a wall time each"


#: What must agree within each type: the field that does not, and the rule that it breaks.
RELATIONS: dict[type, Callable[[Any], Iterator[tuple[str, str]]]] = {ProcessPoint: _process_point}
