"""Markdown: tables that hold, whatever the names, and the summary of a CI job."""

from __future__ import annotations

from markdown_it import MarkdownIt

from pytest_ortbench.core.acceptance import accept_command
from pytest_ortbench.core.complaint import GATE, Complaint
from pytest_ortbench.report.cells import COLUMNS
from pytest_ortbench.report.ci.summary import run_summary
from pytest_ortbench.report.entries import shown_run
from pytest_ortbench.report.escape import one_line
from tests.report import sample_runs
from tests.results_factory import make_case, make_result, make_run


def cells_of(text: str) -> list[list[str]]:
    """The first table of a Markdown text, as a CommonMark renderer with tables reads it."""
    rows: list[list[str]] = []
    for token in MarkdownIt("gfm-like", {"linkify": False}).parse(text):
        if token.type == "tr_open":
            rows.append([])
        elif token.type == "inline" and rows:
            rows[-1].append("".join(child.content for child in token.children or []))
        elif token.type == "table_close":
            break
    return rows


def test_the_table_has_a_row_a_case() -> None:
    rows = cells_of(run_summary(shown_run(sample_runs.ten_cases())))
    assert rows[0] == ["model", *(column.heading for column in COLUMNS)]
    assert len(rows) == 11
    # Medians of 12.3923, 12.3851 and 12.3039 ms give 12.239 to 12.483 by Student's t.
    assert rows[1][:4] == ["mobilenet_v2", "native/cpu/b1", "12.4 ms", "[12.2, 12.5]"]
    assert rows[2][5] == "n<368"
    assert rows[6][1:] == ["native/cuda/b1", *[""] * 10, "unavailable"]


def test_hostile_names_break_no_table() -> None:
    text = run_summary(shown_run(sample_runs.hostile()))
    rows = cells_of(text)
    assert [len(row) for row in rows] == [len(COLUMNS) + 1] * 3
    assert rows[1][0] == one_line(sample_runs.HOSTILE)
    assert "<script" not in text
    assert "\x1b" not in text


def test_the_job_summary_says_what_failed_and_what_to_mind() -> None:
    text = run_summary(shown_run(sample_runs.ten_cases()))
    assert (
        "- mobilenet_v2: native/cuda/b1, native/cuda/b8: **unavailable**: libcudnn.so.9 can't be "
        "loaded (cuDNN 9, for CUDA 12) (creating the session). Install "
        "'onnxruntime-gpu[cuda,cudnn]'." in text
    )
    assert "- **SPREAD** 1 case: " in text
    assert "- Left out: azure: takes no node of a local model" in text
    assert "3 fresh worker processes a case;" in text


def test_the_job_summary_of_hostile_names_marks_nothing_up() -> None:
    run = sample_runs.hostile()
    tokens = MarkdownIt("gfm-like", {"linkify": False}).parse(run_summary(shown_run(run)))
    kinds = {child.type for token in tokens for child in token.children or []}
    assert kinds <= {"text", "text_special", "softbreak", "strong_open", "strong_close"}
    blocks = [token.content for token in tokens if token.type == "html_block"]
    assert {block[:9] for block in blocks} == {"<!-- pyte", "<details>", "</details"}
    assert sum(token.type == "heading_open" for token in tokens) == 1


def _complained(*pairs: tuple[str, str]) -> str:
    """The summary of a run whose gate complained of cases, each with what about."""
    complaints = [
        Complaint(kind=GATE, text="worse", about=about, case=case) for case, about in pairs
    ]
    text = run_summary(shown_run(make_run([make_result()])), complaints)
    (line,) = [line for line in text.splitlines() if "ortbench accept" in line]
    return line.split("`")[1]


def test_the_comment_has_the_command_that_accepts_what_one_case_costs() -> None:
    case, run = make_case().case_id, make_run([]).run_id
    one, any_case = accept_command(case, run=run), accept_command("CASE", run=run)
    assert _complained((case, "latency")) == accept_command(case, "latency", run=run)
    assert _complained((case, "latency"), (case, "peak_rss")) == one
    assert _complained((case, "incomparable")) == one
    assert _complained((case, "latency"), ("other", "latency")) == any_case
    assert _complained(("a`b", "latency")) == any_case
