"""Limits of markers: each belongs to its test, and what was not judged is said."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pytest_ortbench.core.limits import Limit
    from pytest_ortbench.plugin.judging import Outcomes


class MarkedLimits:
    """Knows the selected tests with limits of their own, and which of them were held to these."""

    def __init__(self) -> None:
        self._left: dict[str, None] = {}

    def note(self, nodeid: str, limits: Sequence[Limit]) -> None:
        """Note a selected test with the limits of its markers."""
        if limits:
            self._left[nodeid] = None

    def held(self, nodeid: str) -> None:
        """Note that a test was held to its limits."""
        self._left.pop(nodeid, None)

    def remarks(self, outcomes: Outcomes) -> list[str]:
        """Say which tests were not held to theirs; one that failed is told already."""
        left = [nodeid for nodeid in self._left if nodeid not in outcomes.failed]
        return [f"limits of a marker were not judged: {outcomes.in_words(left)}"] if left else []
