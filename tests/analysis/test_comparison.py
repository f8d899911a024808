"""Two runs side by side."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_ortbench.analysis.comparison import CaseComparison, MetricComparison, compare_runs
from pytest_ortbench.core.outcome import CaseResult, Flag
from tests.results_factory import (
    make_accuracy,
    make_case,
    make_machine,
    make_measurement,
    make_memory,
    make_placement,
    make_result,
    make_run,
)


def pair(baseline: CaseResult, contender: CaseResult) -> CaseComparison:
    (case,) = compare_runs(make_run([baseline]), make_run([contender])).cases
    return case


def metric(case: CaseComparison, name: str) -> MetricComparison:
    return next(entry for entry in case.metrics if entry.metric == name)


@settings(max_examples=30)
@given(
    st.integers(1_000, 10**9),
    st.integers(1, 60),
    st.floats(0, 0.9),
    st.lists(st.sampled_from(["STEAL", "UNSTEADY", "INACCURATE", "PARTIAL"]), unique=True),
    st.sampled_from(["measured", "crash", "unsupported"]),
)
def test_a_run_against_itself_is_the_same_in_everything(
    median_ns: int, count: int, spread: float, flags: list[str], status: str
):
    result = make_result(
        median_ns=median_ns,
        count=count,
        spread=spread,
        status=status,
        flags=[Flag(name=name) for name in flags],
    )
    comparison = compare_runs(make_run([result]), make_run([result]))
    (case,) = comparison.cases
    assert case.verdict.word == "same"
    assert {entry.verdict.word for entry in case.metrics} == {"same"}
    assert case.differs == ()
    assert comparison.vanished == comparison.added == comparison.machine_differs == ()
    for entry in case.metrics:
        if entry.ratio is not None:
            assert entry.ratio == 1.0
            if entry.low is not None and entry.high is not None:
                assert entry.low <= 1.0 <= entry.high


def test_ratio_is_contender_over_baseline():
    case = pair(make_result(), make_result(median_ns=4_500_000, seed=1))
    p50 = metric(case, "latency_p50")
    assert p50.ratio == pytest.approx(1.5, rel=0.01)
    assert p50.low is not None
    assert p50.high is not None
    assert p50.low < p50.ratio < p50.high
    assert p50.verdict.word == case.verdict.word == "slower"
    assert metric(case, "throughput").verdict.word == "slower"
    assert metric(case, "throughput").ratio == pytest.approx(1 / 1.5, rel=0.01)


def test_the_other_way_round_is_faster():
    case = pair(make_result(median_ns=4_500_000), make_result(seed=1))
    assert case.verdict.word == "faster"


def test_differences_within_the_margin_are_the_same():
    assert pair(make_result(), make_result(median_ns=3_060_000, seed=1)).verdict.word == "same"


def test_wide_intervals_are_inconclusive():
    verdict = pair(
        make_result(spread=0.5, count=20), make_result(spread=0.5, count=20, seed=1)
    ).verdict
    assert verdict.word == "inconclusive"
    assert verdict.reason.startswith("the change lies between -")


def test_blurring_flags_are_inconclusive():
    blurred = make_result(median_ns=6_000_000, flags=[Flag(name="STEAL")])
    verdict = pair(make_result(), blurred).verdict
    assert (verdict.word, verdict.reason) == ("inconclusive", "STEAL")


def test_startup_without_an_interval_is_never_slower():
    later = make_result()
    measurement = later.measurements[0]
    slow = replace(measurement, startup=replace(measurement.startup, session_create_ns=10**9))
    case = pair(make_result(measurements=[measurement]), make_result(measurements=[slow]))
    verdict = metric(case, "session_create").verdict
    assert (verdict.word, verdict.reason) == ("inconclusive", "no interval")


def with_peak(peak_bytes: int) -> CaseResult:
    return make_result(measurements=[make_measurement(memory=make_memory(peak_bytes=peak_bytes))])


def test_memory_and_size_have_narrow_margins():
    bigger = metric(pair(with_peak(60_000_000), with_peak(62_000_000)), "peak_rss")
    assert bigger.verdict.word == "worse"
    equal = metric(pair(with_peak(60_000_000), with_peak(60_600_000)), "peak_rss")
    assert equal.verdict.word == "same"
    one, other = (make_result(case=make_case(variant_bytes=size)) for size in (1000, 999))
    assert metric(pair(one, other), "model_size").verdict.word == "better"


def test_accuracy_is_compared_in_decibels():
    one, other = (make_result(accuracy=make_accuracy(sqnr_db=db)) for db in (120.0, 60.0))
    assert metric(pair(one, other), "accuracy_sqnr").verdict.word == "worse"
    assert metric(pair(other, one), "accuracy_sqnr").verdict.word == "better"


def test_a_number_that_was_zero_has_no_ratio():
    nowhere = make_placement("CUDAExecutionProvider", elsewhere={"Conv": 60})
    nowhere = replace(nowhere, executed={"CPUExecutionProvider": 60})
    case = pair(make_result(placement=nowhere), make_result())
    placement = metric(case, "placement")
    assert placement.ratio is None
    assert placement.verdict.word == "better"


def test_another_machine_is_incomparable_in_time_only():
    baseline, contender = (
        make_run([make_result()], machine=make_machine(cpu=cpu)) for cpu in ("A", "B")
    )
    comparison = compare_runs(baseline, contender)
    assert comparison.machine_differs == ("machine cpu_model: A → B",)
    (case,) = comparison.cases
    assert case.verdict.word == "incomparable"
    assert case.verdict.reason == "machine cpu_model: A → B"
    assert metric(case, "peak_rss").verdict.word == "same"


def test_other_inputs_are_incomparable():
    other = make_case()
    wider = replace(other.inputs[0], shape=(1, 3, 256, 256))
    contender = make_result(case=replace(other, inputs=(wider,)))
    verdict = pair(make_result(), contender).verdict
    assert verdict.word == "incomparable"
    assert verdict.reason == (
        "input input: tensor(float) [1, 3, 224, 224] → tensor(float) [1, 3, 256, 256]"
    )


def test_io_and_seed_are_part_of_what_is_timed():
    for case, reason in (
        (make_case(io="device"), "io: end-to-end → device"),
        (replace(make_case(), seed=7), "seed: 0 → 7"),
    ):
        verdict = pair(make_result(), make_result(case=case)).verdict
        assert (verdict.word, verdict.reason) == ("incomparable", reason)


def test_the_change_itself_is_told_and_does_not_stand_in_the_way():
    newer = [make_measurement(version="1.33.0")]
    case = pair(make_result(measurements=[make_measurement()]), make_result(measurements=newer))
    assert case.differs == ("runtime version: 1.32.0 → 1.33.0",)
    assert case.verdict.word == "same"


def test_statuses_that_differ():
    verdict = pair(make_result(), make_result(status="crash")).verdict
    assert (verdict.word, verdict.reason) == ("incomparable", "status: measured → crash")


def test_cases_of_one_side_only():
    old, new = make_result(), make_result(case=make_case(provider="cuda"))
    comparison = compare_runs(make_run([old]), make_run([new]))
    assert comparison.cases == ()
    assert comparison.vanished == (old.case.key,)
    assert comparison.added == (new.case.key,)
