"""The example in results/example and its pictures: readable, anonymous, small, and shown."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from pytest_ortbench.analysis.answers import answers
from pytest_ortbench.report.answers import answer_lines
from pytest_ortbench.report.entries import shown_run
from pytest_ortbench.store.documents import load

ROOT = Path(__file__).resolve().parents[1]
DOCUMENTS = sorted((ROOT / "results" / "example").glob("*.json"))
PICTURES = sorted((ROOT / "docs" / "pictures").glob("*.png"))


def test_the_default_suites_and_two_other_runtimes_are_there() -> None:
    assert [path.stem for path in DOCUMENTS] == ["onnxruntime-1.20.1", "openvino", "run"]


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.stem)
def test_a_document_is_read_and_answers(path: Path) -> None:
    run = load(path)
    assert run.finished_at is not None
    assert {result.case.model.name for result in run.cases} == {"gbdt", "bert_tiny", "mobilenet_v2"}
    shown = shown_run(run)
    assert any(answer.advice is not None for answer in answers(run, shown.summaries))
    assert len(answer_lines(shown)) > len({result.case.model.name for result in run.cases})


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.stem)
def test_a_document_names_no_machine(path: Path) -> None:
    run = load(path)
    assert run.machine.host == "example"
    assert "-example-" in run.run_id
    text = path.read_text(encoding="utf-8")
    assert not re.findall(r'"/[^"]*/(?:bin|cache|home|tmp|root)[^"]*"', text)
    assert not re.findall(r"/(?:root|home|work|tmp|Users)/|https?://", text)


def test_pictures_are_small_and_shown() -> None:
    pages = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]
    text = "\n".join(page.read_text(encoding="utf-8") for page in pages)
    shown = set(re.findall(r"pictures/([\w.-]+\.png)", text))
    assert shown == {path.name for path in PICTURES}
    assert all(path.stat().st_size < 300_000 for path in PICTURES)
