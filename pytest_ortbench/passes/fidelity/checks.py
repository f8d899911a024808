"""What facts of an export must agree on."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from pytest_ortbench.passes.fidelity.facts import CheckedSizes, Parting


def _choice(choice: CheckedSizes) -> Iterator[tuple[str, str]]:
    if not set(choice.changed) <= set(choice.sizes):
        yield "changed", "must name some of sizes"
    if choice.outputs and not choice.samples:
        yield "outputs", "must be empty: no input set was answered"


def _parting(parting: Parting) -> Iterator[tuple[str, str]]:
    if parting.matched > parting.compared:
        yield "matched", f"must not be above {parting.compared}, the parts that were compared"


#: What must agree within each type: the field that does not, and the rule that it breaks.
RELATIONS: dict[type, Callable[[Any], Iterator[tuple[str, str]]]] = {
    CheckedSizes: _choice,
    Parting: _parting,
}
