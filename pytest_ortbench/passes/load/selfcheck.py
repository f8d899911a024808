"""The line of a self-check on load: arrivals at a known rate against the timed loop."""

from __future__ import annotations

from dataclasses import dataclass

from pytest_ortbench.analysis.summary import summarise
from pytest_ortbench.core.case import Provider
from pytest_ortbench.core.certificate import Amount
from pytest_ortbench.core.outcome import CaseResult
from pytest_ortbench.passes.load.facts import Load
from pytest_ortbench.passes.load.run import measure_loads
from pytest_ortbench.selfcheck.check import (
    Check,
    CheckBench,
    LineFinding,
    passed,
    ran,
    unchecked,
    wrong,
)

#: Share of what the standard pass reaches at which requests arrive, so that few wait; a latency is
#: allowed that any request keeps.
_RATE_SHARE, _LATENCY_S = 0.4, 10.0
#: What rates may differ by: arrivals are drawn at random.
_NEAR = 0.10
#: A request can't be answered faster than an inference takes; the generator counts its own parts.
_LEAST_SERVICE = 0.8


@dataclass(frozen=True, slots=True, kw_only=True)
class _Served:
    """A measured case, and what became of its load."""

    result: CaseResult
    load: Load | None = None
    service_s: float | None = None


def _look(bench: CheckBench) -> _Served:
    result = bench.measured(bench.case("builtin:canary"))
    numbers = summarise(result).quantities
    median, rate = numbers.get("latency_p50"), numbers.get("throughput")
    if result.failure is not None or median is None or rate is None:
        return _Served(result=result)
    asked = f"server:{rate.value * _RATE_SHARE:.1f}:{_LATENCY_S:g}s"
    loaded = measure_loads(result, (asked,), bench.launcher)
    load = next((load for load in loaded.loads if load.spec.text == asked), None)
    return _Served(result=result, load=load, service_s=median.value)


def _judge(facts: _Served, provider: Provider) -> LineFinding:
    del provider
    failure = ran(facts.result)
    if failure is not None:
        return failure
    test = None if facts.load is None else facts.load.test
    if facts.load is None or test is None or facts.service_s is None:
        reason = "" if facts.load is None else facts.load.reason
        return unchecked("no test", reason or "there was no test of the generator")
    asked, came, done = test.rate_per_s, test.scheduled_per_s, test.completed_per_s
    answer_ns = test.percentiles_ns.get("50") or test.mean_ns
    if not asked or not came or not done or not answer_ns:
        return unchecked("no rates", "the generator tells no rates")
    amounts = (
        Amount(name="asked", value=asked, unit="1/s"),
        Amount(name="came", value=came, unit="1/s"),
        Amount(name="answered", value=done, unit="1/s"),
        Amount(name="request", value=answer_ns * 1e-9, unit="s"),
        Amount(name="inference", value=facts.service_s, unit="s"),
    )
    if abs(came / asked - 1) > _NEAR:
        return wrong("other arrivals", "requests came at another rate than was asked", *amounts)
    if answer_ns * 1e-9 < _LEAST_SERVICE * facts.service_s:
        return wrong("too fast", "requests are answered faster than an inference takes", *amounts)
    if done < (1 - _NEAR) * came:
        return unchecked("behind", "this machine did not keep up with the requests", *amounts)
    return passed("served", "requests at a known rate were answered at that rate", *amounts)


CHECKS = (
    Check(
        name="load",
        about="arrivals at a known rate",
        look=_look,
        judge=_judge,
        in_short=False,
    ),
)
