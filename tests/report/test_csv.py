"""CSV: reads back equal, opens in a spreadsheet without running anything."""

from __future__ import annotations

import csv
import io

from pytest_ortbench.analysis.rows import COLUMNS
from pytest_ortbench.report.csv import render_csv
from tests.report import sample_runs
from tests.summarised import rows_of


def read(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text)))


def test_every_cell_reads_back_equal() -> None:
    wanted = rows_of(sample_runs.ten_cases())
    found = read(render_csv(wanted))
    assert len(found) == 10
    for row, line in zip(wanted, found, strict=True):
        for column in COLUMNS:
            cell = row[column]
            if cell is None:
                assert line[column] == ""
            elif isinstance(cell, str):
                assert line[column] == cell
            else:
                assert type(cell)(line[column]) == cell


def test_the_heading_stands_even_without_rows() -> None:
    assert render_csv([]) == ",".join(COLUMNS) + "\n"


def test_hostile_text_is_neither_formula_nor_control_character() -> None:
    text = render_csv(rows_of(sample_runs.hostile()))
    assert len(text.splitlines()) == 3
    assert "\x1b" not in text
    for line in read(text):
        for cell in line.values():
            assert not cell.startswith(("=", "+", "@"))
        assert line["host"].startswith("'=<script>")
        assert line["model"].startswith("'=<script>alert(1)</script>|`[bold]x")


def test_negative_numbers_stay_numbers() -> None:
    row = dict(rows_of(sample_runs.one_case())[0])
    row["accuracy_sqnr_db"] = -3.5
    assert read(render_csv([row]))[0]["accuracy_sqnr_db"] == "-3.5"
