"""What CI services show of a run: the verdict first, within their limits, and inert."""

from __future__ import annotations

import itertools
import json
import shlex
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from markdown_it import MarkdownIt
from prometheus_client.openmetrics.parser import text_string_to_metric_families

from pytest_ortbench.analysis.answers import ALL_PROVIDERS
from pytest_ortbench.core.complaint import GATE, LIMIT, OUTPUTS, RUN, TEST, Complaint
from pytest_ortbench.core.gate import UNREACHED, Acceptance, GateFinding, GateResult
from pytest_ortbench.core.outcome import Accuracy, OutputAccuracy
from pytest_ortbench.core.run import Run
from pytest_ortbench.report.ci.annotations import MOST, annotation_lines
from pytest_ortbench.report.ci.code_quality import render_code_quality
from pytest_ortbench.report.ci.fitting import SummaryPart, fitted, size
from pytest_ortbench.report.ci.metrics_report import render_metrics_report
from pytest_ortbench.report.ci.run_verdict import gate_complaints, verdict_of
from pytest_ortbench.report.ci.summary import (
    COMMENT_ROOM,
    MARKER,
    run_summary,
    summary_without_cases,
    unfinished_summary,
)
from pytest_ortbench.report.entries import shown_run
from pytest_ortbench.store.documents import load
from tests.report import sample_runs
from tests.results_factory import make_case, make_result, make_run

CASE = "mobilenet_v2/native/cpu/b1"
HOSTILE = "a|b `c` <img src=x onerror=y> [x](http://y) @all ::error::\n| --- |\n# h\u202e</details>"


def gated(verdict: str = "same", **facts: object) -> GateResult:
    return replace(
        GateResult(case_id=CASE, runtime="current", baseline="git:main", verdict=verdict), **facts
    )


def failing(about: str, text: str) -> GateFinding:
    return GateFinding(about=about, text=text)


SLOWER = gated("slower").with_findings([failing("latency", "it takes 9 % longer")])
OPEN = gated("inconclusive", cause="launches")
ACCEPTED = gated("slower").with_findings(
    [
        replace(
            failing("latency", "it takes 9 % longer"),
            acceptance=Acceptance(state="accepted", case=CASE, reason="a third layer"),
        )
    ]
)


def run_of(*gate: GateResult, **facts: object) -> Run:
    run = replace(make_run([make_result()]), finished_at="2026-03-04T05:06:07Z", gate=gate)
    return replace(run, **facts)


CRASHED = make_result(status="crash")
NOT_RUN = gated("incomparable", cause=UNREACHED, failures=("no test of it came to its end",))
LIMITED = Complaint(kind=LIMIT, case=CASE, about="latency_p50", text="3 ms, the limit is 1 ms")


# -- the verdict -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("run", "complaints", "outcome"),
    [
        (run_of(), [], "measured"),
        (run_of(gated()), [], "passed"),
        (run_of(OPEN), [], "undecided"),
        (run_of(replace(ACCEPTED, failures=())), [], "passed"),
        (run_of(SLOWER), None, "failed"),
        (run_of(), [LIMITED], "failed"),
        (run_of(), [replace(LIMITED, fails=False)], "measured"),
        (run_of(finished_at=None), [], "interrupted"),
        (run_of(finished_at=None), [LIMITED], "failed"),
        (run_of(NOT_RUN, finished_at=None), None, "interrupted"),
        (run_of(NOT_RUN), None, "failed"),
        (run_of(NOT_RUN, SLOWER, finished_at=None), None, "failed"),
        (run_of(cases=(make_result(), CRASHED)), [], "partly"),
        (run_of(cases=(CRASHED,)), [], "nothing"),
    ],
)
def test_the_verdict_follows_from_fields(
    run: Run, complaints: list[Complaint] | None, outcome: str
) -> None:
    told = gate_complaints(run) if complaints is None else complaints
    assert verdict_of(run, told).outcome == outcome


def test_what_fails_is_counted_by_kind_and_case() -> None:
    complaints = [
        *gate_complaints(run_of(SLOWER)),
        LIMITED,
        replace(LIMITED, about="peak_rss", text="too much"),
        Complaint(kind=OUTPUTS, case="other", text="not those"),
        Complaint(kind=TEST, case=CASE, text="assert 1 == 2"),
        Complaint(kind=TEST, test="test_a.py::test_it", text="assert 1 == 2"),
        Complaint(kind=RUN, text="a gate was asked for"),
    ]
    assert verdict_of(run_of(SLOWER), complaints).headline == (
        "ONNX models failed: 1 case at the gate, 1 case beyond a limit, 1 case with other outputs "
        "than expected, tests of 1 case, 1 other reason"
    )


def test_what_was_not_judged_can_not_be_accepted() -> None:
    run = run_of(NOT_RUN, finished_at=None)
    assert "accept" not in run_summary(shown_run(run), gate_complaints(run))
    run = run_of(SLOWER)
    assert "accept" in run_summary(shown_run(run), gate_complaints(run))


