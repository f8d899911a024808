"""How long cases still take, while they are measured."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable, Mapping
from typing import TYPE_CHECKING

from pytest_ortbench.planning.estimate import pace_of

if TYPE_CHECKING:
    from pytest_ortbench.core.case import Case, Key
    from pytest_ortbench.core.outcome import CaseResult
    from pytest_ortbench.planning.estimate import Costs

#: Cases are counted anew when so small a share of them waits as at the last time; few, after each.
_RECOUNTED, _FEW = 0.99, 100


class Countdown:
    """How long cases still take, better known with every case that is over.

    Args:
        costs: What parts of cases take.
        asked: The cases that are to be measured, each with its passes.
        besides_s: What a case takes besides, by its key: its gate, files that are made for it.
        end_s: What comes behind the last case.
    """

    def __init__(
        self,
        costs: Costs,
        asked: Iterable[tuple[Case, Collection[str]]],
        *,
        besides_s: Mapping[Key, float] | None = None,
        end_s: float = 0.0,
    ) -> None:
        self._costs = costs
        self._waiting = {case.key: (case, tuple(passes)) for case, passes in asked}
        self._besides_s = dict(besides_s or {})
        self._end_s = end_s
        self._waiting_s = self._of_waiting()
        self._counted = len(self._waiting)
        self._done_s = 0.0
        self._began_s: float | None = None
        self._case_began_s = 0.0

    def add(self, case: Case, passes: Collection[str]) -> None:
        """Count a case that came up late."""
        if case.key not in self._waiting:
            self._waiting[case.key] = (case, tuple(passes))
            self._waiting_s += self._of(case, passes)

    def begin(self, case: Case) -> None:
        """A case starts."""
        if case.key in self._waiting:  # neither refused nor measured by an earlier run
            self._case_began_s = time.monotonic()
            if self._began_s is None:
                # Neither collecting nor making environments comes again.
                self._began_s = self._case_began_s

    def end(self, result: CaseResult) -> None:
        """The case of a result is over."""
        case, passes = self._waiting.pop(result.case.key, (None, ()))
        if case is None:
            return
        expected_s = self._of(case, passes)
        self._costs.learn(result)
        self._done_s += self._of(case, passes)
        self._waiting_s -= expected_s
        if len(self._waiting) <= _RECOUNTED * self._counted:
            # What was learnt is of use to others. Of thousands, not after each: that adds up.
            self._waiting_s = self._of_waiting()
            self._counted = len(self._waiting) if len(self._waiting) > _FEW else _FEW * 2

    @property
    def left_s(self) -> float:
        """Seconds until the end of the run, from now on."""
        if self._began_s is None:
            return self._waiting_s + self._end_s if self._waiting else 0.0
        pace = pace_of(self._case_began_s - self._began_s, self._done_s)
        running_s = time.monotonic() - self._case_began_s
        return max(0.0, pace * self._waiting_s - running_s) + self._end_s

    def _of(self, case: Case, passes: Collection[str]) -> float:
        expected = self._costs.expected(case, passes)
        return expected.total_s + self._besides_s.get(case.key, 0.0)

    def _of_waiting(self) -> float:
        besides_s = sum(self._besides_s.get(key, 0.0) for key in self._waiting)
        return self._costs.total_s(self._waiting.values()) + besides_s
