"""The numbers of a service: what they are of, and where they go."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pytest_ortbench.analysis.limits import check_limits
from pytest_ortbench.analysis.rows import row
from pytest_ortbench.analysis.summary import summarise
from pytest_ortbench.core.case import Provider
from pytest_ortbench.core.limits import parse_limit
from pytest_ortbench.core.outcome import CaseResult
from pytest_ortbench.passes.served.declaration import PASS
from pytest_ortbench.passes.served.facts import ServiceUse
from pytest_ortbench.report.entries import shown_run
from pytest_ortbench.report.prometheus import render_prometheus
from tests.results_factory import make_result, make_run

MS = 1_000_000
USE = ServiceUse(
    app="reference",
    durations_ns=tuple(range(MS, 401 * MS, MS)),
    steps_ns={"read": MS, "inference": 150 * MS},
    cpu_ns=800 * MS,
    resident_bytes=300,
    processes=1,
    cpus=2,
    memory_bytes=10_000,
)


def of(use: ServiceUse | None) -> CaseResult:
    result = replace(make_result(), served=use)
    provider = Provider(name="endpoint", alias="endpoint", role="endpoint")
    return replace(result, case=replace(result.case, provider=provider))


def test_each_number_is_of_its_own_facts() -> None:
    found = summarise(of(USE)).quantities
    values = {name: found[name].value for name in PASS.metric_names}
    assert values == pytest.approx(
        {
            "served_p50": 0.200,
            "served_p90": 0.360,
            "served_p99": 0.396,
            "served_overhead": 0.050,
            "served_cpu": 0.002,
            "served_memory": 300,
        }
    )
    assert {found[name].samples for name in PASS.metric_names} == {1, 400}
    p99 = found["served_p99"]
    assert p99.low is not None
    assert p99.high is not None
    assert p99.low < p99.value < p99.high


def test_what_is_not_known_is_missing_and_no_zero() -> None:
    few = replace(USE, durations_ns=USE.durations_ns[:100], steps_ns={}, cpu_ns=0, resident_bytes=0)
    summary = summarise(of(few))
    absent = {"served_p99", "served_overhead", "served_cpu", "served_memory"}
    assert absent <= summary.missing.keys()
    assert not absent & summary.quantities.keys()
    assert {"served_p50", "served_p90"} <= summary.quantities.keys()
    # A service that says its inference took longer than the request is not believed.
    odd = summarise(of(replace(USE, steps_ns={"inference": 900 * MS})))
    assert "served_overhead" in odd.missing
    for use in (None, ServiceUse(reason="it ended")):
        assert {*PASS.metric_names} <= summarise(of(use)).missing.keys()


def test_they_are_limited_exported_and_scraped() -> None:
    result = of(USE)
    summary = summarise(result)
    limits = [
        parse_limit(text, place="here") for text in ("served_p99 < 400ms", "served_p99 < 390ms")
    ]
    kept, broken = check_limits(limits, summary)
    assert (kept.judgement.is_good, broken.judgement.is_bad) == (True, True)
    run = make_run([result])
    exported = row(result, run, summary)
    assert exported["served_memory_bytes"] == 300
    assert exported["served_p99_s"] == pytest.approx(0.396)
    assert "ortbench_served_cpu_seconds" in render_prometheus(shown_run(run))


def test_limits_on_a_service_say_nothing_of_the_session_beside_it() -> None:
    limit = parse_limit("served_p99 < 390ms", place="here")
    assert check_limits([limit], summarise(make_result())) == []
    [unknown] = check_limits([limit], summarise(of(None)))
    assert unknown.judgement.is_unjudged
