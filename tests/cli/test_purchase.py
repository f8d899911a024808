"""The page about a purchase, from the command line."""

from __future__ import annotations

import csv
import io
import re

import pytest

from pytest_ortbench.core.errors import UsageError
from tests.cli.test_compare import of
from tests.report.test_sheet import pages


@pytest.fixture
def compare(tool, store, tmp_path):
    (tmp_path / "machines.toml").write_text(
        "[machines.desk]\nprice = 1000\n[machines.rack]\nprice = 2000\n"
    )
    runs = [store(of("desk", 1.0)), store(of("rack", 0.5))]

    def call(*more: str):
        return tool("compare", *runs, *more)

    return call


def test_the_command_writes_it_by_the_ending_of_the_file(compare, tmp_path) -> None:
    ended = compare("--machines=machines.toml", "--rate=5/s", "--p99=10s", "--output=d.pdf")
    assert ended.code == 0, ended.err
    assert pages((tmp_path / "d.pdf").read_bytes()) == 1


@pytest.mark.parametrize(
    ("place", "arguments"),
    [
        ("--output=d.pdf", ("--output=d.pdf",)),
        ("--format=pdf", ("--format=pdf",)),
        ("--format=pdf", ("--format=pdf", "--machines=machines.toml")),
        ("--format=table", ("--format=table", "--machines=machines.toml", "--output=d.pdf")),
        ("--format=pdf", ("--format=pdf", "--machines=machines.toml", "--output=d.html")),
    ],
)
def test_a_pdf_that_can_not_be_is_refused(compare, tmp_path, place, arguments) -> None:
    ended = compare(*arguments)
    assert ended.code == 2
    assert isinstance(ended.error, UsageError)
    assert ended.error.place == place
    assert ended.error.hint
    assert not (tmp_path / "d.pdf").exists()


def test_the_ending_decides_on_other_files_too(compare, tmp_path) -> None:
    assert compare("--output=c.html").code == 0
    assert (tmp_path / "c.html").read_text().startswith("<!doctype html>")
    assert compare("--output=c.csv").code == 0
    assert (tmp_path / "c.csv").read_text().startswith("table,side")


ONE = "[machines.desk]\nprice = 1000\n"


@pytest.mark.parametrize("form", ["table", "md", "html", "csv", "pdf"])
def test_one_machine_alone_has_a_bill_and_is_no_winner(tool, store, tmp_path, form) -> None:
    run = store(of("desk", 1.0))
    (tmp_path / "machines.toml").write_text(ONE)
    asked = ("--machines=machines.toml", "--rate=5/s", "--p99=10s")
    ended = tool("compare", run, *asked, f"--format={form}", f"--output=out.{form}")
    assert ended.code == 0, ended.err
    data = (tmp_path / f"out.{form}").read_bytes()
    if form == "pdf":
        assert pages(data) == 1
        return
    text = data.decode()
    assert "desk" in text
    assert not re.search(r"cheapest|fastest|geometric mean|baseline", text)
    if form == "csv":
        rows = list(csv.DictReader(io.StringIO(text)))
        assert {row["machine"] for row in rows} == {"desk"}
        assert {row["rank"] for row in rows} <= {"", "best"}
        assert all(row["machines_needed"] for row in rows)


def test_one_machine_without_prices_is_still_nothing_to_compare(tool, store) -> None:
    ended = tool("compare", store(of("desk", 1.0)), "--by=machine")
    assert ended.code == 2
    assert ended.error.place == "compare"


def test_report_says_which_command_makes_it(tool) -> None:
    ended = tool("report", "a.json", "b.json", "--one-page", "--machines=prices.toml")
    assert ended.code == 2
    assert "ortbench compare" in ended.error.hint
    assert "--machines=prices.toml" in ended.error.hint
