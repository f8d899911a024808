"""What single values of the endurance of a service may be, and what they must agree on."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any

from pytest_ortbench.passes.endurance.facts import ENDINGS, FAULTS, Endurance, EnduranceFault
from pytest_ortbench.schema.bound_kinds import Bound, Words

BOUNDS: dict[tuple[type, str], Bound] = {(EnduranceFault, "kind"): Words(FAULTS)}


def _endurance(found: Endurance) -> Iterator[tuple[str, str]]:
    if len(found.at) != len(found.resident_bytes):
        yield "resident_bytes", "must have an entry for each of at"
    if any(earlier > other for earlier, other in pairwise(found.at)):
        yield "at", "must be in ascending order"
    if found.reason and found.exchanges is not None:
        yield "reason", "must be empty: requests were sent"


def _fault(fault: EnduranceFault) -> Iterator[tuple[str, str]]:
    if fault.kind not in ENDINGS and fault.away_s:
        yield "away_s", f"must be 0: {fault.kind} ends no service"
    if sum(fault.answers.values()) > fault.count:
        yield "answers", f"must be {fault.count} together at most, as often as it was done"


#: What must agree within each type: the field that does not, and the rule that it breaks.
RELATIONS: dict[type, Callable[[Any], Iterator[tuple[str, str]]]] = {
    EnduranceFault: _fault,
    Endurance: _endurance,
}
