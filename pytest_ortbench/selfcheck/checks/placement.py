"""Placement against the profiler's own file and against the assignment interface."""

from __future__ import annotations

from dataclasses import dataclass

from pytest_ortbench.core.case import Provider
from pytest_ortbench.core.certificate import Amount
from pytest_ortbench.core.outcome import CaseResult, Placement
from pytest_ortbench.core.placement import is_fallback, missing_evidence, nodes_elsewhere
from pytest_ortbench.selfcheck.check import (
    Check,
    CheckBench,
    LineFinding,
    passed,
    ran,
    unchecked,
    wrong,
)
from pytest_ortbench.selfcheck.facts import ProfiledNodes
from pytest_ortbench.selfcheck.questions import CountProfile


@dataclass(frozen=True, slots=True, kw_only=True)
class _Placed:
    """What placement says, and what a plain count of a profile says."""

    result: CaseResult
    counted: ProfiledNodes | None


def _look(bench: CheckBench) -> _Placed:
    case = bench.case("builtin:canary")
    result = bench.measured(case)
    if result.failure is not None:
        return _Placed(result=result, counted=None)
    with bench.opened(case) as worker:
        return _Placed(result=result, counted=worker.ask(CountProfile()))


def nodes_by_provider(placement: Placement) -> dict[str, int]:
    """Return how many nodes a placement names, shape-only ones included, by provider."""
    names = sorted({*placement.executed, *placement.shape_only})
    return {
        name: placement.executed.get(name, 0) + placement.shape_only.get(name, 0) for name in names
    }


def _judge(facts: _Placed, provider: Provider) -> LineFinding:
    failure = ran(facts.result)
    if failure is not None:
        return failure
    placement, counted = facts.result.placement, facts.counted
    lacking = missing_evidence(placement)
    if lacking or placement is None or counted is None:
        return unchecked("no profile", lacking or "no profile was counted")
    if is_fallback(placement):
        return wrong("fallback", f"no computing node ran on {provider.name}")
    told = nodes_by_provider(placement)
    elsewhere = nodes_elsewhere(placement)
    amounts = (
        Amount(name="nodes by placement", value=float(sum(told.values()))),
        Amount(name="by the profile", value=float(sum(counted.nodes.values()))),
        Amount(name="elsewhere", value=float(elsewhere)),
        Amount(name="copies", value=float(placement.copies)),
    )
    if told != counted.nodes or placement.copies != counted.copies:
        return wrong(
            "profile disagrees", "the profile holds other nodes than placement tells", *amounts
        )
    if placement.nodes_on_provider == 0:
        return wrong(
            "assignment disagrees",
            f"the assignment interface gives {provider.name} no node",
            *amounts,
        )
    cause, reason = ("partial", "placement tells what the profile holds, a part ran elsewhere")
    if not elsewhere:
        cause, reason = "agrees", "placement tells what the profile holds"
    return passed(cause, reason, *amounts)


CHECK = Check(name="placement", about="placement against the profile", look=_look, judge=_judge)
