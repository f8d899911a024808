"""Numbers of a case, and reasons for those that are missing."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_ortbench.analysis.accuracy_figures import EXACT
from pytest_ortbench.analysis.samples import reduce_blocks
from pytest_ortbench.analysis.summary import Summary, summarise
from pytest_ortbench.core.metrics import METRICS
from pytest_ortbench.core.outcome import Accuracy, Block, CaseResult, OutputAccuracy, Placement
from pytest_ortbench.passes.energy.facts import Energy, EnergyWindow
from tests.results_factory import (
    draw_durations,
    make_accuracy,
    make_case,
    make_measurement,
    make_memory,
    make_placement,
    make_result,
)


def of_workers(*workers: list[int], batch: int = 1) -> Summary:
    return summarise(
        make_result(
            case=make_case(batch=batch),
            measurements=[
                make_measurement(durations, worker=index) for index, durations in enumerate(workers)
            ],
        )
    )


def test_every_metric_has_a_number_or_a_reason():
    for result in (make_result(), make_result(status="crash"), make_result(count=2)):
        summary = summarise(result)
        assert {*summary.quantities, *summary.missing} == set(METRICS)
        assert not set(summary.quantities) & set(summary.missing)
        assert all(summary.missing.values())
        for name, quantity in summary.quantities.items():
            assert quantity.unit == METRICS[name].unit


def test_p50_is_the_median_of_medians_with_the_interval_over_processes():
    workers = [[level + step for step in range(100)] for level in (1000, 2000, 5000)]
    p50 = of_workers(*workers).quantities["latency_p50"]
    assert p50.value == pytest.approx(2049e-9)
    # Logarithms of 1049, 2049 and 5049 have the mean 7.70255 and the deviation 0.78853, and
    # 4.302653 * 0.78853 / sqrt(3) is 1.95883: farther than the workers' own 1039 to 5060.
    assert (p50.low, p50.high) == (pytest.approx(312e-9), pytest.approx(15700e-9))
    assert p50.samples == 300


def test_where_processes_agree_their_own_intervals_are_the_interval():
    workers = [[level + step for step in range(100)] for level in (1000, 1002, 1001)]
    p50 = of_workers(*workers).quantities["latency_p50"]
    # At n = 100 the interval of each has the ranks 40 and 61; Student's ends at 1048 and 1052.
    assert (p50.low, p50.high) == (pytest.approx(1039e-9), pytest.approx(1062e-9))


def test_percentiles_are_pooled():
    workers = [[100] * 200, [100] * 200, [900] * 200]
    quantities = of_workers(*workers).quantities
    assert quantities["latency_p50"].value == pytest.approx(100e-9)
    assert quantities["latency_p90"].value == pytest.approx(900e-9)
    assert quantities["latency_p99"].value == pytest.approx(900e-9)


@pytest.mark.parametrize(
    ("count", "missing"),
    [
        (1, {"latency_p50": "n<6", "latency_p90": "n<36", "latency_p95": "n<72"}),
        (3, {"latency_p90": "n<36", "latency_p95": "n<72", "latency_p99": "n<368"}),
        (12, {"latency_p95": "n<72", "latency_p99": "n<368"}),
        (24, {"latency_p99": "n<368"}),
        (123, {}),
    ],
)
def test_too_few_samples_are_said_instead_of_a_number(count: int, missing: dict[str, str]):
    summary = summarise(make_result(count=count))
    found = {name: why for name, why in summary.missing.items() if name.startswith("latency")}
    assert {name: found.get(name) for name in missing} == missing
    assert ("latency_p99" in found) == (count < 123)
    assert "latency_mean" in summary.quantities
    assert "latency_min" in summary.quantities


def test_few_samples_a_worker_still_give_a_median_with_an_interval():
    p50 = of_workers([100, 110, 120], [200, 210, 220], [150, 160, 170]).quantities["latency_p50"]
    assert p50.value == pytest.approx(160e-9)
    # Ranks 2 and 8 of the nine are 110 and 210. Logarithms of the medians 110, 210 and 160 have
    # the mean 5.04092 and the deviation 0.32467, and 4.302653 * 0.32467 / sqrt(3) is 0.80653.
    assert (p50.low, p50.high) == (pytest.approx(69e-9), pytest.approx(347e-9))


def test_throughput_counts_items_over_total_time():
    summary = of_workers([1_000_000] * 10, [3_000_000] * 10, batch=8)
    assert summary.quantities["throughput"].value == pytest.approx(8 * 20 / 0.04)
    assert summary.quantities["latency_mean"].value == pytest.approx(2e-3)
    # Means of 1 and 3 ms: two processes that differ threefold reach threefold beyond themselves.
    assert summary.quantities["throughput"].low == pytest.approx(8 / 9e-3)
    assert summary.quantities["throughput"].high == pytest.approx(8 / (1e-3 / 3))


def test_startup_is_the_median_and_memory_the_largest_of_the_workers():
    quantities = summarise(make_result()).quantities
    assert quantities["session_create"].value == pytest.approx(26e-3)
    assert quantities["first_inference"].value == pytest.approx(7e-3)
    assert quantities["session_create"].low is None
    assert quantities["peak_rss"].value == 60_000_000 + 2 * 4096
    assert quantities["model_size"].value == 14_000_000


def test_unreadable_memory_is_no_number():
    measurement = make_measurement(memory=make_memory(peak_bytes=None))
    summary = summarise(make_result(measurements=[measurement]))
    assert "peak_rss" not in summary.quantities
    assert summary.missing["peak_rss"].startswith("not measured: ")


def test_a_process_without_memory_or_an_answer_without_time_is_no_number():
    measurement = make_measurement(memory=replace(make_memory(), process_peak_bytes=0))
    untimed = replace(measurement.startup, first_inference_ns=0)
    summary = summarise(make_result(measurements=[replace(measurement, startup=untimed)]))
    for metric in ("process_peak_rss", "first_inference", "ready_time"):
        assert metric not in summary.quantities
        assert summary.missing[metric]
    assert summary.quantities["peak_rss"].value == 60_000_000
    assert summary.quantities["session_create"].value > 0


def test_cpu_time_is_per_inference():
    quantities = of_workers([1_000_000] * 100).quantities
    assert quantities["cpu_per_inference"].value == pytest.approx(1.0001e-3)


@pytest.mark.parametrize(
    ("busy", "cpus", "share"),
    [(1.0, 2, 0.5), (2.0, 2, 1.0), (1.0, 1, 1.0), (0.25, 4, 0.0625), (0.97, 2, 0.485)],
)
def test_utilisation_is_cpu_time_by_what_the_cpus_offer(busy: float, cpus: int, share: float):
    """Blocks with clocks of our own: so many threads are busy all the time."""
    block = Block(durations_ns=(1_000_000,) * 100, wall_ns=10**8, cpu_ns=round(busy * 10**8))
    samples = reduce_blocks([block, block], keep=100, clock_pair_ns=50)
    one = replace(make_measurement(), samples=samples, cpus=cpus)
    idle = replace(one, worker=1, samples=replace(samples, cpu_ns=0))
    assert summarise(make_result(measurements=[one])).quantities[
        "cpu_utilisation"
    ].value == pytest.approx(share)
    both = summarise(make_result(measurements=[one, idle])).quantities["cpu_utilisation"]
    assert both.value == pytest.approx(share / 2)


@pytest.mark.parametrize("facts", [{"cpus": 0}, {"cpu_ns": 0}])
def test_no_utilisation_without_cpu_time_or_cpus(facts: dict[str, int]):
    measurement = make_measurement()
    if "cpus" in facts:
        measurement = replace(measurement, **facts)
    else:
        measurement = replace(measurement, samples=replace(measurement.samples, **facts))
    summary = summarise(make_result(measurements=[measurement]))
    assert "cpu_utilisation" not in summary.quantities
    assert summary.missing["cpu_utilisation"]


def test_spread_is_between_workers():
    """T1: medians of fresh sessions differ, and the result says by how much."""
    assert of_workers([100] * 10, [110] * 10).spread == pytest.approx(0.1)
    assert of_workers([100] * 10).spread is None


def test_a_failed_case_has_no_times_but_its_size_and_placement():
    placement = Placement(provider="CUDAExecutionProvider", executed={"CPUExecutionProvider": 7})
    result = make_result(
        case=make_case(provider="cuda"),
        status="fallback",
        measurements=[make_measurement()],
        placement=placement,
    )
    summary = summarise(result)
    assert set(summary.quantities) == {"model_size", "placement"}
    assert summary.quantities["placement"].value == 0.0
    assert summary.missing["latency_p50"].startswith("fallback: ")


def test_a_measured_case_without_workers_is_said():
    summary = summarise(make_result(measurements=[]))
    assert summary.missing["throughput"]


def test_placement_is_a_share_of_computing_nodes():
    placement = make_placement("OpenVINOExecutionProvider", elsewhere={"TopK": 20})
    quantities = summarise(make_result(placement=placement)).quantities
    assert quantities["placement"].value == 0.75
    assert quantities["time_on_provider"].value == 0.75


def test_accuracy_is_the_worst_output():
    outputs = (
        OutputAccuracy(
            name="a", kind="class", finite=True, max_abs=0.5, cosine=0.99, sqnr_db=40.0,
            agree=7, rows=8,
        ),
        OutputAccuracy(
            name="b", kind="float", finite=True, max_abs=0.1, cosine=0.90, sqnr_db=20.0
        ),
    )  # fmt: skip
    quantities = summarise(make_result(accuracy=Accuracy(samples=8, outputs=outputs))).quantities
    assert quantities["accuracy_finite"].value == 1.0
    assert quantities["accuracy_max_abs"].value == 0.5
    assert quantities["accuracy_cosine"].value == 0.90
    assert quantities["accuracy_sqnr"].value == 20.0
    top1 = quantities["accuracy_top1"]
    assert top1.value == 0.875
    # Clopper-Pearson for 7 of 8.
    assert (top1.low, top1.high) == (
        pytest.approx(0.4735, abs=1e-4),
        pytest.approx(0.9968, abs=1e-4),
    )


def test_exact_outputs_have_no_noise_ratio():
    summary = summarise(make_result(accuracy=make_accuracy(sqnr_db=None)))
    assert summary.missing["accuracy_sqnr"] == EXACT


def test_broken_outputs_have_another_reason():
    summary = summarise(make_result(accuracy=make_accuracy(sqnr_db=None, finite=False)))
    assert summary.quantities["accuracy_finite"].value == 0.0
    assert "NaN" in summary.missing["accuracy_sqnr"]
    assert "accuracy_max_abs" not in summary.quantities


@pytest.mark.parametrize(
    ("kind", "max_abs", "reason"),
    [
        ("integer", 0.0, "no float output"),
        ("float", 0.0, EXACT),
        ("float", 1.0, "the reference holds no finite value other than zero"),
    ],
)
def test_reasons_for_no_noise_ratio(kind: str, max_abs: float, reason: str):
    output = OutputAccuracy(name="y", kind=kind, finite=True, max_abs=max_abs)
    summary = summarise(make_result(accuracy=Accuracy(samples=1, outputs=(output,))))
    assert summary.missing["accuracy_sqnr"] == reason
    assert "classes" in summary.missing["accuracy_top1"]


def test_reason_of_a_missing_reference_is_passed_on():
    summary = summarise(make_result(accuracy=Accuracy(reason="the graph draws random numbers")))
    assert "random" in summary.missing["accuracy_cosine"]


def window(energy_j: float, inferences: int = 100) -> EnergyWindow:
    return EnergyWindow(
        source="nvml energy counter", device="GPU-0", duration_ns=5 * 10**9,
        inferences=inferences, energy_j=energy_j, idle_w=20.0,
    )  # fmt: skip


def test_energy_is_gross_over_all_windows():
    energy = Energy(windows=(window(500.0), window(600.0)))
    quantities = summarise(make_result(energy=energy)).quantities
    assert quantities["power"].value == pytest.approx(110.0)
    # Two trials, 100 and 120 W: their range, moved outwards by as much as they differ.
    power = quantities["power"]
    assert (power.low, power.high) == pytest.approx((100 / 1.2, 120 * 1.2))
    assert quantities["energy_per_inference"].value == pytest.approx(5.5)
    assert quantities["energy_per_inference"].high == pytest.approx(6.0 * 1.2)


def test_energy_of_four_trials_reaches_as_far_as_student_says():
    energy = Energy(windows=tuple(window(joules) for joules in (500.0, 505.0, 495.0, 500.0)))
    power = summarise(make_result(energy=energy)).quantities["power"]
    # Logarithms of 100, 101, 99 and 100 W: 4.605145 on average, 0.008165 apart, t = 3.182.
    assert power.value == pytest.approx(100.0)
    assert (power.low, power.high) == pytest.approx((98.7067, 101.3052), abs=1e-4)
    one = summarise(make_result(energy=Energy(windows=(window(500.0),)))).quantities["power"]
    assert (one.low, one.high) == (None, None)
    same = Energy(windows=(window(500.0), window(500.0)))
    power = summarise(make_result(energy=same)).quantities["power"]
    assert (power.low, power.high) == pytest.approx((100.0, 100.0))


def test_net_energy_is_above_idle():
    energy = Energy(windows=(window(500.0), window(600.0)))
    quantities = summarise(make_result(energy=energy)).quantities
    assert quantities["idle_power"].value == pytest.approx(20.0)
    assert quantities["energy_net_per_inference"].value == pytest.approx(4.5)
    assert quantities["energy_net_per_inference"].low == pytest.approx(4.0 / (5 / 4))
    unknown = Energy(windows=(window(500.0), replace(window(600.0), idle_w=None)))
    summary = summarise(make_result(energy=unknown))
    assert "idle power" in summary.missing["energy_net_per_inference"]
    assert summary.quantities["power"].value == pytest.approx(110.0)


@pytest.mark.parametrize(
    ("energy", "reason"),
    [
        (None, "no energy pass was requested"),
        (Energy(reason="no permission"), "no permission"),
        (Energy(), "no window was measured"),
    ],
)
def test_energy_that_was_not_measured_is_never_zero(energy: Energy | None, reason: str):
    summary = summarise(make_result(energy=energy))
    assert "power" not in summary.quantities
    assert summary.missing["energy_per_inference"] == reason


def test_windows_without_inference_give_power_only():
    summary = summarise(make_result(energy=Energy(windows=(window(500.0, inferences=0),))))
    assert summary.quantities["power"].value == pytest.approx(100.0)
    assert "windows" in summary.missing["energy_per_inference"]


def no_interval_excludes_its_estimate(result: CaseResult) -> None:
    for quantity in summarise(result).quantities.values():
        if quantity.low is not None and quantity.high is not None:
            assert quantity.low <= quantity.value <= quantity.high


@given(
    st.lists(st.lists(st.integers(1, 10**10), min_size=1, max_size=100), min_size=1, max_size=5),
    st.integers(1, 64),
)
def test_no_interval_excludes_its_estimate(workers: list[list[int]], batch: int):
    result = make_result(
        case=make_case(batch=batch),
        measurements=[
            make_measurement(durations, worker=index) for index, durations in enumerate(workers)
        ],
    )
    no_interval_excludes_its_estimate(result)
    quantities = summarise(result).quantities
    pooled = [
        quantities[f"latency_p{p}"].value for p in (90, 95, 99) if f"latency_p{p}" in quantities
    ]
    assert pooled == sorted(pooled)


def test_one_bad_worker_moves_the_interval_and_not_the_value():
    calm = [draw_durations(seed=index) for index in range(3)]
    before = of_workers(*map(list, calm)).quantities["latency_p50"]
    worse = [calm[0], calm[1], tuple(3 * duration for duration in calm[2])]
    after = of_workers(*map(list, worse)).quantities["latency_p50"]
    assert after.value == pytest.approx(before.value, rel=0.005)
    assert after.high is not None
    assert after.high > 2.5 * before.value


def test_flags_are_carried_along():
    flagged = replace(make_result(), flags=())
    assert summarise(flagged).flags == ()
    assert summarise(make_result()).key == ("mobilenet_v2/native/cpu/b1", "current")
