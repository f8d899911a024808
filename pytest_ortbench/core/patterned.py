"""Rules that hold for those cases whose ids their pattern fits."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Protocol, TypeVar

from pytest_ortbench.core.errors import UsageError
from pytest_ortbench.core.ids import id_fits

_LISTED = 5


class Patterned(Protocol):
    """A rule with a pattern; see :func:`~pytest_ortbench.core.ids.id_fits`."""

    @property
    def pattern(self) -> str:
        """Which cases, by id; empty for all."""

    @property
    def text(self) -> str:
        """The rule as the user wrote it."""


_Rule = TypeVar("_Rule", bound=Patterned)


def fitting(rules: Iterable[_Rule], case_id: str, case_ids: Collection[str] = ()) -> list[_Rule]:
    """Return the rules that are about a case.

    Args:
        rules: All of them.
        case_id: The case.
        case_ids: Those of the whole run: a pattern that is one of them means that case only, so
            that ``net/native/cpu/b1`` is not about ``net/native/cpu/b16``.
    """
    return [
        rule
        for rule in rules
        if rule.pattern == case_id
        or (rule.pattern not in case_ids and id_fits(case_id, rule.pattern))
    ]


def unfitting(rules: Iterable[Patterned], case_ids: Collection[str]) -> list[str]:
    """Say of each rule that is about none of the cases that it is."""
    return [
        f"{rule.pattern!r} in {rule.text!r} matches no case"
        for rule in rules
        if not any(id_fits(case_id, rule.pattern) for case_id in case_ids)
    ]


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
    misfits = unfitting(rules, case_ids) if case_ids else []
    if not misfits or not place.startswith("-"):
        return [f"{place}: {text}" for text in misfits]
    shown = ", ".join(list(case_ids)[:_LISTED]) + (", …" if len(case_ids) > _LISTED else "")
    raise UsageError(misfits[0], place=place, hint=f"The cases are {shown}")
