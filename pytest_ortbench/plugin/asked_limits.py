"""Limits of ``--ort-limits`` and ``ort_limits``: they hold for cases, whichever tests run."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

from pytest_ortbench.core.judgement import Judgement, bad, good, unjudged
from pytest_ortbench.core.patterned import fitting
from pytest_ortbench.plugin.fixture import OrtBench
from pytest_ortbench.plugin.judging import Verdict
from pytest_ortbench.unfitting import refuse_unfitting

if TYPE_CHECKING:
    import pytest

    from pytest_ortbench.analysis.limits import LimitOutcome
    from pytest_ortbench.core.limits import CaseLimit, Limit
    from pytest_ortbench.planning.matrix import Planned
    from pytest_ortbench.plugin.bench import Bench

_OF = "limit"


class AskedLimits:
    """Holds cases to the limits that option or ini key name.

    Args:
        bench: The run.
        limits: What was asked for.
        place: Where.
        insisting: Whether it was asked for this very run, and not for every run of a project: then
            a run that holds no case to them fails.

    Attributes:
        notes: Notices to show after collection.
    """

    def __init__(
        self, bench: Bench, limits: Sequence[CaseLimit], *, place: str, insisting: bool
    ) -> None:
        self.notes: list[str] = []
        self._bench = bench
        self._limits = limits
        self._place = place
        self._insisting = insisting
        self._case_ids: Collection[str] = ()
        self._judged: set[CaseLimit] = set()
        self._without: set[CaseLimit] = set()

    def assign(self, case_ids: Collection[str]) -> None:
        """Note the ids of the selected cases.

        Raises:
            UsageError: for a pattern of the command line that fits no case. One of an ini file
                may be meant for another run, which is said.
        """
        self._case_ids = case_ids
        self.notes += refuse_unfitting(self._limits, case_ids, place=self._place)

    def _fitting(self, planned: Planned) -> list[CaseLimit]:
        return fitting(self._limits, planned.case.key[0], self._case_ids)

    def of(self, planned: Planned) -> tuple[Limit, ...]:
        """Return the limits that a case must keep."""
        return tuple(asked.limit for asked in self._fitting(planned))

    def owes(self, planned: Planned) -> tuple[str, ...]:
        """Name the limits that a case must keep."""
        return tuple(f"'{limit.text}' ({self._place})" for limit in self.of(planned))

    def judge(self, _item: pytest.Item, planned: Planned) -> Verdict:
        """Hold a case to its limits; passes that they need are carried out."""
        result = self._bench.result(planned)
        if result.failure is not None:
            return self._unable(planned, result.failure.message)
        case = OrtBench(self._bench, planned, ())
        return self._verdict(planned, case.hold(self.of(planned)))

    def settle(self, planned: Planned, _why: str) -> Verdict | None:
        """Hold a case to its limits by what was measured, if anything was."""
        from pytest_ortbench.analysis.limits import check_limits
        from pytest_ortbench.analysis.summary import summarise

        result = self._bench.known(planned)
        if result is None:
            return None
        if result.failure is not None:
            return self._unable(planned, result.failure.message)
        return self._verdict(planned, check_limits(self.of(planned), summarise(result)))

    def _unable(self, planned: Planned, reason: str) -> Verdict:
        """A case that gave no number: what that means for its tests is said by the case itself."""
        self._without.update(self._fitting(planned))
        text = f"its limits were not judged: {reason}"
        return Verdict(judgement=unjudged(_OF, text), remark=text)

    def _verdict(self, planned: Planned, outcomes: Sequence[LimitOutcome]) -> Verdict:
        self._judged.update(self._fitting(planned))
        return Verdict(
            judgement=judgement_of(outcomes),
            heading="limits exceeded",
            problems=broken(outcomes),
        )

    def problems(self) -> list[str]:
        """What fails a run of which limits were asked and no case was held to some of them."""
        left = self._left()
        return left if self._insisting or self._case_ids else []

    def remarks(self) -> list[str]:
        """Likewise what is only said: the limits of a project, in a run of its other tests."""
        deselected = self._bench.collection.collected or self._bench.fates.modules_skipped
        return [] if self._insisting or self._case_ids or not deselected else self._left()

    def _left(self) -> list[str]:
        """The limits that no case was held to, and why; one that fits no case was said before."""
        if not self._limits:
            return []
        if not self._case_ids:
            texts = ", ".join(f"'{limit.text}'" for limit in self._limits)
            return [
                f"{self._place}: no case was held to {texts}: {self._bench.collection.why_no_case}"
            ]
        return [
            f"{self._place}: no case was held to '{limit.text}': none of those that it is about "
            "was measured"
            for limit in self._limits
            if limit in self._without and limit not in self._judged
        ]


def judgement_of(outcomes: Sequence[LimitOutcome]) -> Judgement:
    """Return one judgement for several limits: the worst of them."""
    if not outcomes:
        return unjudged(_OF, "there are no limits")
    exceeded = [each.judgement.reason for each in outcomes if each.judgement.is_bad]
    if exceeded:
        return bad(_OF, "; ".join(exceeded))
    unknown = [each.judgement.reason for each in outcomes if each.judgement.is_unjudged]
    return unjudged(_OF, "; ".join(unknown)) if unknown else good(_OF)


def broken(outcomes: Sequence[LimitOutcome]) -> tuple[str, ...]:
    """Say of each limit that is exceeded, or could not be judged, that it is."""
    return tuple(each.judgement.reason for each in outcomes if not each.judgement.is_good)
