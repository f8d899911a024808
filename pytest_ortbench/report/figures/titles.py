"""Headings of panels: short, and never the same for two of a figure."""

from __future__ import annotations

from collections.abc import Sequence

from pytest_ortbench.report.entries import Entry
from pytest_ortbench.report.escape import one_line
from pytest_ortbench.report.figures.shortening import around_difference, between_parts

#: A model's name keeps at least this many characters, however long the rest is.
LEAST = 12


def titles(shown: Sequence[Entry], *, flags: bool = False, limit: int = 60) -> list[str]:
    """Name the case of each panel in at most ``limit`` characters.

    Flags are the first to be shortened, to their number and then to nothing; the rest as by
    :func:`headings`.

    Args:
        shown: The cases of one figure.
        flags: Whether their flags are to be named.
        limit: Characters of one heading.
    """
    named = [(entry.result.case.model.name, entry.label) for entry in shown]
    return [
        _flagged(name, entry.flags if flags else (), limit)
        for name, entry in zip(headings(named, limit=limit), shown, strict=True)
    ]


def headings(
    named: Sequence[tuple[str, str]], *, between: str = "  ", limit: int = 60
) -> list[str]:
    """Name panels by whose they are (a model, a machine) and what they show of it.

    Where that is longer than ``limit``, the name is shortened around where it differs from those of
    the other panels; the rest only where the name would be left with next to nothing, and then
    between two of its parts.

    Args:
        named: Name and rest of each panel of a figure; the rest may be empty.
        between: What stands between them.
        limit: Characters of one heading.
    """
    clean = [(one_line(name), one_line(rest)) for name, rest in named]
    names = [name for name, _ in clean]
    return [_heading(name, rest, names, between if rest else "", limit) for name, rest in clean]


def _heading(name: str, rest: str, names: Sequence[str], between: str, limit: int) -> str:
    room = limit - len(between)
    rest = between_parts(rest, room - min(len(name), LEAST))
    return f"{around_difference(name, names, room - len(rest))}{between}{rest}"


def _flagged(named: str, flags: Sequence[str], limit: int) -> str:
    count = f"{len(flags)} flag{'s' * (len(flags) != 1)}"
    for suffix in (f"  [{', '.join(flags)}]", f"  [{count}]") if flags else ():
        if len(named) + len(suffix) <= limit:
            return named + suffix
    return named
