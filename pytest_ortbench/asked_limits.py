"""Limits of ``--ort-limits``: they hold for cases, and one test of each case is held to them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from pytest_ortbench.core.patterned import fitting
from pytest_ortbench.unfitting import refuse_unfitting

if TYPE_CHECKING:
    import pytest

    from pytest_ortbench.core.limits import CaseLimit, Limit
    from pytest_ortbench.plan.matrix import Planned

#: The test that breaks where a limit of its case is exceeded, if it is selected; else the first.
_CARRIER = "test_latency"


class AskedLimits:
    """The limits that option or ini key name, and the tests that carry them.

    Every test of a case reads the same numbers, so that one failure says all.

    Args:
        limits: What was asked for.
        place: Where.

    Attributes:
        notes: Notices to show after collection.
    """

    def __init__(self, limits: Sequence[CaseLimit], *, place: str) -> None:
        self.notes: list[str] = []
        self._limits = limits
        self._place = place
        self._carried: dict[str, tuple[Limit, ...]] = {}

    def assign(self, ours: Sequence[tuple[pytest.Item, Planned]]) -> None:
        """Choose the test that carries the limits of each case.

        Args:
            ours: The selected tests with their cases.

        Raises:
            UsageError: for a pattern of the command line that fits no case. One of an ini file
                may be meant for another run, which is said.
        """
        if not self._limits:
            return
        carriers: dict[tuple[str, str], pytest.Item] = {}
        for item, planned in ours:
            key = planned.case.key
            if key not in carriers or getattr(item, "originalname", item.name) == _CARRIER:
                carriers[key] = item
        case_ids = dict.fromkeys(case_id for case_id, _ in carriers)
        for (case_id, _), item in carriers.items():
            limits = fitting(self._limits, case_id, case_ids)
            self._carried[item.nodeid] = tuple(each.limit for each in limits)
        self.notes += refuse_unfitting(self._limits, case_ids, place=self._place)

    def of(self, item: pytest.Item) -> tuple[Limit, ...]:
        """Return the limits that a test carries; most tests carry none."""
        return self._carried.get(item.nodeid, ())
