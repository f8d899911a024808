"""Verdicts of a gate: in the terminal, and as a table in the summary of a CI job."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from markdown_it import MarkdownIt

from pytest_ortbench.core.acceptance import FILE_NAME
from pytest_ortbench.core.accuracy import Accuracy, OutputAccuracy
from pytest_ortbench.core.complaint import RUN, Complaint
from pytest_ortbench.core.gate import (
    Acceptance,
    ContrastVerdict,
    GateFinding,
    GateResult,
    MetricVerdict,
    short_side,
)
from pytest_ortbench.core.judgement import bad
from pytest_ortbench.core.outcome import Answers
from pytest_ortbench.core.precision import Floor
from pytest_ortbench.core.run import Run
from pytest_ortbench.gate.numbers.answers import AnswersJudged
from pytest_ortbench.gate.numbers.sentences import answers_finding, latency_finding
from pytest_ortbench.gate.numbers.undecided import undecided
from pytest_ortbench.gate.report.lines import (
    count_lines,
    gate_lines,
    gate_properties,
    gate_row_markdown,
    gate_rows,
)
from pytest_ortbench.report.ci.run_verdict import gate_complaints
from pytest_ortbench.report.ci.summary import run_summary
from pytest_ortbench.report.entries import shown_run
from tests.report.page_reader import html_without_figures
from tests.results_factory import make_case, make_result, make_run

CASE = "mobilenet_v2/native/cpu/b1"


def verdict(text: str, *, runtime: str = "current", failures: tuple[str, ...] = ()) -> GateResult:
    contrast = ContrastVerdict(
        statistic="floor", verdict=text, effect=0.071, low=0.062, high=None, margin=0.03,
        p=0.0039, launches=8,
    )  # fmt: skip
    return GateResult(
        case_id=CASE, runtime=runtime, baseline="old", verdict=text, contrasts=(contrast,),
        failures=failures,
    )  # fmt: skip


def rows(run: Run) -> list[str]:
    return [gate_row_markdown(row) for row in gate_rows(run)]


def summary(run: Run) -> str:
    return run_summary(shown_run(run), gate_complaints(run))


def test_verdicts_of_several_runtimes_are_told_apart_as_the_table_tells_cases() -> None:
    cases = [make_result(case=make_case(runtime=label)) for label in ("current", "nightly")]
    run = replace(make_run(cases), gate=(verdict("same"), verdict("slower", runtime="nightly")))
    assert [line.partition(" against ")[0] for line in gate_lines(run)[1:]] == [
        f"gate {CASE}+current",
        f"gate {CASE}+nightly",
    ]
    assert [row.split(" | ")[0] for row in rows(run)] == [
        f"| {CASE}+current",
        f"| {CASE}+nightly",
    ]


def test_a_single_runtime_is_not_named() -> None:
    run = replace(make_run(), gate=(verdict("same"),))
    assert gate_lines(run) == ["", f"gate {CASE} against old: same  ×1.071 [1.062, –]  8 launches"]
    assert rows(run) == [f"| {CASE} | old | same |  | ×1.071 [1.062, –] | 8 |  |"]


def test_what_a_log_can_not_write_gets_a_stand_in() -> None:
    run = replace(make_run(), gate=(verdict("slower", failures=("×2 is > ×1",)),))
    assert gate_lines(run, encoding="ascii") == [
        "",
        f"gate {CASE} against old: slower  x1.071 [1.062, -]  8 launches",
        "  x2 is > x1",
    ]


def test_a_failed_verdict_is_bold_in_the_summary_of_a_job() -> None:
    run = replace(make_run(), gate=(verdict("slower", failures=("*slow*",)),))
    text = summary(run)
    assert rows(run)[0].split(" | ")[2] == "**slower**"
    tokens = MarkdownIt("gfm-like", {"linkify": False}).parse(text)
    bold = [
        after.content
        for token in tokens
        for before, after in zip(token.children or [], (token.children or [])[1:], strict=False)
        if before.type == "strong_open"
    ]
    assert bold[0] == "slower"
    assert "&#42;slow&#42;" in text


def judged(*findings: GateFinding) -> GateResult:
    return verdict("same").with_findings(findings)


def finding(about: str, state: str) -> GateFinding:
    acceptance = Acceptance(
        state=state, case=CASE, reason="*more* classes", until="2027-01-31", worse_by=0.22
    )
    return GateFinding(about=about, text=f"{about} is worse", acceptance=acceptance)


def accepted_run(*states: str) -> Run:
    gates = []
    for number, state in enumerate(states):
        result = judged(finding("model_size", state))
        failures = () if state == "accepted" else result.failures
        gates.append(replace(result, runtime=f"r{number}", failures=failures))
    return replace(make_run(), gate=tuple(gates))


def test_what_a_failed_test_has_told_is_not_printed_again() -> None:
    run = accepted_run("expired", "expired")
    whole, rest = gate_lines(run), gate_lines(run, told={(CASE, "r0")})
    (told,) = run.gate[0].failures
    assert [f"  {told}" in lines for lines in (whole, rest)] == [True, True]
    assert len([line for line in whole if line == f"  {told}"]) == 2
    assert len([line for line in rest if line == f"  {told}"]) == 1
    assert [line for line in rest if line.startswith("gate ")] == [
        line for line in whole if line.startswith("gate ")
    ]


def test_an_accepted_finding_has_its_reason_and_is_counted_apart() -> None:
    run = accepted_run("accepted", "expired", "accepted")
    text = "\n".join(gate_lines(run))
    assert text.count("model_size accepted up to 22 % worse, until 2027-01-31: *more* classes") == 2
    assert text.endswith("\ngate: 1 failed, 2 accepted")
    first, second, _ = rows(run)
    assert " | same, accepted | " in first
    assert "&#42;more&#42; classes" in first
    assert " | **same** | " in second
    assert "\ngate: 1 failed, 2 accepted\n" in summary(run)
    names = dict(gate_properties(run.gate[0]))
    assert names["gate_accepted"].endswith("*more* classes")
    assert "gate_accepted" not in dict(gate_properties(run.gate[1]))


def test_the_page_shows_the_gate_and_what_was_accepted() -> None:
    page = html_without_figures(accepted_run("accepted", "expired"))
    assert 'id="gate"' in page
    assert "*more* classes" in page
    assert '<td class="bad">same</td>' in page
    assert "<td>same, accepted</td>" in page
    assert 'id="gate"' not in html_without_figures(make_run())


def test_a_reason_of_somebody_else_is_inert_on_the_page() -> None:
    hostile = replace(
        finding("latency", "accepted"),
        acceptance=Acceptance(state="accepted", case=CASE, reason="<script>\u202eevil\x1b[31m"),
    )
    run = replace(make_run(), gate=(replace(judged(hostile), failures=()),))
    page = html_without_figures(run)
    assert "<script>\u202e" not in page
    assert "\x1b" not in page
    assert "\x1b" not in "".join(gate_lines(run))
    assert "\x1b" not in dict(gate_properties(run.gate[0]))["gate_accepted"]


# Answers of the two sides.


def with_answers(word: str, ratio: float | None, **facts: str) -> GateResult:
    number = MetricVerdict(
        metric="sides_sqnr", verdict=word, contender=ratio, allowed=">= 60 dB", reason="it says so"
    )
    return replace(verdict("same"), metrics=(number,), **facts)


def test_a_line_says_how_far_the_answers_are_apart() -> None:
    lines = {
        "same  ×1.071 [1.062, –]  8 launches  answers exact": with_answers("same", None),
        "same  ×1.071 [1.062, –]  8 launches  answers 80.0 dB": with_answers("same", 80.0),
        "same  ×1.071 [1.062, –]  8 launches  answers not judged: it says so": with_answers(
            "unjudged", None
        ),
        "answers differ  answers -39.9 dB, allowed >= 60 dB  latency same  ×1.071 [1.062, –]  "
        "8 launches": with_answers("less accurate", -39.9, verdict="less accurate", latency="same"),
    }
    for text, result in lines.items():
        assert (
            gate_lines(replace(make_run(), gate=(result,)))[1] == f"gate {CASE} against old: {text}"
        )


def test_identical_files_are_named_in_line_table_page_and_properties() -> None:
    result = GateResult(
        case_id=CASE, runtime="current", baseline="old", verdict="same", identical=True
    )
    run = replace(make_run(), gate=(result,))
    assert gate_lines(run)[1] == f"gate {CASE} against old: same (identical files)"
    assert rows(run) == [f"| {CASE} | old | same (identical files) | identical files |  |  |  |"]
    assert "same (identical files)" in html_without_figures(run)
    assert ("gate_identical", "true") in gate_properties(result)


def test_a_row_names_everything_that_fails_and_why() -> None:
    size = MetricVerdict(
        metric="model_size", verdict="worse", baseline=2.0e6, contender=3.0e6, allowed="2 %"
    )
    answers = with_answers("less accurate", -39.9, verdict="less accurate", latency="slower")
    result = replace(answers, metrics=(*answers.metrics, size)).with_findings(
        GateFinding(about=about, text=f"{about} is worse")
        for about in ("answers", "latency", "model_size")
    )
    (row,) = gate_rows(replace(make_run(), gate=(result,)))
    assert row.cells[2] == "answers differ, slower, worse: model_size"
    found = [next(word for word in ("-39.9", "1.071", "50.0 %") if word in t) for t in row.briefs]
    assert found == ["-39.9", "1.071", "50.0 %"]


def test_what_fails_without_a_finding_has_its_reason_in_the_row() -> None:
    result = verdict("slower", failures=("it took longer",))
    (row,) = gate_rows(replace(make_run(), gate=(result,)))
    assert row.briefs == ("it took longer",)
    (quiet,) = gate_rows(replace(make_run(), gate=(verdict("same"),)))
    assert quiet.briefs == ()


def test_a_wrong_side_that_is_known_is_called_less_accurate() -> None:
    nan = OutputAccuracy(name="y", kind="float", finite=False, nan_count=2, nonfinite=2)
    result = replace(
        with_answers("less accurate", None, verdict="less accurate", latency="same"),
        answers=Answers(
            floor=Floor(sqnr_db=60.0, agreement=0.99, of="native"),
            compared=Accuracy(samples=8, outputs=(nan,)),
        ),
    )
    (row,) = gate_rows(replace(make_run(), gate=(result,)))
    assert row.cells[2] == "less accurate"


def test_a_revision_has_twelve_digits_for_people_and_all_in_the_document() -> None:
    whole = "72b575b39ec7d08a271fb12f8d09c8ab25efc043"
    result = replace(verdict("slower"), baseline=f"git:{whole}")
    assert (result.baseline, result.against) == (f"git:{whole}", "git:72b575b39ec7")
    assert short_side("model:old.onnx") == "model:old.onnx"
    failing = result.with_findings([latency_finding(result)])
    run = replace(make_run(), gate=(failing,))
    for text in (summary(run), "".join(gate_lines(run))):
        assert whole not in text
        assert "git:72b575b39ec7" in text


def test_a_floor_that_lets_everything_pass_is_not_offered() -> None:
    for ratio, is_offered in ((45.0, True), (0.4, False), (-47.2, False)):
        result = with_answers("less accurate", ratio, verdict="less accurate", latency="same")
        answers = AnswersJudged(judgement=bad("gate", "y differs"))
        assert ("sides_sqnr" in answers_finding(result, answers).text) is is_offered


def test_properties_hold_the_numbers_of_the_answers() -> None:
    result = with_answers("less accurate", -39.9, verdict="less accurate", latency="same")
    properties = dict(gate_properties(result))
    assert properties["gate_verdict"] == "less accurate"
    assert properties["gate_latency"] == "same"
    assert properties["gate_sides_sqnr"] == "-39.9"
    assert properties["gate_sides_sqnr_verdict"] == "less accurate"


# What could not be judged.


def open_result(text: str, *, case: str = CASE, **facts: Any) -> GateResult:
    return replace(verdict(text), case_id=case, contrasts=(), **facts)


def unknown(metric: str, word: str) -> MetricVerdict:
    return MetricVerdict(metric=metric, verdict=word, baseline=1.0, reason="no number")


OPEN_RESULTS = {
    "inconclusive": open_result("inconclusive", cause="launches", reason="8 launches"),
    "incomparable": open_result("incomparable", cause="shared", reason="the machine is shared"),
    "sizes": open_result("incomparable", cause="shared", metrics=(unknown("model_size", "same"),)),
    "failing": open_result("incomparable", reason="it died", failures=("it died",)),
    "unjudged": open_result("unjudged", latency="same"),
    "excused": open_result("same", metrics=(unknown("sides_sqnr", "unjudged"),)),
    "memory": open_result("same", metrics=(unknown("peak_rss", "incomparable"),)),
    "two": open_result(
        "less accurate", latency="inconclusive", metrics=(unknown("peak_rss", "incomparable"),)
    ),
}


@pytest.mark.parametrize(
    ("name", "subjects"),
    {
        "inconclusive": ["latency"],
        "incomparable": ["comparison"],
        "sizes": ["latency"],
        "failing": ["comparison"],
        "unjudged": ["answers"],
        "excused": ["answers"],
        "memory": ["peak_rss"],
        "two": ["latency", "peak_rss"],
    }.items(),
)
def test_what_could_not_be_judged_is_counted_in_every_output(
    name: str, subjects: list[str]
) -> None:
    result = OPEN_RESULTS[name]
    assert [one.about for one in undecided(result)] == subjects
    run = replace(make_run(), gate=(replace(verdict("same"), case_id="other"), result))
    outcome = "1 failed" if result.failures else "1 not judged in full"
    counted = f"gate: {outcome}, 1 passed"
    last = "gate: 1 of 2 cases could not be judged in full: "
    assert [line.startswith(last) for line in gate_lines(run)[-2:]] == [False, True]
    assert counted in summary(run)
    assert last in summary(run)
    assert last in html_without_figures(run)
    properties = [text for key, text in gate_properties(result) if key == "gate_unjudged"]
    assert [text.partition(":")[0] for text in properties] == subjects


def test_what_no_gate_was_due_to_judge_is_not_counted() -> None:
    removed = open_result("incomparable", removed=True, failures=("it was removed",))
    alone = open_result("incomparable", has_baseline=False, reason="only its limits were held")
    assert undecided(removed) == undecided(alone) == ()
    assert count_lines([verdict("same"), removed, alone], ()) == []


def test_cases_with_one_reason_are_named_together() -> None:
    results = [open_result("inconclusive", case=f"m{i}", cause="launches") for i in range(5)]
    line = count_lines(results, ())[-1]
    assert "latency of m0, m1, m2 and 2 more: " in line
    assert count_lines([replace(results[0], runtime="a")], ("a", "b"))[-1].count("m0+a") == 1


def test_only_the_latency_is_incomparable_where_sizes_were_compared() -> None:
    size = MetricVerdict(metric="model_size", verdict="same", baseline=1.0, contender=1.0)
    limit = replace(size, metric="latency_p50", bound=2.0)
    worse = replace(size, metric="peak_rss", verdict="worse")
    facts = {"cause": "shared", "reason": "times of two runs can't be compared"}
    results = (
        open_result("incomparable", metrics=(size, limit, worse), **facts),
        open_result("incomparable", metrics=(limit,), **facts),
    )
    run = replace(make_run(), gate=results)
    shown = [line.partition(" against old: ")[2] for line in gate_lines(run)[1:3]]
    assert shown == [
        "no worse: model_size; latency incomparable  times of two runs can't be compared"
        "  worse: peak_rss",
        "incomparable  times of two runs can't be compared",
    ]
    first, second = rows(run)
    assert first.split(" | ")[2] == "latency incomparable, worse: peak_rss"
    assert "no worse: model_size; times of two runs" in first
    assert second.split(" | ")[2] == "incomparable"


def test_a_case_that_no_test_carried_is_not_judged_and_told_once() -> None:
    text = "not judged: none of its tests reached its end"
    result = open_result("incomparable", cause="unreached", reason=text, failures=(text,))
    run = replace(make_run(), gate=(result,), finished_at=None)
    (row,) = gate_rows(run)
    assert row.cells[2] == "not judged"
    assert count_lines(run.gate, ())[0] == "gate: 1 not judged"
    of_run = Complaint(kind=RUN, text=f"{text} ({CASE})", is_unreached=True)
    told = run_summary(shown_run(run), [*gate_complaints(run), of_run])
    assert told.count(text) == 1
    alone = run_summary(shown_run(run), gate_complaints(run))
    assert alone.count(text) == 1


def test_the_command_of_a_comment_names_its_run_and_the_file_to_commit() -> None:
    run = accepted_run("expired")
    (line,) = [line for line in summary(run).splitlines() if "ortbench accept" in line]
    assert f"--run={run.run_id}" in line
    assert FILE_NAME in line
