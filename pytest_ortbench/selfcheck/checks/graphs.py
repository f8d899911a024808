"""Whether a recorded graph gives the answers of the model, and how fast it is."""

from __future__ import annotations

from dataclasses import dataclass

from pytest_ortbench.analysis.summary import summarise
from pytest_ortbench.core.case import Provider
from pytest_ortbench.core.certificate import Amount
from pytest_ortbench.core.graph_capture import captures_graph
from pytest_ortbench.core.outcome import CaseResult
from pytest_ortbench.models.builders.check_models import PROBE_ROWS
from pytest_ortbench.selfcheck.check import (
    CantLook,
    Check,
    CheckBench,
    LineFinding,
    passed,
    ran,
    unchecked,
    wrong,
)
from pytest_ortbench.selfcheck.checks.accuracy import judged_by_reference
from pytest_ortbench.selfcheck.facts import Replayed
from pytest_ortbench.selfcheck.questions import Replay

#: The switch of each provider that records graphs.
_SWITCHES = {
    "CUDAExecutionProvider": "enable_cuda_graph",
    "TensorrtExecutionProvider": "trt_cuda_graph_enable",
    "NvTensorRTRTXExecutionProvider": "nv_cuda_graph_enable",
}
_NONE = unchecked("no graphs", "this provider records no graph that is measured here")


#: Values of the model ``mantissa``, which answers what it is given: exact in TF32, too.
_RECORDED = tuple(float(1 + row) for row in range(PROBE_ROWS))
_GIVEN = _RECORDED[::-1]
#: What an answer may differ by.
_NEAR = 2.0**-7


@dataclass(frozen=True, slots=True, kw_only=True)
class _Graphs:
    """A model with its graph recorded and without, and what a replay answers to other values."""

    recorded: CaseResult
    plain: CaseResult
    replayed: Replayed | None = None


def _look(bench: CheckBench) -> _Graphs:
    switch = _SWITCHES.get(bench.provider.name)
    if switch is None:
        raise CantLook(_NONE)
    on = {switch: "1"}
    recorded = bench.measured(bench.case("builtin:canary", io="device", options=on))
    if recorded.failure is not None:
        return _Graphs(recorded=recorded, plain=recorded)
    with bench.opened(bench.case(bench.model("mantissa"), io="device", options=on)) as worker:
        replayed = worker.ask(Replay(recorded=_RECORDED, given=_GIVEN))
    plain = bench.measured(bench.case("builtin:canary", io="device"))
    return _Graphs(recorded=recorded, plain=plain, replayed=replayed)


def _judge(facts: _Graphs, provider: Provider) -> LineFinding:
    del provider
    failure = ran(facts.recorded)
    if failure is not None:
        return failure
    recorded = facts.recorded
    in_force = recorded.measurements[0].options_in_force if recorded.measurements else {}
    if not captures_graph(recorded.case.provider) or not _is_on(in_force):
        return unchecked("not recorded", "the session does not read back that it records")
    # The reference is compared with a session that records nothing, since it feeds many inputs.
    if facts.replayed is None:
        return unchecked("not replayed", "no replay was given other values")
    if _are(facts.replayed.answers, _RECORDED):
        return wrong("stale", "a replay answers with the values that its graph was recorded with")
    if not _are(facts.replayed.answers, _GIVEN):
        return wrong("wrong replay", "a replay answers other values than the model")
    answers = judged_by_reference(recorded)
    if answers.verdict != "pass":
        return answers
    return passed("replayed", "a replayed graph gives the answers of the model", *_ratio(facts))


def _are(answers: tuple[float, ...], values: tuple[float, ...]) -> bool:
    return len(answers) == len(values) and all(
        abs(answer - value) <= _NEAR * value for answer, value in zip(answers, values, strict=True)
    )


def _is_on(in_force: dict[str, str]) -> bool:
    return any(in_force.get(switch, "").lower() in ("1", "true") for switch in _SWITCHES.values())


def _ratio(facts: _Graphs) -> tuple[Amount, ...]:
    medians = [
        summarise(result).quantities.get("latency_p50") for result in (facts.recorded, facts.plain)
    ]
    replayed, plain = medians
    if replayed is None or plain is None or not plain.value:
        return ()
    return (Amount(name="time to without", value=replayed.value / plain.value),)


CHECK = Check(name="graphs", about="a recorded graph against none", look=_look, judge=_judge)
