"""What is kept of a run for comparing is what its summary says."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_ortbench.analysis.summary import summarise
from pytest_ortbench.core.outcome import Flag
from pytest_ortbench.fleet.numbers.facts import SERVICE_POINTS, quantiles, reduce_run
from tests.results_factory import make_case, make_result, make_run


def test_numbers_are_those_of_the_summary() -> None:
    run = make_run([make_result()])
    whole = summarise(run.cases[0]).quantities
    kept = reduce_run(run, percentiles=True).cases[0].quantities
    assert kept == whole
    quick = reduce_run(run).cases[0].quantities
    assert set(whole) - set(quick) == {"latency_p90", "latency_p95", "latency_p99"}
    assert all(quick[name] == whole[name] for name in quick)


def test_reasons_and_flags() -> None:
    run = make_run(
        [
            make_result(
                flags=[Flag(name="INACCURATE", detail="below"), Flag(name="STEAL", detail="9")]
            ),
            make_result(
                flags=[Flag(name="UNJUDGED", detail="warm-up: 3 samples; raise --ort-time")]
            ),
            make_result(case=make_case(provider="cuda"), status="crash"),
            make_result(case=make_case(batch=8), flags=[Flag(name="STEAL"), Flag(name="LOW-N")]),
        ]
    )
    barred, unjudged, crashed, blurred = reduce_run(run).cases
    assert barred.reason == "INACCURATE: below"
    assert unjudged.reason.startswith("UNJUDGED: warm-up")
    assert crashed.reason == "crash: the worker died"
    assert (blurred.reason, blurred.blurred_by) == ("", ("STEAL",))
    (doubted,) = reduce_run(make_run([make_result(flags=[Flag(name="ENERGY-DISAGREE")])])).cases
    assert (doubted.reason, doubted.power_reason) == ("", "ENERGY-DISAGREE")
    assert blurred.power_reason == ""


def test_presets_are_other_work_and_threads_are_not() -> None:
    run = make_run(
        [
            make_result(case=make_case(knobs={"workload": preset, "threads": threads}))
            for preset, threads in (("prefill", "1"), ("decode", "1"), ("decode", "2"))
        ]
    )
    prefill, decode, threaded = (case.workload for case in reduce_run(run).cases)
    assert prefill != decode
    assert decode == threaded


def test_callers_are_those_of_all_sessions() -> None:
    plain = make_case()
    shared = replace(make_case(knobs={"sessions": "4"}), sessions=4)
    both = replace(
        make_case(knobs={"concurrency": "2", "sessions": "3"}), concurrency=2, sessions=3
    )
    run = make_run([make_result(case=case) for case in (plain, shared, both)])
    assert [case.callers for case in reduce_run(run).cases] == [1, 4, 6]


def test_service_times_have_the_mean_of_the_samples() -> None:
    run = make_run([make_result(count=900)])
    case = reduce_run(run, service=True).cases[0]
    assert len(case.service_s) == SERVICE_POINTS
    mean = case.quantities["latency_mean"].value
    assert sum(case.service_s) / len(case.service_s) == pytest.approx(mean, rel=1e-6)


@given(
    st.lists(st.tuples(st.floats(1e-6, 10), st.floats(0.1, 10)), min_size=1, max_size=50),
)
def test_points_are_ascending_inside_the_sample_and_keep_its_mean(
    pairs: list[tuple[float, float]],
) -> None:
    values = [value for value, _ in pairs]
    weights = [weight for _, weight in pairs]
    points = quantiles(values, weights)
    assert all(one <= other + 1e-9 for one, other in pairwise(points))
    assert min(values) - 1e-9 <= points[0]
    assert points[-1] <= max(values) + 1e-9
    mean = sum(value * weight for value, weight in pairs) / sum(weights)
    assert sum(points) / len(points) == pytest.approx(mean, rel=1e-9, abs=1e-9)
