"""The operator profile as lines."""

from __future__ import annotations

from dataclasses import replace

from pytest_ortbench.passes.profile.facts import NodeTime, OperatorProfile, OperatorTime, Peak
from pytest_ortbench.passes.profile.report import (
    profile_lines,
    rate_facts,
    run_profile_lines,
    summary_of,
)
from pytest_ortbench.report.entries import shown_run
from tests.results_factory import make_result, make_run

PROFILE = OperatorProfile(
    runs=50,
    run_ns=2_000_000,
    plain_ns=1_900_000,
    operators=(
        OperatorTime(op="Conv", provider="CPUExecutionProvider", time_ns=900_000, nodes=9),
        OperatorTime(op="Add", provider="CPUExecutionProvider", time_ns=500_000, nodes=3),
        OperatorTime(
            op="Cast", provider="CUDAExecutionProvider", time_ns=300_000, nodes=1, kind="cast"
        ),
        OperatorTime(op="Relu", provider="CPUExecutionProvider", time_ns=100_000, nodes=4),
    ),
    nodes=(
        NodeTime(
            name="layer\x1b[31m1", op="Conv", provider="CPUExecutionProvider", time_ns=400_000,
            shapes="float [1,3] -> float [1,4]",
        ),
    ),
    node_count=17,
    threads=2,
    cpus=2,
    trace="/tmp/trace.json",
)  # fmt: skip


def test_types_rest_gap_nodes_hints_and_trace() -> None:
    assert profile_lines("m/fp32/cpu/b1", PROFILE, top=3) == [
        "m/fp32/cpu/b1: 2.00 ms a run, 50 runs, 1.90 ms without the profiler; 17 nodes; "
        "copies take 0.0 %, casts 15.0 %",
        "  by provider: cpu 75.0 %, cuda 15.0 %",
        "  operator         on    nodes  time [µs]   share",
        "  Conv             cpu       9        900  45.0 %",
        "  Add              cpu       3        500  25.0 %",
        "  Cast             cuda      1        300  15.0 %  cast",
        "  (1 more types)             4        100   5.0 %",
        "  (between nodes)                     200  10.0 %",
        "  slowest nodes        time [µs]   share",
        "  Conv layer\\x1b[31m1        400  20.0 %  float [1,3] -> float [1,4]",
        "  - 15% in casts between precisions; convert the whole model, or exclude those nodes",
        "  trace: /tmp/trace.json (open it in Perfetto or chrome://tracing)",
    ]


COUNTED = replace(
    PROFILE,
    plain_ns=1_000_000,
    macs=40_000_000,
    moved_bytes=10_000_000,
    work_source="nodes",
    peak=Peak(
        macs_per_s=100e9,
        bytes_per_s=20e9,
        provider="CPUExecutionProvider",
        element="float",
        threads=1,
        product="512 x 512 x 512",
        copy_bytes=67_108_864,
    ),
    operators=(
        replace(PROFILE.operators[0], macs=40_000_000, moved_bytes=2_000_000),
        replace(PROFILE.operators[1], macs=0, moved_bytes=8_000_000),
        replace(PROFILE.operators[2], macs=0, moved_bytes=3_000_000),
        replace(PROFILE.operators[3], op="Strange", moved_bytes=0),
    ),
    nodes=(replace(PROFILE.nodes[0], macs=20_000_000, moved_bytes=1_000_000),),
    trace="",
)


def test_rates_stand_beside_the_times() -> None:
    """40 M in 0.9 ms are 44.4 G a second; a cast on another provider has no peak."""
    assert profile_lines("m/fp32/cpu/b1", COUNTED, width=200)[:11] == [
        "m/fp32/cpu/b1: 2.00 ms a run, 50 runs, 1.00 ms without the profiler; 17 nodes; "
        "copies take 0.0 %, casts 15.0 %",
        "  by provider: cpu 75.0 %, cuda 15.0 %",
        "  the run: 40.0 MMAC, 10.0 MB moved (4.00 MAC/B); 40.0 GMAC/s, 40 % of the peak; "
        "10.0 GB/s, 50 % of the peak",
        "  peak of cpu with 1 thread: 100 GMAC/s (matrix product of float, 512 x 512 x 512); "
        "20.0 GB/s (67.1 MB read and written)",
        "  multiply-accumulates are not known for: Strange",
        "  operator         on    nodes  time [µs]   share  GMAC/s  GB/s  MAC/B  of peak  bound by",
        "  Conv             cpu       9        900  45.0 %    44.4  2.22   20.0     44 %  compute",
        "  Add              cpu       3        500  25.0 %          16.0            80 %  memory",
        "  Cast             cuda      1        300  15.0 %          10.0                           "
        " cast",
        "  Strange          cpu       4        100   5.0 %                                         "
        " MACs unknown",
        "  (between nodes)                     200  10.0 %",
    ]
    nodes = profile_lines("m/fp32/cpu/b1", COUNTED, width=200)[11:13]
    assert nodes == [
        "  slowest nodes        time [µs]   share  of peak  bound by",
        "  Conv layer\\x1b[31m1        400  20.0 %     50 %  compute   float [1,3] -> float [1,4]",
    ]


def test_a_missing_peak_has_its_reason_and_a_count_its_source() -> None:
    peak = Peak(provider="P", threads=2, reason="product of bfloat16: numpy has no such type")
    _, *facts = rate_facts(replace(COUNTED, peak=peak, work_source="file"))
    assert facts[0].endswith("; counted from the file")
    assert "of the peak" not in facts[0]
    assert facts[1] == ("peak of p: not measured: product of bfloat16: numpy has no such type")


def test_copies_are_told_apart_by_direction() -> None:
    there = OperatorTime(op="MemcpyFromHost", provider="C", time_ns=200_000, nodes=1, kind="copy")
    back = OperatorTime(op="MemcpyToHost", provider="C", time_ns=100_000, nodes=1, kind="copy")
    profile = replace(PROFILE, operators=(*PROFILE.operators, there, back))
    assert summary_of(profile).endswith(
        "copies take 15.0 % (10.0 % to the device, 5.0 % to the host), casts 15.0 %"
    )


def test_times_of_starting_kernels_have_no_rates() -> None:
    lines = profile_lines("m", replace(COUNTED, asynchronous=True), width=200)
    assert "  operator         on    nodes  time [µs]   share" in lines
    assert any(line.startswith("  the run: 40.0 MMAC") for line in lines)


def test_no_profile_is_said_with_the_reason() -> None:
    failed = OperatorProfile(reason="crash: it died")
    assert profile_lines("m/fp32/cpu/b1", failed) == [
        "m/fp32/cpu/b1: no operator profile: crash: it died"
    ]


def test_cases_without_a_profile_are_left_out() -> None:
    with_profile = replace(make_result(), profile=PROFILE)
    assert run_profile_lines(shown_run(make_run([make_result()])), width=100) == []
    lines = run_profile_lines(shown_run(make_run([with_profile])), width=100)
    assert lines[1].startswith(with_profile.case.case_id)
