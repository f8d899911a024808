"""What a case gets of a budget: its standard pass and further passes, each in its turn."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timezone

from pytest_ortbench.analysis.ranked import why_not_ranked
from pytest_ortbench.analysis.samples import median_latency
from pytest_ortbench.analysis.summary import summarise
from pytest_ortbench.analysis.validity import flags_of
from pytest_ortbench.core.case import Case
from pytest_ortbench.core.outcome import PHASES, BudgetShare, CaseResult, Failure
from pytest_ortbench.core.units import clock_words
from pytest_ortbench.execution.budget import Budget, Turn
from pytest_ortbench.execution.pace import BudgetPace
from pytest_ortbench.execution.passes import without

_HINT = (
    "To measure the cases that are left, run again with --ort-resume. To measure all in one run, "
    "raise --ort-budget"
)

#: A case that is ended has been told so by its worker about so long before.
_ENDED_S = 1.0


def measured_in_turn(
    budget: Budget, case: Case, measure: Callable[[Case, BudgetPace], CaseResult]
) -> CaseResult:
    """Measure a case within what a budget gives it.

    Args:
        budget: Of the run.
        case: The case, as it was planned.
        measure: Prepares the case with a shorter timeout and measures it at a pace.
    """
    part = budget.part(case)
    turn, began = budget.turn(part), budget.clock()
    if not turn.given_s:
        budget.left_out(part)
        return _without_turn(case, turn, budget.total_s)
    pace = BudgetPace(case=case, turn=turn, clock=budget.clock)
    result = replace(measure(_limited(case, turn, began), pace), budget=None)
    case_as_asked = replace(
        result.case, sampling=replace(result.case.sampling, timeout_s=case.sampling.timeout_s)
    )
    result = replace(result, case=case_as_asked, budget=pace.share_of(result.measurements))
    if budget.clock() > turn.at_most - _ENDED_S:
        result = _told_of_budget(result, budget.total_s, is_late=pace.begins_late)
    result = replace(result, flags=flags_of(result))
    if not why_not_ranked(summarise(result)):
        high_ns = median_latency([own.samples for own in result.measurements]).high_ns
        if high_ns is not None:
            budget.note_best(part, high_ns * 1e-9)
    budget.measured(part, result, budget.clock() - began)
    return result


def carried_out_in_turn(
    budget: Budget, name: str, result: CaseResult, carry_out: Callable[[CaseResult], CaseResult]
) -> CaseResult:
    """Carry out a further pass, or leave the reason if a budget has no time for it.

    Args:
        budget: Of the run.
        name: The pass, as it is asked for.
        result: What is known of the case.
        carry_out: Adds what the pass finds.
    """
    case = result.case
    part = budget.part(case, name)
    turn, began = budget.turn(part), budget.clock()
    if not turn.given_s:
        budget.left_out(part)
        reason = f"the budget of {clock_words(budget.total_s)} leaves no time for this pass"
        return without(result, [name], reason)
    carried = carry_out(replace(result, case=_limited(case, turn, began)))
    budget.carried_out(part, budget.clock() - began)
    return replace(carried, case=case)


def _limited(case: Case, turn: Turn, now: float) -> Case:
    """The case with no longer a timeout than its turn leaves."""
    timeout_s = max(1.0, min(case.sampling.timeout_s, turn.at_most - now))
    return replace(case, sampling=replace(case.sampling, timeout_s=timeout_s))


def _without_turn(case: Case, turn: Turn, total_s: float) -> CaseResult:
    """The result of a case whose least did not fit any more."""
    left = f"the budget of {clock_words(total_s)} has {clock_words(turn.left_s)} left"
    failure = Failure(
        kind="timeout",
        phase="start",
        message=f"not measured: {left}, but this case takes "
        f"{clock_words(math.ceil(turn.least_s))} or more"
        if turn.left_s < turn.least_s
        else f"not measured: {left}, but other cases need this time",
        hint=_HINT,
        tells_phase=True,
    )
    return CaseResult(
        case=case,
        status=failure.kind,
        failure=failure,
        started_at=datetime.now(timezone.utc).isoformat(timespec="seconds"),
        budget=BudgetShare(given_s=0.0),
    )


def _told_of_budget(result: CaseResult, total_s: float, *, is_late: bool) -> CaseResult:
    """The result of a case that a budget ended: its own timeout was not over.

    What a worker was doing tells nothing where its time was over when it began.
    """
    failure, share = result.failure, result.budget
    if failure is None or failure.kind != "timeout" or share is None:
        return result
    spent = f"the budget of {clock_words(total_s)}"
    more = f"Raise it, e.g. --ort-budget={math.ceil(2 * total_s)}s"
    told = (
        replace(
            failure,
            message=f"{spent} was used up before the case could be measured",
            hint=more,
            tells_phase=True,
        )
        if is_late
        else replace(
            failure,
            message=f"{spent} was used up while the process was {PHASES[failure.phase]}"
            if failure.tells_phase
            else f"{spent} is used up: {failure.message}",
            hint=more,
        )
    )
    return replace(result, failure=told, budget=replace(share, ended=True))
