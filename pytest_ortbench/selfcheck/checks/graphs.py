"""Whether a recorded graph gives the answers of the model, and how fast it is."""

from __future__ import annotations

from dataclasses import dataclass

from pytest_ortbench.analysis.summary import summarise
from pytest_ortbench.core.case import Provider
from pytest_ortbench.core.certificate import Amount
from pytest_ortbench.core.graph_capture import captures_graph
from pytest_ortbench.core.outcome import CaseResult
from pytest_ortbench.selfcheck.check import (
    CantLook,
    Check,
    CheckBench,
    LineFinding,
    passed,
    ran,
    unchecked,
)
from pytest_ortbench.selfcheck.checks.accuracy import judged_by_reference

#: The switch of each provider that records graphs.
_SWITCHES = {
    "CUDAExecutionProvider": "enable_cuda_graph",
    "TensorrtExecutionProvider": "trt_cuda_graph_enable",
    "NvTensorRTRTXExecutionProvider": "nv_cuda_graph_enable",
}
_NONE = unchecked("no graphs", "this provider records no graph that is measured here")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Graphs:
    """A model with its graph recorded, and without."""

    recorded: CaseResult
    plain: CaseResult


def _look(bench: CheckBench) -> _Graphs:
    switch = _SWITCHES.get(bench.provider.name)
    if switch is None:
        raise CantLook(_NONE)
    return _Graphs(
        recorded=bench.measured(bench.case("builtin:canary", io="device", options={switch: "1"})),
        plain=bench.measured(bench.case("builtin:canary", io="device")),
    )


def _judge(facts: _Graphs, provider: Provider) -> LineFinding:
    del provider
    failure = ran(facts.recorded)
    if failure is not None:
        return failure
    recorded = facts.recorded
    in_force = recorded.measurements[0].options_in_force if recorded.measurements else {}
    if not captures_graph(recorded.case.provider) or not _is_on(in_force):
        return unchecked("not recorded", "the session does not read back that it records")
    answers = judged_by_reference(recorded)
    if answers.verdict != "pass":
        return answers
    return passed("replayed", "a replayed graph gives the answers of the model", *_ratio(facts))


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
