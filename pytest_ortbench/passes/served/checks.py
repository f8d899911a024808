"""What the facts of a service must agree on."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from pytest_ortbench.passes.served.facts import ServiceUse


def _use(use: ServiceUse) -> Iterator[tuple[str, str]]:
    if use.reason and use.durations_ns:
        yield "reason", "must be empty: there are requests"
    if use.durations_ns and not use.processes:
        yield "processes", "must be at least 1: something answered"


#: What must agree within each type: the field that does not, and the rule that it breaks.
RELATIONS: dict[type, Callable[[Any], Iterator[tuple[str, str]]]] = {ServiceUse: _use}
