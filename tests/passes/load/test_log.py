"""Reading the generator's logs, whole ones and broken ones."""

from __future__ import annotations

import json
from pathlib import Path

from pytest_ortbench.passes.load.worker.log import (
    read_detail,
    read_issue_delays,
    read_latencies,
    read_summary,
    read_token_times,
)
from pytest_ortbench.worker.percentiles import percentile_ns


def entry(key: str, value: object, *, error: bool = False, warning: bool = False) -> str:
    metadata = {"is_error": error, "is_warning": warning}
    return ":::MLLOG " + json.dumps({"key": key, "value": value, "metadata": metadata}) + "\n"


def test_verdict_rules_advice_and_errors_in_its_own_words() -> None:
    found = read_detail(
        [
            entry("result_validity", "INVALID"),
            entry("result_perf_constraints_met", False),
            entry("result_min_duration_met", True),
            entry("early_stopping_met", False),
            entry("result_invalid_reason", "Reduce target QPS to improve latency. Or wait. "),
            entry("error_runtime", "something\n broke", error=True),
            entry("warning_generic", "take care", warning=True),
        ]
    )
    assert found.valid is False
    assert found.reasons == (
        "Performance constraints satisfied: NO",
        "Early stopping satisfied: NO",
        "Reduce target QPS to improve latency.",
        "Or wait.",
        "something broke",
        "take care",
    )


def test_what_decides_comes_first_and_the_bookkeeping_of_the_generator_is_left_to_its_log() -> None:
    noise = entry("warning_generic", "Logging allocation detected.", warning=True)
    early = entry("error_runtime", "Ending early: Too many outstanding queries.", error=True)
    found = read_detail(
        [
            noise,
            early,
            early,
            entry("result_validity", "INVALID"),
            entry("result_min_queries_met", False),
            entry("result_min_duration_met", False),
            entry("early_stopping_met", False),
            entry("result_perf_constraints_met", False),
            entry("result_invalid_reason", "Reduce target QPS to improve latency."),
        ]
    )
    assert found.reasons == (
        "Performance constraints satisfied: NO",
        "Early stopping satisfied: NO",
        "Min duration satisfied: NO",
        "Min queries satisfied: NO",
        "Reduce target QPS to improve latency.",
        "Ending early: Too many outstanding queries.",
    )
    # Where no rule failed, whatever was logged is all that can be said.
    bare = read_detail([noise, entry("result_validity", "INVALID")])
    assert bare.reasons == ("Logging allocation detected.",)


def test_where_only_queries_are_missing_it_says_how_many() -> None:
    found = read_detail(
        [
            entry("result_validity", "INVALID"),
            entry("early_stopping_met", False),
            entry("result_invalid_reason", ""),
            entry("early_stopping_result", " * Processed 100 queries.\n * Would need 13 more."),
        ]
    )
    assert found.reasons == (
        "Early stopping satisfied: NO",
        "Processed 100 queries.",
        "Would need 13 more.",
    )


def test_times_of_tokens_and_what_is_said_of_each_limit() -> None:
    found = read_detail(
        [
            entry("result_validity", "INVALID"),
            entry("early_stopping_met", False),
            entry("early_stopping_ttft_result", " * Fine."),
            entry("early_stopping_tpot_result", " * Not fine.\n * Saw 5."),
            entry("result_first_token_90.00_percentile_latency_ns", 7),
            entry("result_first_token_99.90_percentile_latency_ns", 9),
            entry("result_time_per_output_token_90.00_percentile_ns", 3),
            entry("result_90.00_percentile_latency_ns", 50),
        ]
    )
    assert found.percentiles_ns == {"90": 50}
    assert found.first_token_percentiles_ns == {"90": 7, "99.9": 9}
    assert found.token_time_percentiles_ns == {"90": 3}
    assert found.reasons[1:] == ("TTFT: Fine.", "TPOT: Not fine.", "Saw 5.")


def test_both_limits_are_advised_on_without_bullets() -> None:
    found = read_detail([entry("result_invalid_reason", "TTFT: less.  * TPOT: less. ")])
    assert found.reasons == ("TTFT: less.", "TPOT: less.")


