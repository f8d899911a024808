"""Numbers in the terminal, HTML, CSV, Markdown and JUnit are equal for one run: all read back."""

from __future__ import annotations

import csv
import io
import re

import pytest

from pytest_ortbench.core.metrics import METRICS
from pytest_ortbench.core.units import parse_amount
from pytest_ortbench.report.cells import COLUMNS, NOTHING
from pytest_ortbench.report.ci.summary import run_summary
from pytest_ortbench.report.column import Column
from pytest_ortbench.report.csv import render_csv
from pytest_ortbench.report.entries import by_model, shown_run
from pytest_ortbench.report.junit import PREFIX
from pytest_ortbench.report.table import render_table
from tests.report import sample_runs
from tests.report.page_reader import html_without_figures, read_page
from tests.report.test_markdown import cells_of
from tests.summarised import properties_of, rows_of

RUN = sample_runs.ten_cases()
NUMBERS = [column for column in COLUMNS if column.metric]
#: Ids of the cases by their model and what tables call them.
IDS = {
    f"{group.model.name}/{label}": entry.result.case.case_id
    for group in by_model(shown_run(RUN).entries)
    for label, entry in zip(group.labels, group.entries, strict=True)
}


@pytest.fixture(scope="module")
def from_csv() -> dict[str, dict[str, str]]:
    """Rows of the CSV by case id: what all others must agree with."""
    lines = csv.DictReader(io.StringIO(render_csv(rows_of(RUN))))
    return {line["case_id"]: line for line in lines}


def agrees(text: str, exact: str, column: Column) -> None:
    """A cell for people says the same as the exact value, to the digits that it shows."""
    if not exact:
        assert text in ("", NOTHING, "exact") or text.startswith("n<")
        return
    shown = parse_amount(text, METRICS[column.metric].unit, place=column.key)
    assert shown == pytest.approx(float(exact), rel=5.1e-3)


def interval_agrees(text: str, unit_of: str, line: dict[str, str]) -> None:
    ends = re.fullmatch(r"\[([\d.]+), ([\d.]+)\]", text)
    assert ends is not None
    unit = unit_of.rpartition(" ")[2]
    for end, column in zip(ends.groups(), ("latency_p50_low_s", "latency_p50_high_s"), strict=True):
        shown = parse_amount(f"{end} {unit}", "s", place=column)
        assert shown == pytest.approx(float(line[column]), rel=5.1e-3)


def test_csv_holds_the_rows(from_csv: dict[str, dict[str, str]]) -> None:
    assert len(from_csv) == len(RUN.cases) == 10
    assert sum(bool(line["latency_p50_s"]) for line in from_csv.values()) == 7


def test_junit_is_exact(from_csv: dict[str, dict[str, str]]) -> None:
    for result in RUN.cases:
        line = from_csv[result.case.case_id]
        found = {name.removeprefix(PREFIX): value for name, value in properties_of(result)}
        for column in NUMBERS:
            assert found.get(column.row, "") == line[column.row]
        for column in ("latency_p50_low_s", "latency_p50_high_s"):
            assert found.get(column, "") == line[column]


def test_html_values_are_exact_and_its_texts_agree(from_csv: dict[str, dict[str, str]]) -> None:
    page = read_page(html_without_figures(RUN))
    assert len(page.rows) == 10
    for index in range(10):
        model, case = page.cell(index, "model")[0], page.cell(index, "case")[0]
        line = from_csv[IDS[f"{model}/{case}"]]
        for column in NUMBERS:
            text, value = page.cell(index, column.key)
            if value != "Infinity":
                assert value == line[column.row]
            agrees(text, line[column.row], column)
        if line["latency_p50_s"]:
            interval_agrees(page.cell(index, "interval")[0], page.cell(index, "p50")[0], line)


def test_markdown_agrees(from_csv: dict[str, dict[str, str]]) -> None:
    _, *lines = cells_of(run_summary(shown_run(RUN)))
    assert len(lines) == 10
    for model, *cells in lines:
        found = dict(zip((column.key for column in COLUMNS), cells, strict=True))
        line = from_csv[IDS[f"{model}/{found['case']}"]]
        for column in NUMBERS:
            agrees(found[column.key], line[column.row], column)
        if line["latency_p50_s"]:
            interval_agrees(found["interval"], found["p50"], line)


def test_the_terminal_agrees(from_csv: dict[str, dict[str, str]]) -> None:
    lines = render_table(shown_run(RUN), width=250, color=False).splitlines()
    heading = lines[0]
    ends = {column.key: heading.index(column.heading) + len(column.heading) for column in NUMBERS}
    model, read = "", 0
    for line in lines[1 : lines.index("")]:
        if not line.startswith(" "):
            model = line.split("  ")[0]
            continue
        words = re.split(r"  +", line.strip())
        exact = from_csv.get(IDS.get(f"{model}/{words[0]}", ""))
        if exact is None or not line.startswith("  " + words[0]):
            continue
        read += 1
        for column in NUMBERS:
            # Numbers end where their heading ends, two blanks apart from what stands before.
            text = re.split(r"  +", line[: ends[column.key]])[-1]
            agrees(text, exact[column.row], column)
        (interval,) = re.findall(r"\[[^\]]*\]", line)
        interval_agrees(interval, words[1], exact)
    assert read == 7
