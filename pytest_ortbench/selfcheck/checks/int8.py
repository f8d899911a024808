"""Whether a model in int8 with QDQ is executed in int8, and answers as it must."""

from __future__ import annotations

from pytest_ortbench.core.case import Provider
from pytest_ortbench.core.outcome import CaseResult
from pytest_ortbench.core.placement import is_fallback
from pytest_ortbench.selfcheck.check import Check, CheckBench, LineFinding, passed, unchecked, wrong
from pytest_ortbench.selfcheck.checks.accuracy import judged_by_reference, nearness

#: The flag of cases that run in another precision than they are called by.
EMULATED = "EMULATED"

_EIGHT_BIT = ("int8", "uint8")


def _look(bench: CheckBench) -> CaseResult:
    return bench.measured(bench.case("builtin:canary", precision="int8-static"))


def _judge(facts: CaseResult, provider: Provider) -> LineFinding:
    answers = judged_by_reference(facts)
    if answers.verdict != "pass":
        return answers
    placement = facts.placement
    executed = None if placement is None else placement.precision_executed
    words = {"executed": executed or "not told by the profile"}
    if placement is None or placement.reason:
        return unchecked("no profile", "nothing tells what was executed", *nearness(facts))
    if is_fallback(placement):
        return wrong("fallback", f"no computing node ran on {provider.name}", **words)
    if executed in _EIGHT_BIT:
        return passed("int8", "int8 is executed in int8", *nearness(facts), **words)
    if executed is None:
        return unchecked(
            "inside a compiler",
            "the inside of what a compiler made can't be seen",
            *nearness(facts),
        )
    if any(flag.name == EMULATED for flag in facts.flags):
        return unchecked(
            "emulated",
            "this provider runs int8 in another precision, and such cases are flagged EMULATED",
            *nearness(facts),
            **words,
        )
    return wrong(
        "not told",
        "another precision ran than int8, and no flag says so",
        *nearness(facts),
        **words,
    )


CHECK = Check(name="int8", about="the precision that int8 runs in", look=_look, judge=_judge)
