"""The one printed page of a run or a comparison."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner

from pytest_ortbench.cli.application import application
from pytest_ortbench.fleet.report.cards import comparison_sheet
from pytest_ortbench.report.cards.sheet import Sheet, run_sheet
from pytest_ortbench.report.entries import shown_run
from pytest_ortbench.report.figures.sheet import fitting, rest_lines, sheet_pdf
from tests.report import sample_runs
from tests.report.fleet_views import view

SHEETS = {
    "ten": lambda: run_sheet(shown_run(sample_runs.ten_cases())),
    "hostile": lambda: run_sheet(shown_run(sample_runs.hostile())),
    "comparison": lambda: comparison_sheet(view()),
}


def pages(pdf: bytes) -> int:
    return len(re.findall(rb"/Type\s*/Page\b", pdf))


@pytest.mark.parametrize("name", SHEETS)
def test_a_sheet_is_one_page_and_the_same_each_time(name: str) -> None:
    pdf = sheet_pdf(SHEETS[name]())
    assert pdf.startswith(b"%PDF-")
    assert pages(pdf) == 1
    assert sheet_pdf(SHEETS[name]()) == pdf


def test_cards_are_whole_where_they_fit() -> None:
    cards = run_sheet(shown_run(sample_runs.ten_cases())).cards
    assert fitting(cards) == cards


def test_of_many_cards_each_shows_its_first_batch_size_and_the_rest_is_left_out() -> None:
    (card, *_) = comparison_sheet(view()).cards
    many = [replace(card, groups=card.groups * 2)] * 40
    kept = fitting(many)
    assert 3 < len(kept) < 40
    assert all(one.groups == card.groups[:1] for one in kept)
    assert pages(sheet_pdf(Sheet(title="t", facts="f", cards=tuple(many), note="n"))) == 1


def test_below_few_cards_stands_the_whole_answer_and_how_it_was_measured() -> None:
    sheet = run_sheet(shown_run(sample_runs.ten_cases()))
    lines = rest_lines(sheet.rest, 600.0)
    headings = [line for line, is_heading in lines if is_heading]
    assert headings == [part.heading for part in sheet.rest if part.texts]
    assert " ".join(line for line, _ in lines).count(sheet.rest[0].texts[0]) == 1
    few = rest_lines(sheet.rest, 60.0)
    assert 1 < len(few) <= 5
    assert rest_lines(sheet.rest, 10.0) == []


def test_the_command_writes_it_beside_the_run_or_where_it_is_told(tmp_path: Path) -> None:
    document = Path(__file__).parents[1] / "schema/golden/v1.json"
    target = tmp_path / "page.pdf"
    arguments = ["report", str(document), "--one-page", "-o", str(target)]
    answered = CliRunner().invoke(application, arguments)
    assert answered.exit_code == 0, answered.output
    assert pages(target.read_bytes()) == 1
    assert sorted(path.name for path in tmp_path.iterdir()) == ["page.pdf"]
