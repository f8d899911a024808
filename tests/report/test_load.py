"""What is said of a case under load: in the terminal, in Markdown, in the page and for CI."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pytest_ortbench.core.load import Load, LoadTest
from pytest_ortbench.core.load_spec import parse_load
from pytest_ortbench.core.outcome import CaseResult
from pytest_ortbench.report.junit import properties
from pytest_ortbench.report.load import HEADINGS, load_facts, load_lines, load_markdown, load_rows
from pytest_ortbench.report.markdown import job_summary
from tests.results_factory import make_result, make_run

GOOD = LoadTest(
    rate_per_s=50.0,
    valid=True,
    queries=700,
    requests=700,
    late=2,
    duration_s=14.2,
    completed_per_s=49.5,
    percentiles_ns={"50": 3_000_000, "90": 5_000_000, "99": 12_000_000},
)
BAD = replace(
    GOOD,
    valid=False,
    rate_per_s=200.0,
    late=640,
    reasons=("Performance constraints satisfied: NO", "Reduce target QPS to improve latency."),
)


def under(text: str, *tests: LoadTest, **others: object) -> CaseResult:
    facts: dict[str, object] = {"answer": 0 if tests else None, "threads": 2, **others}
    load = Load(spec=parse_load(text, place=""), tests=tests, **facts)  # type: ignore[arg-type]  # fields by name
    return replace(make_result(), loads=(load,))


def line(result: CaseResult) -> str:
    blank, text = load_lines(make_run([result]))
    assert blank == ""
    start = f"load of {result.case.case_id}: "
    assert text.startswith(start)
    return text.removeprefix(start)


HOW = "700 requests in 14.2 s, 1 caller, 2 threads in all; non-conforming, MLPerf asks for 600 s"


@pytest.mark.parametrize(
    ("result", "said"),
    [
        (
            under("server:50:20ms", GOOD),
            "server:50:20ms: VALID: 49.5/s answered, p50 3.00 ms, p99 12.0 ms, 2 of 700 late; "
            + HOW,
        ),
        (
            under("server:50:20ms:p90", GOOD, official=True, callers=3),
            "server:50:20ms:p90: VALID: 49.5/s answered, p50 3.00 ms, p90 5.00 ms, p99 12.0 ms, "
            "2 of 700 late; 700 requests in 14.2 s, 3 callers, 4 threads in all; "
            "MLPerf's durations",
        ),
        (
            under("server:200:20ms", BAD),
            "server:200:20ms: INVALID (Performance constraints satisfied: NO; Reduce target QPS to "
            "improve latency): 49.5/s answered, p50 3.00 ms, p99 12.0 ms, 640 of 700 late; " + HOW,
        ),
        (
            under("offline", replace(GOOD, late=None)),
            "offline: VALID: 49.5/s answered; " + HOW,
        ),
        (
            under("peak:p99:20ms", BAD, GOOD, answer=1, beyond_per_s=52.0),
            "peak:p99:20ms: VALID up to 50.0/s, INVALID at 52.0/s (2 tests): 49.5/s answered, "
            "p50 3.00 ms, p99 12.0 ms; " + HOW,
        ),
        (
            under("peak:p99:1ms", BAD, answer=None, reason="no rate was VALID down to 200/s"),
            "peak:p99:1ms: INVALID (Performance constraints satisfied: NO; Reduce target QPS to "
            "improve latency): no rate was VALID down to 200/s (1 test); " + HOW,
        ),
        (under("offline", reason="it is missing"), "offline: not tested: it is missing"),
    ],
)
def test_a_line_says_verdict_reasons_numbers_and_how(result: CaseResult, said: str) -> None:
    assert line(result) == said
    assert load_facts(result) == (f"load {said}",)


def test_cases_without_a_load_say_nothing() -> None:
    run = make_run([make_result()])
    assert load_lines(run) == []
    assert load_markdown(run) == ""
    assert "Under load" not in job_summary(run)


def test_a_row_has_every_cell() -> None:
    run = make_run(
        [
            under("server:50:20ms", GOOD),
            under("server:200:20ms", BAD),
            under("offline", reason="it is missing"),
        ]
    )
    rows = load_rows(run)
    assert [len(row) for row in rows] == [len(HEADINGS)] * 3
    assert [row[1:6] for row in rows] == [
        ("server:50:20ms", "VALID", "49.5/s", "3.00 ms", "12.0 ms"),
        ("server:200:20ms", "INVALID", "49.5/s", "3.00 ms", "12.0 ms"),
        ("offline", "not tested", "", "", ""),
    ]
    assert rows[1][6].startswith("Performance constraints satisfied: NO; Reduce")
    assert rows[2][6] == "it is missing"


def test_the_summary_of_a_job_has_the_table() -> None:
    result = under("server:50:20ms", GOOD)
    text = job_summary(make_run([result]))
    assert "### Under load" in text
    assert "| server:50:20ms | VALID | 49.5/s | 3.00 ms | 12.0 ms |" in text
    assert "counted from the scheduled arrival" in text


def test_ci_gets_the_numbers_as_properties() -> None:
    found = dict(properties(under("server:50:20ms", GOOD)))
    assert found["ortbench.load_valid"] == "1"
    assert float(found["ortbench.load_p99_s"]) == pytest.approx(0.012)
    assert found["ortbench.load_rate_per_s"] == "49.5"
    invalid = dict(properties(under("server:200:20ms", BAD)))
    assert invalid["ortbench.load_valid"] == "0"
    assert "ortbench.load_rate_per_s" not in invalid
