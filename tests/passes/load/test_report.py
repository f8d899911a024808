"""What is said of a case under load: in the terminal, in Markdown, in the page and for CI."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pytest_ortbench.core.outcome import CaseResult, Flag
from pytest_ortbench.passes.load.facts import Load, LoadTest
from pytest_ortbench.passes.load.numbers.spec import parse_load
from pytest_ortbench.passes.load.report import load_markdown, load_tables
from pytest_ortbench.report.blocks import block_lines
from pytest_ortbench.report.ci.summary import run_summary
from pytest_ortbench.report.entries import shown_run
from pytest_ortbench.report.pass_table import PassTable
from tests.report.page_reader import html_without_figures
from tests.results_factory import make_result, make_run
from tests.summarised import properties_of

GOOD = LoadTest(
    rate_per_s=50.0,
    valid=True,
    queries=700,
    requests=700,
    late=2,
    duration_s=14.2,
    completed_per_s=49.5,
    percentiles_ns={"50": 3_000_000, "90": 5_000_000, "95": 7_000_000, "99": 12_000_000},
    version="6.0.17",
)
BAD = replace(
    GOOD,
    valid=False,
    rate_per_s=200.0,
    late=640,
    reasons=("Performance constraints satisfied: NO", "Reduce target QPS to improve latency."),
)
WHY = "Performance constraints satisfied: NO; Reduce target QPS to improve latency"
LATENCIES = ("3.00 ms", "5.00 ms", "12.0 ms")


def load(text: str, *tests: LoadTest, **others: object) -> Load:
    facts: dict[str, object] = {"answer": 0 if tests else None, "threads": 2, **others}
    return Load(spec=parse_load(text, place=""), tests=tests, **facts)  # type: ignore[arg-type]  # fields by name


def under(*loads: Load) -> CaseResult:
    return replace(make_result(), loads=loads)


def table(*loads: Load) -> PassTable:
    (found,) = load_tables(shown_run(make_run([under(*loads)])))
    assert all(len(row) == len(found.headings) for row in found.rows)
    return found


TOKENS = replace(
    BAD,
    first_token_percentiles_ns={"50": 100_000_000, "90": 400_000_000, "99": 900_000_000},
    token_time_percentiles_ns={"50": 20_000_000, "90": 30_000_000},
)


def test_a_table_of_bounds_of_tokens_has_their_times() -> None:
    found = table(load("server:50:ttft=250ms:tpot=50ms", TOKENS))
    assert found.headings[4:8] == ("ttft p50", "ttft p90", "tpot p50", "tpot p90")
    assert found.rows[0][4:8] == ("100 ms", "400 ms", "20.0 ms", "30.0 ms")
    (remark,) = found.remarks
    # Which bound, then what the generator says.
    assert remark.index("first token") < remark.index(WHY)


def test_a_table_of_both_kinds_has_the_times_of_both() -> None:
    found = table(load("server:50:20ms", GOOD), load("server:50:ttft=1s:p99", TOKENS))
    times = ("p50", "p90", "p99", "ttft p50", "ttft p99", "tpot p50", "tpot p99")
    assert found.headings[4:11] == times
    assert found.rows[0][4:11] == (*LATENCIES, "-", "-", "-", "-")
    assert found.rows[1][4:11] == (*LATENCIES, "100 ms", "900 ms", "20.0 ms", "-")


def test_a_row_says_verdict_rates_latencies_and_how_many() -> None:
    found = table(load("server:50:20ms", GOOD))
    assert found.title == (
        f"load of {make_result().case.case_id} (1 caller, 2 threads in all; MLPerf loadgen "
        "6.0.17; non-conforming: MLPerf requires 600 s)"
    )
    assert found.headings == (
        "load", "verdict", "asked", "answered", "p50", "p90", "p99", "late", "requests", "time",
    )  # fmt: skip
    assert found.rows == (
        ("server:50:20ms", "VALID", "50.0/s", "49.5/s", *LATENCIES, "2 of 700", "700", "14.2 s"),
    )
    assert found.remarks == ()


def test_callers_that_only_some_loads_use_are_said() -> None:
    single = load("single-stream", replace(GOOD, late=None, rate_per_s=None))
    found = table(single, load("server:50:20ms", GOOD, callers=4, sessions=2))
    assert "(4 callers, 6 threads in all; MLPerf" in found.title
    assert found.remarks == ("single-stream: 1 caller, 2 threads in all",)


def test_the_percentile_that_is_judged_has_a_column() -> None:
    found = table(load("server:50:20ms:p95", GOOD))
    assert found.headings[4:8] == ("p50", "p90", "p95", "p99")
    assert found.rows[0][4:8] == ("3.00 ms", "5.00 ms", "7.00 ms", "12.0 ms")


def test_an_invalid_load_says_why_in_the_generators_words() -> None:
    found = table(load("server:200:20ms", BAD), load("offline", replace(GOOD, late=None)))
    assert [row[1] for row in found.rows] == ["INVALID", "VALID"]
    assert found.remarks == (f"server:200:20ms is INVALID: {WHY}",)
    # Offline, latencies are waiting.
    assert found.rows[1][4:8] == ("-", "-", "-", "-")


def test_a_search_shows_every_test_and_where_it_ended() -> None:
    peak = load(
        "peak:p99:20ms", BAD, GOOD, answer=1, beyond_per_s=52.0, capacity_per_s=80.0, callers=3
    )
    found = table(peak)
    assert "(3 callers, 4 threads in all;" in found.title
    assert [row[:3] for row in found.rows] == [
        ("peak:p99:20ms, test 1", "INVALID", "200/s"),
        ("peak:p99:20ms, test 2 *", "VALID", "50.0/s"),
    ]
    assert found.remarks == (
        "peak:p99:20ms: VALID up to 50.0/s (*), INVALID from 52.0/s, which is 4.0 % "
        "more; 62 % of the 80.0/s of callers that never pause; 2 tests",
    )
    noted = table(replace(peak, note="the search ended at the timeout"))
    assert noted.remarks[0].endswith("; 2 tests; the search ended at the timeout")


def test_a_search_that_found_nothing_and_a_load_that_was_not_tested() -> None:
    none = load("peak:p99:1ms", BAD, answer=None, reason="no rate was VALID down to 200/s")
    found = table(none, load("offline", reason="it is missing"))
    assert found.remarks == (
        "peak:p99:1ms: no rate was VALID down to 200/s (1 test; p99 is 12.0 ms, the limit is "
        f"1.00 ms: 12.0 times as long; {WHY})",
        "offline was not tested: it is missing",
    )
    bare = table(load("offline", reason="it is missing"))
    assert (bare.rows, bare.remarks) == ((), ("offline was not tested: it is missing",))


def test_official_durations_are_named() -> None:
    assert "MLPerf's own durations" in table(load("offline", GOOD, official=True)).title


def test_cases_without_a_load_say_nothing() -> None:
    run = make_run([make_result()])
    assert load_tables(shown_run(run)) == ()
    assert load_markdown(shown_run(run)) == ""
    assert "Under load" not in run_summary(shown_run(run))


def test_terminal_page_and_summary_have_the_table() -> None:
    run = make_run([under(load("server:50:20ms", GOOD), load("server:200:20ms", BAD))])
    lines = block_lines(shown_run(run))
    assert any(
        line.split()[:4] == ["server:50:20ms", "VALID", "50.0/s", "49.5/s"] for line in lines
    )
    assert f"  server:200:20ms is INVALID: {WHY}" in lines
    summary = run_summary(shown_run(run))
    assert "### Under load" in summary
    assert "| server:50:20ms | VALID | 50.0/s | 49.5/s | 3.00 ms | 5.00 ms | 12.0 ms |" in summary
    page = html_without_figures(run)
    assert "server:200:20ms" in page
    assert "Reduce target QPS to improve latency" in page


def test_ci_gets_the_numbers_as_properties() -> None:
    found = dict(properties_of(under(load("server:50:20ms", GOOD))))
    assert found["ortbench.load_valid"] == "1"
    assert float(found["ortbench.load_p99_s"]) == pytest.approx(0.012)
    assert found["ortbench.load_rate_per_s"] == "49.5"
    invalid = dict(properties_of(under(load("server:200:20ms", BAD))))
    assert invalid["ortbench.load_valid"] == "0"
    assert "ortbench.load_rate_per_s" not in invalid


@pytest.mark.parametrize("name", ["NONFINITE", "INACCURATE"])
def test_a_flag_that_bars_a_case_stands_beside_the_verdict(name: str) -> None:
    result = replace(under(load("offline", GOOD)), flags=(Flag(name=name), Flag(name="NOISY")))
    (found,) = load_tables(shown_run(make_run([result])))
    assert found.rows[0][1] == f"{name}, times VALID"
    assert name in found.remarks[-1]
