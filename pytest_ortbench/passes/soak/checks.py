"""What a soak must agree on."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any

from pytest_ortbench.passes.soak.facts import Soak


def _soak(soak: Soak) -> Iterator[tuple[str, str]]:
    if len(soak.at) != len(soak.resident_bytes):
        yield "resident_bytes", "must have an entry for each of at"
    if any(earlier > other for earlier, other in pairwise(soak.at)):
        yield "at", "must be in ascending order"


#: What must agree within each type: the field that does not, and the rule that it breaks.
RELATIONS: dict[type, Callable[[Any], Iterator[tuple[str, str]]]] = {Soak: _soak}
