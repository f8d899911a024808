"""Finds the operators that account for a change, by comparing the profiles of both sides."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pytest_ortbench.passes.profile.facts import OperatorProfile

#: Name of the time that lies in no node, among operators.
BETWEEN = "(between nodes)"


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatorChange:
    """All nodes of one operator type on one provider, before and after.

    Attributes:
        op: Operator type, or :data:`BETWEEN`.
        provider: Provider that executed them; empty for :data:`BETWEEN`.
        before_ns: Time in them a run on the side that is good; 0 where it has none.
        after_ns: Likewise on the side that is worse.
        before_nodes: Nodes on the side that is good.
        after_nodes: Likewise on the other one.
    """

    op: str
    provider: str
    before_ns: int
    after_ns: int
    before_nodes: int
    after_nodes: int

    @property
    def change_ns(self) -> int:
        """What a run spends more in them; below zero if less."""
        return self.after_ns - self.before_ns


def operator_changes(
    before: Sequence[OperatorProfile], after: Sequence[OperatorProfile]
) -> tuple[OperatorChange, ...]:
    """Compare the operators of two sides.

    Of several profiles of a side the least time of each operator counts: other load only adds.

    Args:
        before: Profiles of the side that is good, without reasons.
        after: Those of the side that is worse.

    Returns:
        Every operator of either side, the largest change first, whichever way it goes.

    Raises:
        ValueError: if a side has no profile.
    """
    old, new = _least(before), _least(after)
    changes = [
        OperatorChange(
            op=op,
            provider=provider,
            before_ns=old.get((op, provider), (0, 0))[0],
            after_ns=new.get((op, provider), (0, 0))[0],
            before_nodes=old.get((op, provider), (0, 0))[1],
            after_nodes=new.get((op, provider), (0, 0))[1],
        )
        for op, provider in dict.fromkeys([*old, *new])
    ]
    return tuple(sorted(changes, key=lambda change: -abs(change.change_ns)))


def _least(profiles: Sequence[OperatorProfile]) -> dict[tuple[str, str], tuple[int, int]]:
    """Time and nodes by operator and provider."""
    if not profiles:
        raise ValueError("a side without a profile has no operators")
    least: dict[tuple[str, str], tuple[int, int]] = {}
    for profile in profiles:
        entries = [
            *(
                ((operator.op, operator.provider), operator.time_ns, operator.nodes)
                for operator in profile.operators
            ),
            ((BETWEEN, ""), profile.between_ns, 0),
        ]
        for key, time_ns, nodes in entries:
            known = least.get(key)
            least[key] = (time_ns if known is None else min(known[0], time_ns), nodes)
    return least
