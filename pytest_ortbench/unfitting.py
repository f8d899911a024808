"""Rules of the user's that nothing in the run is held to."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import TYPE_CHECKING

from pytest_ortbench.core.errors import UsageError
from pytest_ortbench.core.patterned import unfitting

if TYPE_CHECKING:
    from pytest_ortbench.core.patterned import Patterned
    from pytest_ortbench.gate.numbers.rules import Rule

_LISTED = 5


def refuse_unfitting(
    rules: Iterable[Patterned], case_ids: Collection[str], *, place: str
) -> list[str]:
    """Refuse a rule that the command line names for nothing.

    Args:
        rules: What was asked for.
        case_ids: Those of the cases that were selected; without any, nothing is said.
        place: Where it stands.

    Returns:
        What is to be said of rules of an ini file, which may be meant for another run.

    Raises:
        UsageError: for one of the command line.
    """
    found = unfitting(rules, case_ids) if case_ids else []
    if not found or not place.startswith("-"):
        return [f"{place}: {text}" for text in found]
    shown = ", ".join(list(case_ids)[:_LISTED]) + (", …" if len(case_ids) > _LISTED else "")
    raise UsageError(found[0], place=place, hint=f"Cases: {shown}")


def refuse_idle_sides(rules: Iterable[Rule], *, place: str) -> list[str]:
    """Refuse floors of the command line for answers of two sides that a stored run has not.

    Args:
        rules: What was asked for.
        place: Where it stands.

    Returns:
        What is to be said of rules of an ini file, which may be meant for another run.

    Raises:
        UsageError: for one of the command line.
    """
    from pytest_ortbench.gate.numbers.rules import refuse_rules_of_sides

    try:
        refuse_rules_of_sides(rules, place=place)
    except UsageError as error:
        if place.startswith("-"):
            raise
        return [str(error)]
    return []
