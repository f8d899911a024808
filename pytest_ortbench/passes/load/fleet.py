"""What a comparison of many runs keeps of the loads of a case."""

from __future__ import annotations

from pytest_ortbench.analysis.summary import Summary
from pytest_ortbench.core.outcome import CaseResult
from pytest_ortbench.fleet.numbers.facts import ServedRate


def served(result: CaseResult, _summary: Summary) -> dict[str, tuple[ServedRate, ...]]:
    """Return the rates of arrival that a case was seen to serve."""
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
    return {"served": tuple(rates)}
