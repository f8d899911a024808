"""Numbers of a single process: their intervals reach as far as processes differ, everywhere."""

from __future__ import annotations

import csv
import io
from dataclasses import replace

import pytest

from pytest_ortbench.analysis.limits import check_limits
from pytest_ortbench.analysis.sentences import with_interval
from pytest_ortbench.analysis.summary import summarise
from pytest_ortbench.analysis.validity import flags_of
from pytest_ortbench.core.limits import parse_limit
from pytest_ortbench.core.outcome import CaseResult
from pytest_ortbench.report.badge import case_badge
from pytest_ortbench.report.csv import render_csv
from tests.results_factory import make_case, make_measurement, make_result, make_run
from tests.summarised import answers_of, rows_of

#: 100 samples of 1.000 to 1.099 ms; ranks 40 and 61 bracket the median.
SAMPLES = [1_000_000 + 1_000 * step for step in range(100)]


def of(*scales: float, provider: str = "cpu", batch: int = 1) -> CaseResult:
    return make_result(
        case=make_case(provider=provider, batch=batch),
        measurements=[
            make_measurement([round(scale * each) for each in SAMPLES], worker=worker)
            for worker, scale in enumerate(scales)
        ],
    )


def test_the_interval_of_one_process_is_widened_by_what_processes_differ():
    p50 = summarise(of(1.0)).quantities["latency_p50"]
    assert p50.value == pytest.approx(1.049e-3)
    assert (p50.low, p50.high) == (pytest.approx(0.95 * 1.039e-3), pytest.approx(1.05 * 1.060e-3))


def test_so_is_that_of_two_that_agree():
    # Two processes are alike by chance far more often than processes are alike.
    p50 = summarise(of(1.0, 1.0)).quantities["latency_p50"]
    assert (p50.low, p50.high) == (pytest.approx(0.95 * 1.039e-3), pytest.approx(1.05 * 1.060e-3))


def test_that_of_three_that_agree_is_not():
    p50 = summarise(of(1.0, 1.0, 1.0)).quantities["latency_p50"]
    assert (p50.low, p50.high) == (pytest.approx(1.039e-3), pytest.approx(1.060e-3))


def test_so_are_those_of_percentiles_mean_and_rate():
    one, two = summarise(of(1.0, batch=8)).quantities, summarise(of(1.0, 1.0, batch=8)).quantities
    for name in ("latency_p90", "latency_p95", "latency_mean", "throughput"):
        low, high = one[name].low, one[name].high
        assert low is not None
        assert high is not None
        assert low < 0.955 * one[name].value, name
        assert high > 1.045 * one[name].value, name
        assert one[name].value == pytest.approx(two[name].value)
    mean = one["latency_mean"]
    assert mean.low is not None
    assert mean.high is not None
    assert (one["throughput"].low, one["throughput"].high) == (8 / mean.high, 8 / mean.low)


def test_the_rate_of_callers_in_one_process_has_an_interval_too():
    result = of(1.0)
    busy = replace(result, case=replace(result.case, concurrency=4))
    rate = summarise(busy).quantities["throughput"]
    assert (rate.low, rate.high) == (
        pytest.approx(0.95 * rate.value),
        pytest.approx(1.05 * rate.value),
    )


@pytest.mark.parametrize(("factor", "tie"), [(1.04, True), (1.07, True), (1.2, False)])
def test_a_small_gap_between_two_processes_is_no_win(factor: float, tie: bool):
    [answer] = answers_of(make_run([of(1.0), of(factor, provider="openvino")]))
    assert answer.fastest[0].label == "native/cpu/b1"
    assert answer.fastest[0].ties == (("native/openvino/b1",) if tie else ())


def test_a_limit_is_judged_by_the_value_as_ever():
    summary = summarise(of(1.0))
    kept, broken = check_limits(
        [
            parse_limit(text, place="x")
            for text in ("latency_p50 <= 1.05 ms", "latency_p50 <= 1.04 ms")
        ],
        summary,
    )
    assert (kept.judgement.is_good, broken.judgement.is_bad) == (True, True)
    assert "inside the interval" in broken.judgement.reason


def test_rows_csv_and_badge_have_the_same_ends():
    run = make_run([of(1.0)])
    p50 = summarise(run.cases[0]).quantities["latency_p50"]
    [row] = rows_of(run)
    assert (row["latency_p50_low_s"], row["latency_p50_high_s"]) == (p50.low, p50.high)
    [line] = csv.DictReader(io.StringIO(render_csv(rows_of(run))))
    assert float(line["latency_p50_low_s"]) == p50.low
    assert float(line["latency_p50_high_s"]) == p50.high
    case_id = run.cases[0].case.case_id
    assert with_interval(p50) in case_badge(run, case_id, "latency_p50").message


def test_where_the_pooled_p90_lies_below_the_median_of_medians_the_flag_says_why():
    workers = [
        make_measurement([ms * 1_000_000 + step for step in range(count)], worker=index)
        for index, (ms, count) in enumerate(((1, 4000), (3, 100), (4, 100)))
    ]
    result = make_result(measurements=workers)
    quantities = summarise(result).quantities
    assert quantities["latency_p50"].value == pytest.approx(3e-3, rel=1e-3)
    assert quantities["latency_p90"].value == pytest.approx(1e-3, rel=1e-2)
    assert "SPREAD" in {flag.name for flag in flags_of(result)}
