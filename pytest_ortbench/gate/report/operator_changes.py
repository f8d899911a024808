"""The operators that account for a change, as a table of text."""

from __future__ import annotations

from collections.abc import Sequence

from pytest_ortbench.core.units import format_amount
from pytest_ortbench.gate.numbers.operators import OperatorChange

HEADER = ["operator", "nodes", "before", "after", "change"]

_SUFFIX = "ExecutionProvider"


def change_rows(changes: Sequence[OperatorChange], *, top: int = 6) -> list[list[str]]:
    """One row an operator, the largest change first, and one for all others.

    Args:
        changes: Of :func:`~pytest_ortbench.gate.numbers.operators.operator_changes`.
        top: Operators that have a row of their own.
    """
    shown, rest = changes[:top], changes[top:]
    rows = [
        _row(
            f"{one.op} ({one.provider.removesuffix(_SUFFIX)})" if one.provider else one.op,
            (one.before_nodes, one.after_nodes),
            (one.before_ns, one.after_ns),
        )
        for one in shown
    ]
    for label, some in ((f"{len(rest)} others", rest), ("the whole run", changes)):
        if some:
            nodes = sum(one.before_nodes for one in some), sum(one.after_nodes for one in some)
            times = sum(one.before_ns for one in some), sum(one.after_ns for one in some)
            rows.append(_row(label, nodes, times))
    return rows


def _row(label: str, nodes: tuple[int, int], times_ns: tuple[int, int]) -> list[str]:
    before, after = times_ns
    change = after - before
    return [
        label,
        "" if nodes == (0, 0) else str(nodes[0]) if nodes[0] == nodes[1] else _arrow(*nodes),
        format_amount(before / 1e9, "s"),
        format_amount(after / 1e9, "s"),
        ("+" if change > 0 else "") + format_amount(change / 1e9, "s"),
    ]


def _arrow(before: int, after: int) -> str:
    return f"{before} → {after}"
