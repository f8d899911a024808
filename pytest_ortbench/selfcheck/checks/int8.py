"""Whether a model in int8 with QDQ is executed in int8, and answers as it must."""

from __future__ import annotations

from pytest_ortbench.core.case import Provider
from pytest_ortbench.core.outcome import CaseResult
from pytest_ortbench.core.placement import is_fallback
from pytest_ortbench.selfcheck.check import Check, CheckBench, LineFinding, passed, unchecked, wrong
from pytest_ortbench.selfcheck.checks.accuracy import judged_by_reference, nearness

_EIGHT_BIT = ("int8", "uint8")
#: Providers that compute QDQ models in float; on NVIDIA's GPUs it is TensorRT that has int8.
_WITHOUT = ("CUDAExecutionProvider", "ROCMExecutionProvider", "WebGpuExecutionProvider")


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
    if provider.name in _WITHOUT:
        return unchecked(
            "no int8",
            "this provider has no arithmetic in int8 for such models: rows in int8 show what its "
            "float kernels take",
            *nearness(facts),
            **words,
        )
    return wrong(
        "emulated", "int8 was asked for, and another precision ran", *nearness(facts), **words
    )


CHECK = Check(name="int8", about="the precision that int8 runs in", look=_look, judge=_judge)