def test_an_interrupted_run_says_how_far_it_came() -> None:
    run = run_of(finished_at=None, expected=12)
    assert "after 1 of 12 cases" in verdict_of(run, ()).headline
    assert "after 1 of 12 cases" in verdict_of(run, [LIMITED]).headline


def test_what_a_gate_warns_of_fails_where_it_is_strict() -> None:
    run = run_of(
        gated("inconclusive").with_findings([replace(failing("latency", "?"), fails=False)])
    )
    assert [complaint.fails for complaint in gate_complaints(run)] == [False]
    assert [complaint.fails for complaint in gate_complaints(run, strict=True)] == [True]


# -- the summary -----------------------------------------------------------------------------------


def headings(text: str) -> list[str]:
    tokens = MarkdownIt("gfm-like", {"linkify": False}).parse(text)
    return [
        after.content
        for before, after in itertools.pairwise(tokens)
        if before.type == "heading_open"
    ]


def test_the_marker_is_the_first_line_and_the_verdict_the_next() -> None:
    for text in (
        run_summary(shown_run(run_of(SLOWER)), gate_complaints(run_of(SLOWER))),
        summary_without_cases(["no model"]),
        unfinished_summary(),
    ):
        first, second, *_ = text.splitlines()
        assert first == MARKER
        assert second.startswith("## ")


def test_what_changed_stands_open_and_the_rest_is_folded() -> None:
    quiet = replace(gated(), case_id="quiet")
    run = run_of(SLOWER, quiet)
    text = run_summary(shown_run(run), gate_complaints(run))
    before, folded = text[: text.index("<details>")], text[text.index("<details>") :]
    assert "**slower**" in before
    assert "9 % longer" in before
    assert "| quiet |" in folded
    assert "| quiet |" not in before
    assert text.count("<details>") == text.count("</details>") >= 4


def test_without_a_gate_the_answers_stand_open() -> None:
    text = run_summary(shown_run(run_of()))
    assert ALL_PROVIDERS in text[: text.index("<details>")]


def hostile_run(name: str, count: int = 1) -> Run:
    cases = [make_result(case=make_case(model=f"{name}{index}")) for index in range(count)]
    gate = [
        replace(SLOWER, case_id=f"{name}{index}", baseline=name, failures=(name * 3,))
        for index in range(count)
    ]
    return run_of(*gate, cases=tuple(cases))


def test_hostile_names_mark_nothing_up() -> None:
    run = hostile_run(HOSTILE)
    told = [*gate_complaints(run), Complaint(kind=TEST, test=HOSTILE, text=HOSTILE)]
    text = run_summary(shown_run(run), told)
    tokens = MarkdownIt("gfm-like", {"linkify": False}).parse(text)
    kinds = {child.type for token in tokens for child in token.children or []}
    assert not kinds & {"image", "link_open", "html_inline"}
    assert len(headings(text)) == 1
    assert "<img" not in text
    assert "\u202e" not in text
    assert text.count("<details>") == text.count("</details>")


@pytest.mark.parametrize("room", [COMMENT_ROOM, 4000])
@pytest.mark.parametrize("name", ["net", HOSTILE, "ü" * 3000, "`" * 5000])
def test_a_summary_never_has_more_than_a_comment_takes(name: str, room: int) -> None:
    run = hostile_run(name, 60)
    text = run_summary(shown_run(run), gate_complaints(run), room=room)
    assert size(text) <= room
    assert text.startswith(MARKER)
    assert text.count("<details>") == text.count("</details>")
    assert run.run_id in text
    if len(name) > 10 or room < COMMENT_ROOM:
        assert "the run document has everything" in text


def test_rows_that_have_no_room_are_counted() -> None:
    section = SummaryPart(
        title="rows", head=("head",), rows=tuple(f"row {n:04}" for n in range(1000))
    )
    text = fitted("start", [section], "end", room=2000)
    kept = text.count("row ")
    assert 0 < kept < 1000
    assert f"… and {1000 - kept} more lines" in text


def test_a_section_without_room_is_named() -> None:
    section = SummaryPart(title="Numbers", rows=("x" * 500,))
    assert "Numbers" in fitted("start", [section], "end", room=900)


# -- annotations of GitHub Actions -----------------------------------------------------------------


def command(line: str) -> tuple[str, dict[str, str], str]:
    """A workflow command as GitHub's runner reads it."""
    _, start, data = line.split("::", 2)
    name, _, properties = start.partition(" ")
    unescaped = {
        key: value.replace("%3A", ":").replace("%2C", ",").replace("%25", "%")
        for key, value in (entry.split("=", 1) for entry in properties.split(","))
    }
    return name, unescaped, data.replace("%0A", "\n").replace("%25", "%")


