"""What a comparison of many runs keeps of the loads of a case."""

from __future__ import annotations

import math

from pytest_ortbench.analysis.summary import Summary
from pytest_ortbench.core.outcome import CaseResult
from pytest_ortbench.fleet.numbers.facts import PeakSearch, ServedRate
from pytest_ortbench.passes.load.facts import LoadSpec
from pytest_ortbench.passes.load.numbers.plan import LoadPlan, plan_load

#: Percentiles that a bill may ask for.
BILLED = (90.0, 95.0, 99.0)


def of_loads(result: CaseResult, summary: Summary) -> dict[str, tuple[object, ...]]:
    """Return the rates of arrival that a case was seen to serve, and what a search would take."""
    return {"served": _served(result), "searches": _searches(result, summary)}


def _searches(result: CaseResult, summary: Summary) -> tuple[PeakSearch, ...]:
    throughput = summary.quantities.get("throughput")
    if throughput is None or not throughput.value > 0:
        return ()
    least = throughput.value if throughput.low is None else throughput.low
    if not least > 0:
        return ()
    batch = result.case.batch
    return tuple(
        PeakSearch(
            percent=percent,
            takes_s=_search_s(percent, throughput.value / batch),
            most_s=_search_s(percent, least / batch),
        )
        for percent in BILLED
    )


def _search_s(percent: float, capacity_per_s: float) -> float:
    plan = plan_load(
        LoadSpec(text="", scenario="peak", percent=percent),
        capacity_per_s=capacity_per_s,
        timeout_s=math.inf,
        official=False,
    )
    # Within no limit of time there is a plan.
    return plan.expected_s if isinstance(plan, LoadPlan) else math.inf


def _served(result: CaseResult) -> tuple[ServedRate, ...]:
    rates = []
    for load in result.loads:
        test, bound = load.test, load.spec.latency_s
        if test is not None and test.valid and test.rate_per_s is not None and bound is not None:
            rate = ServedRate(
                rate_per_s=test.rate_per_s,
                beyond_per_s=load.beyond_per_s,
                percent=load.spec.percent,
                latency_s=bound,
                searched=load.spec.scenario == "peak",
            )
            rates.append(rate)
    return tuple(rates)
