"""Limits: kept, broken, and not measurable."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pytest_ortbench.analysis.limits import LimitOutcome, check_limits, samples_for_limits
from pytest_ortbench.analysis.summary import Summary, summarise
from pytest_ortbench.core.case import Sampling
from pytest_ortbench.core.limits import parse_limit
from tests.results_factory import make_accuracy, make_case, make_result


def one(text: str, summary: Summary) -> LimitOutcome:
    (outcome,) = check_limits([parse_limit(text, place="test")], summary)
    return outcome


def test_a_limit_that_is_kept():
    outcome = one("latency_p90 <= 30 ms", summarise(make_result()))
    assert outcome.judgement.is_good
    assert outcome.measured is not None
    assert outcome.judgement.reason.startswith("latency_p90 is 3.0")
    assert outcome.judgement.reason.endswith("within 'latency_p90 <= 30 ms'")


def test_a_limit_that_is_broken_shows_measured_interval_and_limit():
    outcome = one("latency_p50: 2 ms", summarise(make_result()))
    assert outcome.judgement.is_bad
    assert outcome.judgement.reason == (
        "latency_p50 is 3.00 ms [3.00 ms, 3.00 ms], the limit is <= 2.00 ms"
    )


def test_a_tail_without_enough_samples_is_not_measurable_and_says_what_it_takes():
    # 3 × 100 samples of 3 ms: 0.9 s give 300, so 368 take 1.11 s, and a fifth more to be sure.
    outcome = one("latency_p99 <= 30 ms", summarise(make_result(count=100)))
    assert outcome.judgement.is_unjudged
    assert outcome.measured is None
    assert outcome.judgement.reason == (
        "latency_p99 is not measurable (n<368), so 'latency_p99 <= 30 ms' can't be judged. It "
        "has 300 samples and needs 368: use --ort-time=1.4"
    )


def test_callers_that_run_side_by_side_take_no_longer_together():
    # 8 callers: the same 300 samples of 3 ms are there after an eighth of 0.9 s.
    alone = make_result(case=replace(make_case(), concurrency=8), count=100)
    together = tuple(
        replace(each, samples=replace(each.samples, wall_ns=each.samples.sum_ns // 8))
        for each in alone.measurements
    )
    summary = summarise(replace(alone, measurements=together))
    assert summary.timed_s == pytest.approx(0.9 / 8, rel=0.01)
    assert one("latency_p99 <= 30 ms", summary).judgement.reason.endswith("use --ort-time=0.17")


def test_long_measurements_need_a_longer_timeout_too():
    slow = make_result(
        case=make_case(sampling=Sampling(timeout_s=300)), count=3, median_ns=2_000_000_000
    )
    outcome = one("latency_p99 <= 3 s", summarise(slow))
    assert outcome.judgement.reason.endswith("use --ort-time=890 with --ort-timeout=2700")


def test_a_metric_that_could_not_be_measured_gives_its_reason():
    outcome = one("energy_per_inference <= 1 J", summarise(make_result()))
    assert outcome.judgement.is_unjudged
    assert "no energy pass was requested" in outcome.judgement.reason
    assert "--ort-time" not in outcome.judgement.reason


def test_a_failed_case_keeps_no_limit():
    outcome = one("latency_p99 <= 1 s", summarise(make_result(status="crash")))
    assert outcome.judgement.is_unjudged
    assert "crash: the worker died" in outcome.judgement.reason
    assert "--ort-time" not in outcome.judgement.reason


def test_exact_outputs_keep_every_floor():
    exact = summarise(make_result(accuracy=make_accuracy(sqnr_db=None)))
    assert one("accuracy_sqnr >= 60 dB", exact).judgement.is_good
    assert one("accuracy_sqnr <= 60 dB", exact).judgement.is_bad


def test_outcomes_come_in_the_order_of_the_limits():
    texts = ["throughput >= 1 /s", "peak_rss <= 1 MB", "placement >= 95 %"]
    limits = [parse_limit(text, place="test") for text in texts]
    outcomes = check_limits(limits, summarise(make_result()))
    assert [outcome.limit.text for outcome in outcomes] == texts
    assert [outcome.judgement.is_good for outcome in outcomes] == [True, False, True]


@pytest.mark.parametrize(
    ("texts", "needed"),
    [
        (["latency_p99 <= 1 s", "latency_p90 <= 1 s"], 368),
        (["latency_p90 <= 1 s"], 36),
        (["peak_rss <= 1 GB"], 0),
        ([], 0),
    ],
)
def test_samples_that_limits_need(texts: list[str], needed: int):
    assert samples_for_limits([parse_limit(text, place="test") for text in texts]) == needed


def test_enough_samples_never_ask_for_more_time():
    summary = replace(summarise(make_result()), quantities={}, missing={"latency_p99": "odd"})
    assert "--ort-time" not in one("latency_p99 <= 1 s", summary).judgement.reason