def test_an_annotation_names_file_line_and_reason() -> None:
    complaint = replace(LIMITED, path="tests/a,b:c.py", line=7, text="50 % more\nthan allowed")
    (line,) = annotation_lines([complaint])
    name, properties, data = command(line)
    assert (name, data) == ("error", "50 % more\nthan allowed")
    assert properties == {
        "file": "tests/a,b:c.py", "line": "7", "title": f"ortbench limit: {CASE}",
    }  # fmt: skip


def test_a_hostile_text_stays_in_its_line() -> None:
    lines = annotation_lines([Complaint(kind=GATE, case=HOSTILE, path=HOSTILE, text=HOSTILE)])
    assert [text.count("\n") + text.count("\r") for text in lines] == [0]
    name, properties, _ = command(lines[0])
    assert name == "error"
    assert set(properties) == {"file", "title"}


def test_errors_come_first_and_what_github_does_not_show_is_counted() -> None:
    warning = replace(LIMITED, fails=False)
    lines = annotation_lines([warning, *[LIMITED] * (MOST + 5)])
    names = [command(line)[0] for line in lines]
    assert names == ["error"] * MOST + ["warning"]
    assert "6 further errors" in lines[MOST - 1]


# -- reports of GitLab -----------------------------------------------------------------------------


def test_the_code_quality_report_has_what_gitlab_asks_for() -> None:
    located = replace(LIMITED, path="tests/test_it.py", line=7)
    broken = Complaint(kind=TEST, test="test_b.py::test_it", text="assert 1 == 2")
    entries = json.loads(
        render_code_quality([located, replace(located, about="peak_rss", fails=False), broken])
    )
    assert [entry["severity"] for entry in entries] == ["major", "minor", "critical"]
    assert [entry["check_name"] for entry in entries][::2] == ["ortbench-limit", "ortbench-test"]
    assert entries[0]["location"] == {"path": "tests/test_it.py", "lines": {"begin": 7}}
    assert all(entry["location"]["lines"]["begin"] >= 1 for entry in entries)
    assert len({entry["fingerprint"] for entry in entries}) == 3


def test_a_fingerprint_stays_when_the_numbers_change() -> None:
    def fingerprints(*texts: str) -> list[str]:
        told = [replace(LIMITED, text=text) for text in texts]
        return [entry["fingerprint"] for entry in json.loads(render_code_quality(told))]

    assert fingerprints("3 ms") == fingerprints("4 ms") == fingerprints("3 ms", "4 ms")


def test_nothing_wrong_is_an_empty_report() -> None:
    assert json.loads(render_code_quality([])) == []


def gitlab_reads(text: str) -> Iterator[tuple[str, str]]:
    """A metrics report as GitLab splits it: cut at a hash, then as a shell does."""
    for line in text.splitlines():
        words = shlex.split(line.partition("#")[0])
        if len(words) > 1:
            yield words[0], words[1]


def test_the_metrics_report_is_openmetrics_and_gitlab_can_read_it() -> None:
    run = sample_runs.ten_cases()
    text = render_metrics_report(shown_run(run))
    families = {family.name: family for family in text_string_to_metric_families(text)}
    samples = families["ortbench_latency_p50_seconds"].samples
    assert len(samples) == 7
    assert {tuple(sample.labels) for sample in samples} == {("case",)}
    known = dict(gitlab_reads(text))
    assert known[f"ortbench_latency_p50_seconds{{case={CASE}}}"] == "0.01239"
    assert known["ortbench_case_measured{case=mobilenet_v2/native/cuda/b1}"] == "0"
    assert len(known) == sum(len(family.samples) for family in families.values())


def test_the_metrics_report_has_the_accuracy_of_exact_outputs_and_of_labelled_data() -> None:
    exact = OutputAccuracy(name="y", kind="float", finite=True, max_abs=0.0)
    result = make_result(case=make_case())
    result = replace(result, accuracy=Accuracy(samples=8, outputs=(exact,)))
    known = dict(gitlab_reads(render_metrics_report(shown_run(make_run([result])))))
    assert known[f"ortbench_accuracy_max_abs{{case={CASE}}}"] == "0"
    labelled = load(Path(__file__).parents[1] / "outputs/documents/passes.json")
    known = dict(gitlab_reads(render_metrics_report(shown_run(labelled))))
    assert known["ortbench_task_metric{case=net/native/cpu/b1}"] == "0.9600"


def test_a_hash_or_a_quote_in_a_name_does_not_end_a_line() -> None:
    labels = ("""a#1 "b" 'c' \\ d""", """c#1 "b" """)
    run = make_run([make_result(case=make_case(runtime=label)) for label in labels])
    text = render_metrics_report(shown_run(run))
    names = [key for key, _ in gitlab_reads(text)]
    assert len(names) == len([line for line in text.splitlines() if not line.startswith("#")])
    assert all("＃1" in key and '"b"' in key for key in names)
    assert list(text_string_to_metric_families(text))


def test_a_revision_is_shown_with_the_digits_that_people_read() -> None:
    run = run_of(gated(baseline=f"git:{'0123456789' * 4}"))
    assert "git:012345678901" in verdict_of(run, ()).headline.split()
