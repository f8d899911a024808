"""Answers against the reference on the CPU."""

from __future__ import annotations

from pytest_ortbench.analysis.inaccuracy import judge_accuracy
from pytest_ortbench.core.case import Provider
from pytest_ortbench.core.certificate import Amount
from pytest_ortbench.core.outcome import CaseResult
from pytest_ortbench.core.precision import floor_of
from pytest_ortbench.selfcheck.check import (
    Check,
    CheckBench,
    LineFinding,
    passed,
    ran,
    unchecked,
    wrong,
)


def _look(bench: CheckBench) -> CaseResult:
    return bench.measured(bench.case("builtin:canary"))


def nearness(result: CaseResult) -> tuple[Amount, ...]:
    """Return how near the outputs of a case are to the reference, and how near they must be."""
    if result.accuracy is None:
        return ()
    told = [out.sqnr_db for out in result.accuracy.outputs if out.sqnr_db is not None]
    floor = Amount(name="must be", value=floor_of(result.case).sqnr_db, unit="dB")
    return (Amount(name="signal to noise", value=min(told), unit="dB"), floor) if told else ()


def judged_by_reference(result: CaseResult) -> LineFinding:
    """Judge the answers of a measured case."""
    failure = ran(result)
    if failure is not None:
        return failure
    judgement = judge_accuracy(result)
    if judgement.is_bad:
        return wrong("inaccurate", judgement.reason, *nearness(result))
    if judgement.is_unjudged:
        return unchecked("not compared", judgement.reason)
    return passed("accurate", "the answers are those of the reference", *nearness(result))


def _judge(facts: CaseResult, provider: Provider) -> LineFinding:
    del provider
    return judged_by_reference(facts)


CHECK = Check(name="accuracy", about="answers against the reference", look=_look, judge=_judge)
