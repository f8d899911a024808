"""A case under MLPerf's load generator."""

from __future__ import annotations

from pytest_ortbench.core.metric import metric
from pytest_ortbench.core.placing import Place
from pytest_ortbench.passes.load.facts import TPOT, TTFT
from pytest_ortbench.passes.pass_object import Pass, Phase

_METRICS = (
    metric(
        "load_valid",
        "load_valid",
        "1",
        "higher",
        "1 if MLPerf's load generator reports VALID for every load of the case and no output is "
        "NaN or infinite, else 0.",
        is_yes_or_no=True,
    ),
    metric(
        "load_rate",
        "load_rate_per_s",
        "1/s",
        "higher",
        "Requests answered a second in the first load of the case, if it is VALID.",
        counted="requests",
    ),
    metric(
        "load_p50",
        "load_p50_s",
        "s",
        "lower",
        "Median latency of the first load, if it is VALID, measured from the scheduled arrival.",
    ),
    metric("load_p90", "load_p90_s", "s", "lower", "90th percentile of the same latencies."),
    metric("load_p99", "load_p99_s", "s", "lower", "99th percentile of the same latencies."),
    *(
        metric(
            f"load_{name}_p{percent}",
            f"load_{name}_p{percent}_s",
            "s",
            "lower",
            f"{ordinal} {what} of the first load, if it bounds tokens and is VALID{counted}.",
        )
        for name, what, counted in (
            (TTFT, "time to first token", ", counted from the scheduled arrival"),
            (TPOT, "time per output token", ""),
        )
        for percent, ordinal in (
            (50, "Median"),
            (90, "90th percentile of the"),
            (99, "99th percentile of the"),
        )
    ),
    metric(
        "load_token_rate",
        "load_tokens_per_s",
        "1/s",
        "higher",
        "Tokens of all requests written a second in the first load, likewise.",
        counted="tokens",
    ),
    metric(
        "load_peak",
        "load_peak_per_s",
        "1/s",
        "higher",
        "Highest arrival rate that is VALID, as found by the search for the peak.",
        counted="requests",
    ),
)

PASS = Pass(
    name="load",
    result_field="loads",
    measure=".run:measure",
    lacking=".run:lacking",
    takes=".planning.asked:loads_take_s",
    lacking_takes_result=True,
    is_over=".run:is_over",
    questions=((".questions:PutUnderLoad", ".worker.generator:run_load_test"),),
    self_checks=".selfcheck:CHECKS",
    bounds=".checks:BOUNDS",
    relations=".checks:RELATIONS",
    requested=(".facts:LoadSpec", ".facts:LoadOrigin"),
    check_cases=".planning.asked:refuse_unwritten_tokens",
    announce=".run:announcements",
    phase=Phase(name="load", doing="putting it under load", rank=40),
    shipped_test="test_load",
    offers=(
        (Place(after="memory", rank=30), ".fixture:load"),
        (Place(after="memory", rank=30), ".fixture:loads"),
    ),
    shown_to_tests=(("load", ".fixture:LoadView"),),
    add_numbers=".numbers.loads:add_load",
    metrics=_METRICS,
    metrics_place=Place(rank=20),
    columns=(
        (
            Place(after="session_create_warm_s", rank=10),
            ("load", *(own.column for own in _METRICS)),
        ),
        (Place(after="session_create_warm_s", rank=60), ("loads",)),
    ),
    cells=".numbers.loads:cells",
    for_fleet=".fleet:of_loads",
    markdown=".report:load_markdown",
    tables=".report:load_tables",
    report_rank=30,
)
