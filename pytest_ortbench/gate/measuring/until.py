"""When the launches of a pair must be over, where the whole run has a budget."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace

from pytest_ortbench.core.gate import GateResult, Hindrance, MetricVerdict
from pytest_ortbench.core.units import clock_words
from pytest_ortbench.gate.measuring.pair import CONTENDER
from pytest_ortbench.gate.measuring.paired import SideFailed
from pytest_ortbench.gate.numbers.metrics import MetricSide, limit_verdicts
from pytest_ortbench.gate.numbers.outcome import with_outcome
from pytest_ortbench.gate.numbers.rules import CaseRules

#: A worker whose deadline has come says so about so long before or behind it.
_TOLD_S = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Until:
    """When the launches of a pair must be over, by the budget of its run.

    Attributes:
        at: Of ``time.monotonic()``.
        launch_s: Seconds of a launch, as far as is known before the first.
        budget: The budget, for people.
    """

    at: float
    launch_s: float
    budget: str

    def allows(self, launches: int, *, longest_s: float = 0.0) -> bool:
        """Whether there is time for so many launches more, each as long as the longest so far."""
        return time.monotonic() + launches * (longest_s or self.launch_s) <= self.at

    @property
    def is_over(self) -> bool:
        """Whether it has come."""
        return time.monotonic() > self.at - _TOLD_S

    def hindrance(self, made: int, needed: int, *, longest_s: float = 0.0) -> Hindrance:
        """Why there is no verdict: fewer launches were made than the next look needs.

        Args:
            made: How many were made.
            needed: How many the next look needs.
            longest_s: What the longest of them took; 0 where none was made.
        """
        each_s = longest_s or self.launch_s
        return Hindrance(
            cause="budget",
            reason=f"the budget of {self.budget} (--ort-budget) ended the gate after {made} of "
            f"{needed} launches; {needed} take about {clock_words(max(1.0, needed * each_s))}",
        )


def out_of_time(
    result: GateResult, hindrance: Hindrance, rules: CaseRules, standard: MetricSide | None
) -> GateResult:
    """Return the verdict on a pair of which no launch was made: it decides nothing.

    Absolute limits are held all the same, where the contender was measured.
    """
    limits = () if standard is None else tuple(limit_verdicts(rules, standard.summary))
    return with_outcome(
        replace(
            result,
            verdict="inconclusive",
            cause=hindrance.cause,
            reason=hindrance.reason,
            metrics=limits,
        )
    )


def side_failed(
    result: GateResult, failed: SideFailed, *, timeout_s: float, until: Until | None
) -> GateResult:
    """Return the verdict where a side can't be measured: a regression of its status, or none.

    Args:
        result: With the launches that were made.
        failed: Which side, and why.
        timeout_s: The time limit of the case.
        until: When the budget ended the launches; ``None`` where the time limit comes first.
    """
    failure = failed.failure
    cause, reason = "status", f"status of the {failed.side}: {failure.kind}: {failure.message}"
    if failure.kind == "timeout":
        # Of the first launch: later ones leave something to judge.
        cause, limit = "time", f"--ort-timeout={timeout_s:g}"
        if until is not None:
            cause, limit = "budget", f"the budget of {until.budget} (--ort-budget)"
        reason = f"no launch ended within {limit}: {failed.side}: {failure.message}"
    verdict = MetricVerdict(
        metric="status",
        verdict="worse" if failed.side == CONTENDER else "incomparable",
        reason=f"{failed.side}: {failure.kind}: {failure.message}",
    )
    return replace(result, cause=cause, reason=reason, metrics=(verdict,))
