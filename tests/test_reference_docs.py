"""The pages of docs/reference say what the code says."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path

import pytest

DOCS = Path(__file__).parent.parent / "docs"


def generator():
    spec = importlib.util.spec_from_file_location("generate", DOCS / "generate.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


GENERATE = generator()


@pytest.mark.parametrize("name", GENERATE.PAGES)
def test_the_page_is_what_the_code_says(name):
    written = (DOCS / "reference" / name).read_text(encoding="utf-8")
    assert written == GENERATE.PAGES[name](), "run: python docs/generate.py"


@pytest.mark.parametrize("name", GENERATE.PAGES)
def test_every_row_of_a_table_has_as_many_cells_as_its_heading(name):
    columns = 0
    for line in GENERATE.PAGES[name]().splitlines():
        if not line.startswith("|"):
            columns = 0
            continue
        cells = len(re.findall(r"(?<!\\)\|", line)) - 1
        columns = columns or cells
        assert cells == columns, line


def test_every_link_between_types_has_its_heading():
    text = GENERATE.document_page()
    links = set(re.findall(r"\]\(#([a-z]+)\)", text))
    headings = {heading.lower() for heading in re.findall(r"^## (\w+)$", text, re.MULTILINE)}
    assert links <= headings
    assert headings - links == {"run"}


def test_pages_out_of_date_are_named_and_left_alone(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(GENERATE, "FOLDER", tmp_path / "reference")
    assert GENERATE.main(["--check"]) == 1
    assert not (tmp_path / "reference").exists()
    assert capsys.readouterr().err.count("is out of date") == len(GENERATE.PAGES)
    assert GENERATE.main([]) == 0
    assert GENERATE.main(["--check"]) == 0
    assert sorted(path.name for path in (tmp_path / "reference").iterdir()) == sorted(
        GENERATE.PAGES
    )


def test_every_kind_of_message_has_a_cause_and_what_to_do():
    from pytest_ortbench.core.flags import FLAGS
    from pytest_ortbench.core.gate import CAUSES, METRIC_VERDICTS, VERDICTS
    from pytest_ortbench.core.outcome import FAILURE_KINDS

    rows = [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in GENERATE.messages_page().splitlines()
        if line.startswith("|")
    ]
    told = {row[0].strip("`") for row in rows if all(row)}
    assert told >= {*FLAGS, *FAILURE_KINDS, *VERDICTS, *CAUSES, *METRIC_VERDICTS}


def test_the_index_of_errors_has_messages_next_steps_and_values():
    text = GENERATE.errors_page()
    rows = [line for line in text.splitlines() if line.startswith("| ")]
    assert len(rows) > 400
    assert any("--ort-dims" in row and "⟨" in row for row in rows)
    assert len({row.count("|") - row.count("\\|") for row in rows}) == 1
