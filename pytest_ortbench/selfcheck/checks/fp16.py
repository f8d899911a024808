"""Whether a model in float16 is executed in float16."""

from __future__ import annotations

from dataclasses import dataclass

from pytest_ortbench.core.case import Provider
from pytest_ortbench.core.certificate import Amount
from pytest_ortbench.core.outcome import CaseResult
from pytest_ortbench.models.builders.check_models import HALF_STEP, PROBE_ROWS
from pytest_ortbench.selfcheck.check import (
    Check,
    CheckBench,
    LineFinding,
    passed,
    ran,
    unchecked,
    works_on_cpus,
    wrong,
)
from pytest_ortbench.selfcheck.facts import Evaluated
from pytest_ortbench.selfcheck.questions import Evaluate

#: What the model ``half`` gives where the product in its middle was kept wider than float16.
_KEPT_WIDE = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class _Halves:
    """What the profile says of a model in fp16, and what its arithmetic tells."""

    result: CaseResult
    seen: Evaluated | None = None


def _look(bench: CheckBench) -> _Halves:
    case = bench.case(bench.model("half"), precision="fp16")
    result = bench.measured(case)
    if result.failure is not None:
        return _Halves(result=result)
    with bench.opened(case) as worker:
        return _Halves(
            result=result, seen=worker.ask(Evaluate(values=(1 + HALF_STEP,) * PROBE_ROWS))
        )


def kept_wide(seen: Evaluated | None) -> bool | None:
    """Return whether the product was kept wider than float16; ``None`` where that can't be told."""
    if seen is None or len(seen.values) != PROBE_ROWS:
        return None
    if all(abs(value) < _KEPT_WIDE for value in seen.values):
        return False
    return True if all(abs(value - 1) < _KEPT_WIDE for value in seen.values) else None


def _judge(facts: _Halves, provider: Provider) -> LineFinding:
    failure = ran(facts.result)
    if failure is not None:
        return failure
    placement = facts.result.placement
    executed = None if placement is None else placement.precision_executed
    wide = kept_wide(facts.seen)
    words = {"executed": executed or "not told by the profile"}
    amounts = (
        ()
        if wide is None
        else (Amount(name="kept of the product below float16", value=float(wide)),)
    )
    if executed == "float16" and wide is False:
        return passed("float16", "float16 is executed in float16", *amounts, **words)
    if executed is None and wide is False:
        return passed(
            "held in float16", "values between operators are held in float16", *amounts, **words
        )
    if executed == "float16" and wide:
        return wrong(
            "profile disagrees", "the profile tells float16, and values are kept wider", **words
        )
    if executed is not None and executed != "float16":
        if works_on_cpus(provider):  # most processors lack it
            return unchecked(
                "no float16",
                "this provider has no arithmetic in float16 here: such cases are flagged EMULATED",
                *amounts,
                **words,
            )
        return wrong("emulated", "float16 was asked for, and another precision ran", **words)
    return unchecked(
        "not told",
        "neither profile nor values tell: a compiler may keep more between fused operators",
        *amounts,
        **words,
    )


CHECK = Check(name="fp16", about="the precision that fp16 runs in", look=_look, judge=_judge)
