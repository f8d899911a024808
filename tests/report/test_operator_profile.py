"""The operator profile as lines."""

from __future__ import annotations

from dataclasses import replace

from pytest_ortbench.core.profile import NodeTime, OperatorProfile, OperatorTime
from pytest_ortbench.report.operator_profile import profile_lines, run_profile_lines
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
        "copies 0.0 %, casts 15.0 %",
        "  operator         on    nodes  time [µs]   share",
        "  Conv             cpu       9        900  45.0 %",
        "  Add              cpu       3        500  25.0 %",
        "  Cast             cuda      1        300  15.0 %  cast",
        "  (1 more types)             4        100   5.0 %",
        "  (between nodes)                     200  10.0 %",
        "  slowest nodes        time [µs]   share",
        "  Conv layer\\x1b[31m1        400  20.0 %  float [1,3] -> float [1,4]",
        "  - 15% in casts between precisions; convert the whole model, or those nodes less",
        "  trace: /tmp/trace.json (open it in Perfetto or chrome://tracing)",
    ]


def test_no_profile_is_said_with_the_reason() -> None:
    failed = OperatorProfile(reason="crash: it died")
    assert profile_lines("m/fp32/cpu/b1", failed) == [
        "m/fp32/cpu/b1: no operator profile: crash: it died"
    ]


def test_cases_without_a_profile_are_left_out() -> None:
    with_profile = replace(make_result(), profile=PROFILE)
    assert run_profile_lines(make_run([make_result()]), width=100) == []
    lines = run_profile_lines(make_run([with_profile]), width=100)
    assert lines[1].startswith(with_profile.case.case_id)
