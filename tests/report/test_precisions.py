"""The block of precisions in the terminal and in Markdown."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pytest_ortbench.analysis.order import proportion_interval
from pytest_ortbench.analysis.precisions import PrecisionRatio, PrecisionRow
from pytest_ortbench.core.outcome import CaseResult, Flag
from pytest_ortbench.core.quantity import Quantity
from pytest_ortbench.core.run import Run
from pytest_ortbench.report.entries import shown_run
from pytest_ortbench.report.precisions import (
    accuracy_words,
    latency_words,
    plain_words,
    precision_lines,
    precision_markdown,
)
from tests.report.page_reader import html_without_figures
from tests.results_factory import make_accuracy, make_case, make_failure, make_result, make_run


@pytest.mark.parametrize(
    ("ratio", "says"),
    [
        (PrecisionRatio(value=0.5, low=0.4, high=0.625), "×2.00 faster [×1.60, ×2.50]"),
        (PrecisionRatio(value=1.3, low=1.25, high=1.4), "×1.30 slower [×1.25, ×1.40]"),
        (PrecisionRatio(value=1.0, low=0.8, high=1.25), "unclear [×1.25 slower, ×1.25 faster]"),
        (PrecisionRatio(value=0.5), "×2.00 faster (no interval)"),
        (PrecisionRatio(value=1.04, low=1.03, high=1.05, tie=True), "×1.04 slower, not proven"),
        (PrecisionRatio(value=0.99, tie=True), "unclear: ×1.01 faster (no interval)"),
        (PrecisionRatio(value=1.06, low=1.05, high=1.07, same_file=True), "same file"),
        (None, ""),
    ],
)
def test_faster_and_slower_are_equally_plain(ratio: PrecisionRatio | None, says: str) -> None:
    assert latency_words(ratio) == says


@pytest.mark.parametrize(
    ("value", "says"),
    [(0.25, "×4.00 smaller"), (1.5, "×1.50 larger"), (1.002, "same"), (0.0, "")],
)
def test_amounts(value: float, says: str) -> None:
    assert plain_words(PrecisionRatio(value=value), "smaller", "larger") == says
    same = PrecisionRatio(value=value, same_file=True)
    assert plain_words(same, "smaller", "larger") == ("same" if value else "")


@pytest.mark.parametrize(
    ("sqnr_db", "top1", "exact", "says"),
    [
        (34.14, None, False, "34.1 dB"),
        (34.14, (7, 8), False, "34.1 dB, top-1 7/8 (≥47 %)"),
        (34.14, (3, 3), False, "34.1 dB, top-1 3/3 (≥29 %)"),
        (None, (3, 3), True, "exact"),
        (None, None, True, "exact"),
        (None, None, False, ""),
    ],
)
def test_accuracy(
    sqnr_db: float | None, top1: tuple[int, int] | None, exact: bool, says: str
) -> None:
    row = PrecisionRow(
        precision="p",
        provider="cpu",
        case_id="c",
        status="measured",
        result=make_result(),
        sqnr_db=sqnr_db,
        top1=agreement(*top1) if top1 else None,
        exact=exact,
    )
    assert accuracy_words(row) == says


def agreement(agree: int, rows: int) -> Quantity:
    low, high = proportion_interval(agree, rows)
    return Quantity(value=agree / rows, unit="ratio", low=low, high=high, samples=rows)


def made(precision: str, ms: float, *flags: str, notes: tuple[str, ...] = ()) -> CaseResult:
    result = make_result(
        case=make_case(
            precision=precision, variant_bytes=16_000_000 // (4 if "8" in precision else 1)
        ),
        median_ns=round(ms * 1e6),
        accuracy=make_accuracy(sqnr_db=30.0),
        flags=[Flag(name=name) for name in flags],
    )
    recipe = {"base": precision, "weight_type": "uint8", "per_channel": "false"}
    variant = replace(
        result.case.variant, recipe={} if precision == "fp32" else recipe, notes=notes
    )
    return replace(result, case=replace(result.case, variant=variant))


@pytest.fixture
def run() -> Run:
    failure = make_failure("unsupported", phase="convert", message="it has no such kernel")
    return make_run(
        [
            made("fp32", 4.0),
            made("int8-dynamic", 20.0, "CPU-SHARE"),
            made("fp16", 4.0, "EMULATED", "SPREAD", notes=("1 value became 65504",)),
            make_result(case=make_case(precision="bf16"), status="unsupported", failure=failure),
        ]
    )


def test_lines_show_gain_and_cost_and_name_every_finding(run: Run) -> None:
    lines = precision_lines(shown_run(run), width=140)
    assert lines[1] == (
        "mobilenet_v2: precisions against fp32 on the same provider, accuracy on random inputs"
    )
    header, fp32, dynamic, half, brain = (line.split() for line in lines[2:7])
    assert header == [
        "precision",
        "provider",
        "latency",
        "speed",
        "size",
        "memory",
        "accuracy",
        "flags",
    ]
    assert fp32[:3] == ["fp32", "cpu", "4.00"]
    assert "baseline" in fp32
    assert dynamic[4:6] == ["×5.00", "slower"]
    assert "×4.00 smaller" in lines[4]
    assert "30.0 dB, top-1 8/8 (≥63 %)" in lines[4]
    assert half[-2:] == ["EMULATED", "SPREAD"]
    assert brain == ["bf16", "cpu", "unsupported"]
    text = "\n".join(lines)
    assert "int8-dynamic on cpu is ×5.00 slower [" in text
    assert "] than fp32" in text
    assert "  fp16 on cpu is not ranked: EMULATED\n" in text
    assert "  bf16 on cpu: unsupported: it has no such kernel\n" in text
    assert "  int8-dynamic: weight_type uint8\n" in text
    assert text.endswith("  fp16: 1 value became 65504")


@pytest.mark.parametrize("width", [40, 80, 100, 140])
def test_narrow_terminals_do_without_some_columns(run: Run, width: int) -> None:
    lines = precision_lines(shown_run(run), width=width)
    sentences = [line for line in lines if line.startswith(("  int8-dynamic on", "      "))]
    assert sentences
    assert all(len(line) <= max(width, 40) for line in sentences)
    table = lines[2:7]
    assert all("×5.00 slower" in line or "int8" not in line for line in table)
    if width >= 80:
        assert max(map(len, table)) <= width


def test_markdown_says_the_same(run: Run) -> None:
    text = precision_markdown(shown_run(run))
    rows = [line for line in text.splitlines() if line.startswith("| ")]
    assert len(rows) == 6
    assert rows[0].count("|") == rows[3].count("|") == 9
    assert "×5.00 slower" in rows[3]
    assert "- bf16 on cpu: unsupported: it has no such kernel" in text


def test_one_precision_needs_no_block() -> None:
    run = make_run([made("fp32", 4.0)])
    assert precision_lines(shown_run(run), width=80) == []
    assert precision_markdown(shown_run(run)) == ""


def test_the_page_and_the_job_summary_show_it_too(run: Run) -> None:
    from pytest_ortbench.report.ci.summary import run_summary

    html = html_without_figures(run)
    assert "What each precision gains and costs" in html
    assert "<td>×5.00 slower [" in html
    assert "fp16: 1 value became 65504" in html
    assert precision_markdown(shown_run(run)) in run_summary(shown_run(run))
    one = make_run([made("fp32", 4.0)])
    assert "What each precision gains" not in html_without_figures(one)
    assert "**mobilenet" not in run_summary(shown_run(one))