def test_tokens_in_the_trace_count_from_the_arrival_and_belong_to_their_query(
    tmp_path: Path,
) -> None:
    first = (
        '{{"name":"Token_Latency","ph": "C","pid":1,"ts":{},'
        '"args":{{ "issue_delay":{},"issue_to_done":{}}}}},'
    )
    whole = (
        '{{"name":"Sample","cat":"d","ph":"b","pid":1,"id":0,"ts":{},'
        '"args":{{"query_seq":0,"complete_ns":{}}}}},'
    )
    path = tmp_path / "trace.json"
    path.write_text(
        "\n".join(
            [
                first.format(2.5, 5, 95),
                first.format(1.5, 0, 40),
                whole.format(1.5, 100),
                '{"name":"Sample","cat":"d","ph":"e", "pid":1,"id":0,"ts":9.5},',
                whole.format(2.5, 400),
                whole.format(3.5, 70),
            ]
        )
    )
    times = read_token_times(path, 4)
    # The third query told of no first token.
    assert times.first_ns == (40, 100)
    assert times.later_ns == ((100 - 40) // 3, (400 - 100) // 3)


def test_percentiles_are_those_of_the_generator() -> None:
    times = [*range(57, 0, -1)]
    assert [percentile_ns(times, percent) for percent in (50, 90, 99, 99.9)] == [29, 52, 57, 57]
    assert percentile_ns((), 90) is None


def test_a_log_that_is_cut_off_has_no_verdict() -> None:
    found = read_detail(["no log at all\n", entry("result_validity", "VALID")[:40], "\n"])
    assert (found.valid, found.values, found.reasons) == (None, {}, ())
    assert found.integer("result_query_count") is None
    assert found.text("early_stopping_result") == ""


def test_numbers_and_percentiles() -> None:
    found = read_detail(
        [
            entry("result_99.90_percentile_latency_ns", 5),
            entry("result_99.00_percentile_per_query_latency_ns", 40),
            entry("result_99.00_percentile_latency_ns", 4),
            entry("result_50.00_percentile_latency_ns", 1),
            entry("result_samples_per_second", 12.5),
            entry("result_min_queries_met", True),
            entry("effective_qsl_rng_seed", 16159082839903944936),
            entry("effective_accuracy_log_rng_seed", 0),
            entry("early_stopping_result", " * Run successful.\n * Processed 5."),
        ]
    )
    # Of a query with several requests the whole query counts.
    assert found.percentiles_ns == {"99.9": 5, "99": 40, "50": 1}
    assert found.number("result_completed_samples_per_sec", "result_samples_per_second") == 12.5
    assert found.number("result_min_queries_met") is None
    assert found.seeds == {"qsl_rng_seed": "16159082839903944936"}
    assert found.text("early_stopping_result") == "Run successful. Processed 5."


def test_latencies_are_in_the_order_of_arrival_and_the_last_request_of_a_query_counts(
    tmp_path: Path,
) -> None:
    path = tmp_path / "trace.json"
    sample = (
        '{{"name":"Sample","ph":"b","args":{{"sample_seq":{},"query_seq":{},"complete_ns":{}}}}},'
    )
    lines = ['{"traceEvents":[', '{"name":"Wait","ph":"X"},']
    lines += [sample.format(*each) for each in ((2, 1, 30), (0, 0, 10), (1, 0, 12), (3, 2, 7))]
    path.write_text("\n".join(lines))
    assert read_latencies(path) == [12, 30, 7]


def test_delays_of_issuing_are_in_the_order_of_arrival(tmp_path: Path) -> None:
    path = tmp_path / "trace.json"
    sample = (
        '{{"name":"Sample","ph":"b","args":{{"sample_seq":{},"query_seq":0,"sample_idx":0,'
        '"issue_start_ns":{},"complete_ns":9}}}},'
    )
    lines = ['{"traceEvents":[', '{"name":"Wait","ph":"X"},', '{"name":"Sample","ph":"e"},']
    lines += [sample.format(*times) for times in ((2, 30), (0, -1), (1, 12))]
    path.write_text("\n".join(lines))
    assert read_issue_delays(path) == (-1, 12, 30)


def test_the_summary_goes_without_rules_and_parameters(tmp_path: Path) -> None:
    path = tmp_path / "summary.txt"
    path.write_text("=====\nResult is : VALID\n\n====\nTest Parameters Used\n=====\nseed : 1\n")
    assert read_summary(path) == "Result is : VALID"
    assert read_summary(tmp_path / "none.txt") == ""
